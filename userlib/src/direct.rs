//! Direct mode: the program owns counters and reads them by RDPMC.

use alloc::{vec, vec::Vec};
use core::arch::asm;

use tally_abi::{Mode, events::words, session::MAX_DETAIL_BYTES};

use crate::{
    error::{OpenError, check},
    sys,
};

/// Events in direct mode: each stays on one counter, without multiplexing and without PMIs.
/// Dropping the value releases the counters.
#[derive(Debug)]
pub struct Direct {
    indices: Vec<u64>,
}

impl Direct {
    /// Programs a counter, starting at 0, for each of `events`, spelled as for
    /// [`crate::Session::open`].
    ///
    /// # Errors
    /// The counters cannot count all events at once, this machine cannot count one of them, or the
    /// program has a session. `NotPermitted`: the kernel was booted without `paranoid=0`. The
    /// detail names the reason.
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
        let result = check(unsafe { sys::tally_call(sys::DIRECT_OPEN, arguments) });
        result.map(|_| Direct { indices }).map_err(|error| OpenError::new(error, &detail))
    }

    /// Returns the ECX operand of RDPMC for the event with this index in the list.
    ///
    /// # Panics
    /// The list has no such event.
    #[doc(hidden)]
    pub fn rdpmc_number(&self, event: usize) -> u32 {
        self.indices[event] as u32
    }

    /// Reads the counter of the event with this index in the list, by one RDPMC without a system
    /// call. Most processors' counters have 48 bits and wrap to 0.
    ///
    /// # Panics
    /// The list has no such event.
    #[inline]
    pub fn read(&self, event: usize) -> u64 {
        let index = self.indices[event] as u32;
        let (low, high): (u64, u64);
        // SAFETY: while this value exists, the program may use RDPMC and the counter exists.
        // Without `nomem`, so that the compiler does not move memory accesses across it.
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
        let _ = unsafe { sys::tally_call(sys::DIRECT_CLOSE, [0; 6]) };
    }
}
