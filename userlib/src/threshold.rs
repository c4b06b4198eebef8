//! Thresholds on logical counters, and handlers that hear of them.

use core::arch::naked_asm;

use tally_abi::{Error, bank::NO_THRESHOLD};

use crate::{counting::Session, error::check, sys};

/// A function that hears of a threshold: the event, by its index in the session's list, and the count
/// at which it fired. It interrupts the program anywhere, as a signal's handler does
/// ([`Session::set_threshold_handler`] says what follows from that). What it does is counted like all else.
pub type Handler = extern "C" fn(event: usize, count: u64);

impl Session {
    /// Once, when the event's logical counter, as the session's bank shows it, has come to `count`, a
    /// record goes to the trace. In place of the threshold that the event has, and of its handler.
    ///
    /// An event that is counted all the time fires at the very count, but for the instructions that
    /// the interrupt comes late by. Another fires where its estimate passes the count: while it is on
    /// the hardware or where its slice ends.
    ///
    /// # Errors
    /// The session has no such event, or no bank, or there are too many thresholds.
    pub fn set_threshold(&self, event: usize, count: u64) -> Result<(), Error> {
        // SAFETY: there is no handler.
        unsafe { self.set(event, count, [0, 0]) }
    }

    /// [`Self::set_threshold`], and the program is interrupted for `handler`, and goes on where it was when
    /// that returns. Other handlers wait until then.
    ///
    /// # Errors
    /// As [`Self::set_threshold`].
    ///
    /// # Safety
    /// Until the threshold has fired and the handler returned, or it is cleared, the handler may come between any
    /// two instructions of the program, as a signal's handler does: it uses nothing that the program, or
    /// another thread of it, may be in the middle of changing, but atomically. The heap is such, which
    /// [`crate::println`] uses. Logical counters may be read, stopped and started, and thresholds set.
    pub unsafe fn set_threshold_handler(
        &self,
        event: usize,
        count: u64,
        handler: Handler,
    ) -> Result<(), Error> {
        // SAFETY: the caller's word.
        unsafe { self.set(event, count, handler_words(handler)) }
    }

    /// Takes an event's threshold away.
    ///
    /// # Errors
    /// As [`Self::set_threshold`].
    pub fn clear_threshold(&self, event: usize) -> Result<(), Error> {
        self.set_threshold(event, NO_THRESHOLD)
    }

    /// Sets a threshold and what the kernel knows of its handler.
    ///
    /// # Safety
    /// The words are 0, or a handler's that may be called ([`Self::set_threshold_handler`]).
    unsafe fn set(&self, event: usize, count: u64, [entry, data]: [u64; 2]) -> Result<(), Error> {
        let arguments = [self.id(), event as u64, count, entry, data, 0];
        // SAFETY: the call has no buffer, and the handler is the caller's word.
        check(unsafe { sys::call(sys::SESSION_THRESHOLD, arguments) }).map(|_| ())
    }
}

/// What the kernel wants to know of a handler: where it enters the program, and a word for that.
pub fn handler_words(handler: Handler) -> [u64; 2] {
    [enter as *const () as u64, handler as *const () as u64]
}

/// Where the kernel diverts the program to: calls the handler, which has its arguments in their
/// registers already, and goes back.
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!(
        "call rdx",
        "mov eax, {back}",
        "syscall",
        "ud2",
        back = const sys::UPCALL_RETURN,
    )
}
