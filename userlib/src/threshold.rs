//! Thresholds on logical counters, and handlers that hear of them.

use core::arch::naked_asm;

use tally_abi::{Error, bank::NO_THRESHOLD};

use crate::{
    counting::{Session, check},
    sys,
};

/// A function that hears of a threshold: the event, by its index in the session's list, and the count
/// at which it fired. It interrupts the program anywhere, as a signal's handler does, so it must not
/// use what the program may be in the middle of changing: the heap, for one. The logical counters may
/// be read, stopped and started, and thresholds set; what the handler does is counted like all else.
pub type Handler = extern "C" fn(event: usize, count: u64);

impl Session {
    /// Once, when the event's logical counter, as the session's bank shows it, has come to `count`, a
    /// record goes to the trace; and if there is a `handler`, the program is interrupted for it, and
    /// goes on where it was when it returns. Other handlers wait until then.
    ///
    /// An event that is counted all the time fires at the very count, but for the instructions that
    /// the interrupt comes late by. Another fires where its estimate passes the count: while it is on
    /// the hardware or where its slice ends.
    ///
    /// # Errors
    /// The session has no such event, or no bank, or there are too many thresholds.
    pub fn set_threshold(
        &self,
        event: usize,
        count: u64,
        handler: Option<Handler>,
    ) -> Result<(), Error> {
        let [entry, data] = handler.map_or([0, 0], handler_words);
        let arguments = [self.id(), event as u64, count, entry, data, 0];
        // SAFETY: the call has no buffer, and the handler is a function of the program's.
        check(unsafe { sys::call(sys::SESSION_THRESHOLD, arguments) }).map(|_| ())
    }

    /// Takes an event's threshold away.
    ///
    /// # Errors
    /// As [`Self::set_threshold`].
    pub fn clear_threshold(&self, event: usize) -> Result<(), Error> {
        self.set_threshold(event, NO_THRESHOLD, None)
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
