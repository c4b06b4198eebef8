//! What blocked threads wait for: a value, whose end gives the waiting call its result.

use tally_abi::syscall::errno::{EAGAIN, ETIMEDOUT};

/// What a thread is blocked on. Times are [`crate::machine::clock`]'s, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    /// A wake-up at the futex at `address` for one of `bits`, or a timeout.
    Futex { address: u64, bits: u32, until: Option<u64> },
    /// A time. If a signal comes before, the rest of the time is written to the address `left`,
    /// unless that is 0.
    Sleep { until: u64, left: u64 },
    /// The end of this program, a child, or a time.
    Child(u32, Option<u64>),
    /// One of the signals `set`, which is consumed without its handler and described at the address
    /// `info`, unless that is 0; or a timeout.
    Signal { set: u64, info: u64, until: Option<u64> },
    /// The use of a descriptor by another thread, or a time: the thread makes its call `number`
    /// again. If a signal comes before, the rest of the call's time is written to the address
    /// `left`, unless that is 0.
    Retry { number: u64, until: Option<u64>, left: u64 },
}

impl Wait {
    /// For the handler of a signal, which ends every wait, and for nothing else.
    pub const HANDLER: Wait = Wait::Signal { set: 0, info: 0, until: None };

    /// Returns whether the wait ends without another thread of the program.
    pub fn ends_by_itself(&self) -> bool {
        matches!(self, Wait::Child(..)) || self.timeout().is_some()
    }

    /// When the wait times out, and what the call returns then.
    pub(super) fn timeout(&self) -> Option<(u64, i64)> {
        match *self {
            Wait::Futex { until, .. } => Some((until?, -ETIMEDOUT)),
            Wait::Sleep { until, .. } => Some((until, 0)),
            Wait::Child(_, until) => Some((until?, -ETIMEDOUT)),
            Wait::Signal { until, .. } => Some((until?, -EAGAIN)),
            // The thread makes the call again (`wake_at`).
            Wait::Retry { until, .. } => Some((until?, 0)),
        }
    }
}
