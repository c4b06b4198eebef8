//! One processor core: fetch, data access, retirement, and the time that they take.
//!
//! Caches, TLBs and predictors are modelled access by access in program order; their answers cost
//! time by one of two pipelines: `interval` (penalties, here and in `interval`) or out of order
//! (`crate::ooo`). Time is kept in slots: the pipeline's width for each cycle.
//!
//! [`Core`] is defined in `state`; the other files are its operations, each importing only from
//! those before it: `levels`, `interval`, `fetch`, `branches`, `data`, `retire`, `system`.

mod branches;
mod data;
mod fetch;
mod interval;
mod levels;
mod retire;
mod state;
mod system;
#[cfg(test)]
mod tests;

pub use self::state::Core;
#[cfg(test)]
pub(crate) use self::state::{LINE_BITS, WALK_LINE_BITS};
