//! Counters that the program looks after itself.

use alloc::{vec, vec::Vec};
use core::arch::asm;

use tally_abi::{Mode, events::words, session::MAX_DETAIL_BYTES};

use crate::{
    error::{OpenError, check},
    sys,
};

/// Events that all stay on counters, which nobody switches and nothing interrupts. Dropping it takes
/// them away.
#[derive(Debug)]
pub struct Direct {
    indices: Vec<u64>,
}

impl Direct {
    /// Puts all of `events` on counters, spelled as for [`crate::Session::open`], from 0 on.
    ///
    /// # Errors
    /// They do not fit the counters at once, cannot be had on this machine, or the program has a
    /// session; or, `NotPermitted`, the kernel was not booted with `paranoid=0`; the detail says why.
    pub fn open(events: &str, mode: Mode) -> Result<Direct, OpenError> {
        let mut indices = vec![0_u64; words(events).count()];
        let mut detail = [0_u8; MAX_DETAIL_BYTES];
        let arguments = [
            events.as_ptr() as u64,
            events.len() as u64,
            mode as u64,
            indices.as_mut_ptr() as u64,
            detail.as_mut_ptr() as u64,
            detail.len() as u64,
        ];
        // SAFETY: the list is valid for reading, the others for writing: a word for each event.
        let result = check(unsafe { sys::call(sys::DIRECT_OPEN, arguments) });
        result.map(|_| Direct { indices }).map_err(|error| OpenError::new(error, &detail))
    }

    /// How often the event has happened, by its index in the list. No system call: one RDPMC. Counters
    /// are 48 bits wide on most processors, and begin at 0 again after that.
    ///
    /// # Panics
    /// The list has no such event.
    #[inline]
    pub fn read(&self, event: usize) -> u64 {
        let index = self.indices[event] as u32;
        let (low, high): (u64, u64);
        // SAFETY: the kernel lets this program use RDPMC, and the counter is there, for as long as
        // this value is. No `nomem`: what is measured is not to be moved past it.
        unsafe {
            asm!("rdpmc", in("ecx") index, out("rax") low, out("rdx") high,
                 options(nostack, preserves_flags));
        }
        high << 32 | low
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        // SAFETY: the call has no buffer.
        let _ = unsafe { sys::call(sys::DIRECT_CLOSE, [0; 6]) };
    }
}
