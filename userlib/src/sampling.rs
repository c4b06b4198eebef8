//! Samples: where a program is every N events.

use alloc::{vec, vec::Vec};

use tally_abi::Error;

use crate::{counting::Session, error::check, sys};

impl Session {
    /// Notes what is running each time when the event's logical counter has gone on by `period`, give or
    /// take an eighth at random: in the trace, and by address in [`Self::samples`]. None any more if
    /// `period` is 0. In place of the event's threshold. Where that would take more of the program's time
    /// than the session's budget, periods are longer.
    ///
    /// Of an event that is counted all the time a sample comes some instructions after the period's last
    /// event (skid). Another is sampled by its estimate, while it is on the hardware or where its slice
    /// ends.
    ///
    /// # Errors
    /// The session has no such event, there are too many thresholds, or
    /// the session runs and is not mapped.
    pub fn sample(&self, event: usize, period: u64) -> Result<(), Error> {
        let arguments = [self.id(), event as u64, period, 0, 0, 0];
        // SAFETY: the call has no buffer.
        check(unsafe { sys::call(sys::SESSION_SAMPLE, arguments) }).map(|_| ())
    }

    /// Addresses and how many samples found the program there, in no order. Address 0 stands for all that
    /// had none or no room.
    ///
    /// # Errors
    /// None while the session is open.
    pub fn samples(&self) -> Result<Vec<(u64, u64)>, Error> {
        let call = |to: *mut [u64; 2], room: usize| {
            let arguments = [self.id(), to as u64, room as u64, 0, 0, 0];
            // SAFETY: there is room for so many pairs.
            check(unsafe { sys::call(sys::SESSION_SAMPLES, arguments) }).map(|n| n as usize)
        };
        let mut pairs = vec![[0; 2]; call(core::ptr::null_mut(), 0)?];
        // It may have more by now.
        let known = call(pairs.as_mut_ptr(), pairs.len())?.min(pairs.len());
        Ok(pairs[..known].iter().map(|[address, samples]| (*address, *samples)).collect())
    }
}
