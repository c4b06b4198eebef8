//! The trace of a CPU, as it is written: every program's slices, thresholds and samples.

use core::{slice, sync::atomic::AtomicU64};

pub use tally_abi::trace::{SampleRecord, SliceRecord, ThresholdRecord};
use tally_abi::{
    Error,
    trace::{RING_PAGES, RING_WORDS},
};
pub use tally_ring::{Item, Status};
use tally_ring::{Reader, Ring};

use crate::{error::check, sys};

/// Looks on at a CPU's trace ring. The kernel and the host take no notice of it: what was written over
/// before it was read is told as [`Item::Lost`].
#[derive(Debug)]
pub struct TraceReader {
    ring: &'static Ring<RING_WORDS, RING_PAGES>,
    reader: Reader<'static, RING_WORDS, RING_PAGES>,
}

impl TraceReader {
    /// Maps the ring of CPU number `cpu`, which stays mapped until the program ends, and reads from the oldest
    /// record that is there.
    ///
    /// # Errors
    /// `NotPermitted`: the kernel was not booted with `paranoid=0`. `WrongState`: it keeps no trace.
    /// `BadArgument`: it runs no such CPU.
    pub fn open(cpu: u16) -> Result<TraceReader, Error> {
        // SAFETY: the call touches none of the program's memory.
        let address = check(unsafe { sys::call(sys::TRACE_MAP, [cpu.into(), 0, 0, 0, 0, 0]) })?;
        let words = size_of::<Ring<RING_WORDS, RING_PAGES>>() / size_of::<u64>();
        // SAFETY: (1) the kernel has mapped a ring there, of whole words, aligned as pages are, until the
        // program ends; (2) whoever may only observe it never writes to it.
        let memory = unsafe { slice::from_raw_parts(address as *const AtomicU64, words) };
        let ring = Ring::at(memory).expect("a page is aligned as a ring is");
        Ok(TraceReader { ring, reader: Reader::observe(ring) })
    }

    /// The next record, or how many were lost before it; none if there is none yet.
    pub fn take(&mut self) -> Option<Item<'_>> {
        self.reader.take()
    }

    /// How many records there were.
    pub fn status(&self) -> Status {
        self.ring.status()
    }
}
