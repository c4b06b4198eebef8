//! The table's entry of a session on one program that another opened.

use alloc::boxed::Box;

use crate::measure::Context;

/// A session on one program that another opened.
pub(super) struct Watch {
    /// The program that opened it; `None` after that program's end.
    pub(super) owner: Option<u32>,
    pub(super) on: Watched,
}

/// Location of the session's context.
pub(super) enum Watched {
    /// With the program of this number, which has not ended.
    Program(u32),
    /// In the table, with the last values: the program has ended.
    Ended(Box<Context>),
}
