//! Control word, by which a program stops and starts all logical counters at once.
//! [`tally_abi::bank`] defines the rules.

use tally_abi::{Error, bank::STOPPED};

use crate::{bank::Bank, error::check, sequences};

impl Bank<'_> {
    /// Stops all logical counters: their values contain no later event. Makes a system call only if
    /// the session is on no counter: it is stopped, or another session has its turn.
    ///
    /// Takes 19 instructions and 4 for each hardware counter in use beyond instructions and cycles.
    /// Each counter stops where this function reads it with RDPMC, so two counters stop at least
    /// four instructions apart. The instructions of this function up to that point are counted.
    /// Their number is the same at each call, unless an interrupt comes during the call, which
    /// makes the function begin again. While the counters are stopped, at most one more overflow
    /// interrupt occurs.
    #[inline]
    pub fn stop(&self) {
        // SAFETY: `Bank::new`'s caller guarantees it.
        unsafe { sequences::stop(self.words) }
    }

    /// Starts all logical counters, for the first time or again, with one instruction more than
    /// [`Self::stop`]. Makes a system call only if the session is on no CPU: before the first
    /// start, and after a slice or the program's turn ended while the counters were stopped.
    ///
    /// # Errors
    /// The CPU cannot count.
    #[inline]
    pub fn start(&self) -> Result<(), Error> {
        // SAFETY: `Bank::new`'s caller guarantees it.
        match unsafe { sequences::start(self.words) } {
            0 => Ok(()),
            error => check(error).map(|_| ()),
        }
    }

    /// Returns whether the counters are stopped.
    pub fn is_stopped(&self) -> bool {
        // SAFETY: the bank lies there (`Bank::new`).
        unsafe { sequences::state(self.words) & STOPPED != 0 }
    }
}
