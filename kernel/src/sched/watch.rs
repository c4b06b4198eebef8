//! A session on one program that another opened, as the table of programs has it.

use alloc::boxed::Box;

use crate::measure::Context;

/// A session on one program that another opened.
pub(super) struct Watch {
    /// The program that opened it; none once that program has ended.
    pub(super) owner: Option<u32>,
    pub(super) on: Watched,
}

/// Where the session's context is.
pub(super) enum Watched {
    /// With the program of this number, which has not ended.
    Program(u32),
    /// Here, with the last values: the program has ended.
    Ended(Box<Context>),
}
