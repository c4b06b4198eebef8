//! What is counted of one program, as it moves between the program and the CPU that runs it.

use alloc::boxed::Box;

use super::{context::Context, direct::DirectCounters};

/// What is counted of one program: a session, counters in direct mode, or nothing. The program
/// owns it while it is off the CPUs; the CPU's [`super::Measure`] owns it while the program runs.
#[derive(Default)]
pub struct Slot {
    /// The program's session.
    pub context: Option<Box<Context>>,
    /// The program's counters in direct mode.
    pub direct: Option<Box<DirectCounters>>,
}

impl Slot {
    /// Returns whether anything is counted of the program.
    pub fn is_measured(&self) -> bool {
        self.context.is_some() || self.direct.is_some()
    }
}
