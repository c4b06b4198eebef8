//! Thresholds on logical counters, and their upcall handlers.

use core::arch::naked_asm;

use tally_abi::{Error, bank::NO_THRESHOLD};

use crate::{counting::Session, error::check, sys};

/// Handler of a threshold. Arguments: the event's index in the session's list, and the count at
/// which the threshold fired. The upcall interrupts the program between any two instructions, like
/// a signal handler; see [`Session::set_threshold_handler`]. The handler's own events are counted.
pub type Handler = extern "C" fn(event: usize, count: u64);

impl Session {
    /// Sets a threshold that fires once: when the event's logical counter in the session's bank
    /// reaches `count`, the kernel writes a trace record and increments the bank's count of firings
    /// ([`LogicalCounter::fired`](crate::LogicalCounter::fired)). The new threshold replaces the
    /// event's threshold and handler. In a session on another program it takes effect at the end of
    /// a slice.
    ///
    /// For a pinned event the threshold fires at `count` plus the skid of the PMI. For a
    /// multiplexed event it fires when the estimate passes `count`, while its group is on the
    /// counters or at the end of a slice.
    ///
    /// # Errors
    /// The session has no such event, or no bank.
    pub fn set_threshold(&self, event: usize, count: u64) -> Result<(), Error> {
        // SAFETY: there is no handler.
        unsafe { self.set(0, event, count, [0, 0]) }
    }

    /// Sets a threshold of a CPU of a session on whole CPUs, by its index among the instances, for
    /// the events of all programs there. Otherwise like [`Self::set_threshold`].
    ///
    /// # Errors
    /// See [`Self::set_threshold`]; or there is no such CPU.
    pub fn set_cpu_threshold(&self, cpu: usize, event: usize, count: u64) -> Result<(), Error> {
        // SAFETY: there is no handler.
        unsafe { self.set(cpu, event, count, [0, 0]) }
    }

    /// Sets a threshold like [`Self::set_cpu_threshold`], with an upcall to `handler`. The upcall
    /// runs in this program, on the CPU that runs it, within one scheduler tick (10 ms) of the
    /// program's running time.
    ///
    /// # Errors
    /// See [`Self::set_cpu_threshold`].
    ///
    /// # Safety
    /// See [`Self::set_threshold_handler`].
    pub unsafe fn set_cpu_threshold_handler(
        &self,
        cpu: usize,
        event: usize,
        count: u64,
        handler: Handler,
    ) -> Result<(), Error> {
        // SAFETY: the caller guarantees it.
        unsafe { self.set(cpu, event, count, handler_words(handler)) }
    }

    /// Sets a threshold like [`Self::set_threshold`], with an upcall to `handler`. When the handler
    /// returns, the program resumes where it was interrupted. Other upcalls stay pending until
    /// then.
    ///
    /// # Errors
    /// See [`Self::set_threshold`]; or the session is on another program, in which no handler of
    /// this one can run.
    ///
    /// # Safety
    /// Until the threshold has fired and the handler has returned, or a new threshold replaces it,
    /// the handler may run between any two instructions of the program. It must not access data,
    /// except atomically, that the program or another thread may be changing, such as the heap,
    /// which [`crate::println`] uses. It may read, stop and start logical counters and set
    /// thresholds.
    pub unsafe fn set_threshold_handler(
        &self,
        event: usize,
        count: u64,
        handler: Handler,
    ) -> Result<(), Error> {
        // SAFETY: the caller guarantees it.
        unsafe { self.set(0, event, count, handler_words(handler)) }
    }

    /// Clears an event's threshold, if it has one: its handler does not run any more.
    ///
    /// # Errors
    /// See [`Self::set_threshold`].
    pub fn clear_threshold(&self, event: usize) -> Result<(), Error> {
        self.set_threshold(event, NO_THRESHOLD)
    }

    /// Sets a threshold with the two words of its handler.
    ///
    /// # Safety
    /// The words are 0, or those of a handler that may be called ([`Self::set_threshold_handler`]).
    unsafe fn set(
        &self,
        cpu: usize,
        event: usize,
        count: u64,
        [entry, data]: [u64; 2],
    ) -> Result<(), Error> {
        let arguments = [self.id(), event as u64, count, entry, data, cpu as u64];
        // SAFETY: the call has no buffer, and the caller guarantees the handler.
        check(unsafe { sys::tally_call(sys::SESSION_THRESHOLD, arguments) }).map(|_| ())
    }
}

/// Returns the two words of a handler for the kernel: the entry point of the upcall, and an
/// argument for it.
pub fn handler_words(handler: Handler) -> [u64; 2] {
    [enter as *const () as u64, handler as *const () as u64]
}

/// Entry point of upcalls: calls the handler, whose arguments the kernel has put into registers,
/// and returns to the kernel.
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
