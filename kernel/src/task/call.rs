//! The kernel's state of a system call between its steps.
//!
//! A thread makes the next step by executing SYSCALL again, in memory that other threads may have
//! changed. So the state identifies its call, and [`CallState::begin`] discards another call's
//! state.

use alloc::boxed::Box;

use tally_engine::Ticket;

use crate::{
    arch::frame::{Frame, SYSCALL_BYTES},
    measure::PendingReadings,
    memory::range::UserRange,
};

/// Choice of a call's first step for the later ones.
#[derive(Clone, Copy, Debug)]
pub enum Chosen {
    /// Destination of a mapping's pages.
    Place(UserRange),
    /// The request that the call waits for.
    Request(Ticket),
}

/// The progress of a long system call.
#[derive(Debug, Default)]
pub struct Progress {
    /// The bytes done, or the first page of the next step; 0 before the first step.
    pub at: u64,
    /// Choice of the first step for the later ones.
    pub chosen: Option<Chosen>,
    /// Readings of a session that the steps compute.
    pub readings: Option<Box<PendingReadings>>,
}

impl Progress {
    /// Returns whether no step is done yet.
    pub fn is_none(&self) -> bool {
        self.at == 0 && self.readings.is_none()
    }
}

/// A system call: its number, its arguments, and the address after its instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Call {
    number: u64,
    arguments: [u64; 6],
    behind: u64,
}

impl Call {
    /// Makes the call with these registers.
    fn with(frame: &Frame, behind: u64) -> Call {
        let Frame { rax, rdi, rsi, rdx, r10, r8, r9, .. } = *frame;
        Call { number: rax, arguments: [rdi, rsi, rdx, r10, r8, r9], behind }
    }
}

/// A thread's last system call, and its state for the next step.
#[derive(Debug, Default)]
pub struct CallState {
    call: Call,
    /// Progress of a call that the thread continues. The thread returns to the call's instruction,
    /// and no handler runs before, so that no other call comes between two steps (decision 21).
    pub progress: Option<Progress>,
    /// Deadline of a call that the thread repeats until it has an answer; `Some(None)` for a
    /// repeated call without a deadline.
    pub retried: Option<Option<u64>>,
}

impl CallState {
    /// Records the thread's entry to the kernel with the call in `frame`. Discards another call's
    /// state.
    pub fn begin(&mut self, frame: &Frame) {
        let call = Call::with(frame, frame.rip);
        if self.call != call {
            *self = CallState { call, ..CallState::default() };
        }
    }

    /// Records that a signal's handler interrupts the thread, which returns to `frame`. Returns the
    /// number of the call that the thread was about to repeat, and no longer repeats.
    pub fn interrupt(&mut self, frame: &Frame) -> Option<u64> {
        // A handler interrupts a call in progress only at a fault: another thread unmapped its
        // instruction.
        self.progress = None;
        let is_next = self.call == Call::with(frame, frame.rip.wrapping_add(SYSCALL_BYTES));
        self.retried.take().filter(|_| is_next).map(|_| self.call.number)
    }

    /// Returns whether the thread, which returns to `frame`, continues its last call. Discards the
    /// progress otherwise.
    pub fn continues(&mut self, frame: &Frame) -> bool {
        if self.call != Call::with(frame, frame.rip.wrapping_add(SYSCALL_BYTES)) {
            self.progress = None;
        }
        self.progress.is_some()
    }
}
