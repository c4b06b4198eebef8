//! Sampling: records the instruction pointer once per period of an event.

use alloc::{vec, vec::Vec};

use tally_abi::{Error, branches::BranchFilter};

use crate::{counting::Session, error::check, sys};

impl Session {
    /// Records a sample each time the event's logical counter has increased by `period`, plus or
    /// minus up to an eighth at random: in the trace, and by address in [`Self::samples`]. A period
    /// of 0 ends sampling. Sampling replaces the event's threshold. If it would exceed the
    /// session's budget, the kernel lengthens the periods.
    ///
    /// For a pinned event the sample is some instructions after the period's last event (skid). A
    /// multiplexed event is sampled by its estimate, while its group is on the counters or at the
    /// end of a slice.
    ///
    /// # Errors
    /// The session has no such event, or it is started and not mapped.
    pub fn sample(&self, event: usize, period: u64) -> Result<(), Error> {
        self.sample_with_stack(event, period, 0)
    }

    /// Samples like [`Self::sample`]; each sample of the session in ring 3 also copies the
    /// registers and `stack_bytes` bytes of the stack, at most
    /// [`tally_abi::trace::MAX_STACK_BYTES`], to the trace, if there is one. The host derives the
    /// callers from them.
    ///
    /// # Errors
    /// See [`Self::sample`]; or the stack is too long.
    pub fn sample_with_stack(
        &self,
        event: usize,
        period: u64,
        stack_bytes: u64,
    ) -> Result<(), Error> {
        self.take_samples(event, period, stack_bytes, 0, BranchFilter::default())
    }

    /// Samples like [`Self::sample_with_stack`], with the period at which `hz` samples, at most
    /// [`tally_abi::session::MAX_SAMPLE_HZ`], are taken per second in which the session counts. The
    /// engine determines the period, and adapts it when the event's rate changes.
    ///
    /// # Errors
    /// See [`Self::sample_with_stack`]; or the rate is 0 or too high.
    pub fn sample_at_rate(&self, event: usize, hz: u64, stack_bytes: u64) -> Result<(), Error> {
        if hz == 0 {
            return Err(Error::BadArgument);
        }
        self.take_samples(event, 0, stack_bytes, hz, BranchFilter::default())
    }

    /// Samples like [`Self::sample_with_stack`], or at a rate of `hz` samples a second if that is
    /// not 0; each sample in the trace has the branches before it that `branches` selects.
    ///
    /// # Errors
    /// See [`Self::sample_with_stack`] and [`Self::sample_at_rate`];
    /// [`Error::EventNotSupported`] if the processor does not record branches.
    pub fn sample_with_branches(
        &self,
        event: usize,
        [period, hz]: [u64; 2],
        stack_bytes: u64,
        branches: BranchFilter,
    ) -> Result<(), Error> {
        self.take_samples(event, period, stack_bytes, hz, branches)
    }

    fn take_samples(
        &self,
        event: usize,
        period: u64,
        stack_bytes: u64,
        hz: u64,
        branches: BranchFilter,
    ) -> Result<(), Error> {
        let branches = branches.bits();
        let arguments = [self.id(), event as u64, period, stack_bytes, hz, branches];
        // SAFETY: the call has no buffer.
        check(unsafe { sys::tally_call(sys::SESSION_SAMPLE, arguments) }).map(|_| ())
    }

    /// Returns addresses with their number of samples, unordered. Address 0 stands for samples
    /// without an address and for samples that had no room.
    ///
    /// # Errors
    /// No errors while the session is open.
    pub fn samples(&self) -> Result<Vec<(u64, u64)>, Error> {
        let call = |to: *mut [u64; 2], room: usize| {
            let arguments = [self.id(), to as u64, room as u64, 0, 0, 0];
            // SAFETY: the buffer has room for `room` pairs.
            check(unsafe { sys::tally_call(sys::SESSION_SAMPLES, arguments) }).map(|n| n as usize)
        };
        let mut pairs = vec![[0; 2]; call(core::ptr::null_mut(), 0)?];
        // The number may have grown since.
        let known = call(pairs.as_mut_ptr(), pairs.len())?.min(pairs.len());
        Ok(pairs[..known].iter().map(|[address, samples]| (*address, *samples)).collect())
    }
}
