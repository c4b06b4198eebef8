//! What the kernel keeps of a system call between its steps.
//!
//! A thread makes the next step by executing SYSCALL again, in memory that other threads may have
//! changed meanwhile. So what is kept names its call, and [`CallState::begin`] discards what
//! another call left.

use alloc::boxed::Box;

use tally_engine::Ticket;

use crate::{
    arch::frame::{Frame, SYSCALL_BYTES},
    measure::PendingReadings,
    memory::range::UserRange,
};

/// What the first step of a call has chosen for the next ones.
#[derive(Clone, Copy, Debug)]
pub enum Chosen {
    /// Where the pages of a mapping move to.
    Place(UserRange),
    /// The request that the call waits for.
    Request(Ticket),
}

/// The progress of a long system call.
#[derive(Debug, Default)]
pub struct Progress {
    /// The bytes done, or the first page of the next step; 0 before the first step.
    pub at: u64,
    /// What the first step has chosen for the next ones.
    pub chosen: Option<Chosen>,
    /// The readings of a session that the steps compute.
    pub readings: Option<Box<PendingReadings>>,
}

impl Progress {
    /// Returns whether no step is done.
    pub fn is_none(&self) -> bool {
        self.at == 0 && self.readings.is_none()
    }
}

/// A system call: its number, its arguments, and the address behind its instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Call {
    number: u64,
    arguments: [u64; 6],
    behind: u64,
}

impl Call {
    /// The call with these registers.
    fn with(frame: &Frame, behind: u64) -> Call {
        let Frame { rax, rdi, rsi, rdx, r10, r8, r9, .. } = *frame;
        Call { number: rax, arguments: [rdi, rsi, rdx, r10, r8, r9], behind }
    }
}

/// A thread's last system call, and what the kernel keeps for its next step.
#[derive(Debug, Default)]
pub struct CallState {
    call: Call,
    /// The progress of a call that the thread continues. The thread returns to the call's
    /// instruction, and no handler runs before (decision 21).
    pub progress: Option<Progress>,
    /// The deadline of a call that the thread makes again until that has an answer; the call has
    /// none if there is no time.
    pub retried: Option<Option<u64>>,
}

impl CallState {
    /// The thread has entered the kernel with the call in `frame`. Discards what another call left.
    pub fn begin(&mut self, frame: &Frame) {
        let call = Call::with(frame, frame.rip);
        if self.call != call {
            *self = CallState { call, ..CallState::default() };
        }
    }

    /// A signal's handler interrupts the thread, which returns to `frame`. Returns the number of
    /// the call that the thread was about to make again, and makes it again no more.
    pub fn interrupt(&mut self, frame: &Frame) -> Option<u64> {
        // Only a fault comes with a call in progress, whose instruction another thread unmapped.
        self.progress = None;
        let is_next = self.call == Call::with(frame, frame.rip.wrapping_add(SYSCALL_BYTES));
        self.retried.take().filter(|_| is_next).map(|_| self.call.number)
    }

    /// Returns whether the thread, which returns to `frame`, continues its last call. Discards the
    /// progress of a call that it does not continue.
    pub fn continues(&mut self, frame: &Frame) -> bool {
        if self.call != Call::with(frame, frame.rip.wrapping_add(SYSCALL_BYTES)) {
            self.progress = None;
        }
        self.progress.is_some()
    }
}
