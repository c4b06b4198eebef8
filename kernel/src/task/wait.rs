//! Waits of blocked threads; the end of a wait determines the result of the waiting call.

use tally_abi::syscall::errno::{EAGAIN, ETIMEDOUT};

/// Wait of a blocked thread. Times are [`crate::machine::clock`]'s, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    /// A wake-up at the futex at `address` for one of `bits`, or a timeout.
    Futex { address: u64, bits: u32, until: Option<u64> },
    /// The ownership of the mutex at `address`, which the thread `owner` has, or a timeout. A
    /// signal's handler runs, and the thread waits again.
    Mutex { address: u64, owner: u32, until: Option<u64> },
    /// A time. If a signal comes earlier, the remaining time is written to the address `left`,
    /// unless that is 0.
    Sleep { until: u64, left: u64 },
    /// The end of this program, a child, or a time.
    Child(u32, Option<u64>),
    /// A signal of `set`, which is consumed without its handler and described at the address
    /// `info`, unless that is 0; or a timeout.
    Signal { set: u64, info: u64, until: Option<u64> },
    /// The use of a descriptor by another thread, or a time: the thread repeats its call `number`.
    /// If a signal comes earlier, the call's remaining time is written to the address `left`,
    /// unless that is 0.
    Retry { number: u64, until: Option<u64>, left: u64 },
}

impl Wait {
    /// Wait for a signal's handler, which ends every wait, and for nothing else.
    pub const HANDLER: Wait = Wait::Signal { set: 0, info: 0, until: None };

    /// Returns whether the wait ends without another thread of the program.
    pub fn ends_by_itself(&self) -> bool {
        matches!(self, Wait::Child(..)) || self.timeout().is_some()
    }

    /// Time at which the wait times out, and the result of the call then.
    pub(super) fn timeout(&self) -> Option<(u64, i64)> {
        match *self {
            Wait::Futex { until, .. } | Wait::Mutex { until, .. } => Some((until?, -ETIMEDOUT)),
            Wait::Sleep { until, .. } => Some((until, 0)),
            Wait::Child(_, until) => Some((until?, -ETIMEDOUT)),
            Wait::Signal { until, .. } => Some((until?, -EAGAIN)),
            // The thread repeats the call (`wake_at`).
            Wait::Retry { until, .. } => Some((until?, 0)),
        }
    }
}
