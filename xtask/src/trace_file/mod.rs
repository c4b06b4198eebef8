//! Decodes trace files: whole ones, and those that are being written.

mod file;
mod records;
mod stream;

#[cfg(test)]
pub(crate) use file::tests;
pub use file::{Bad, Field, Form, Raw, Trace, Type};
pub use records::Records;
pub use stream::Stream;

/// The file that `record` writes and `report` reads, unless another is named.
pub const DEFAULT_TRACE: &str = "tally.trace";
