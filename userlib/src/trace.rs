//! Reads a CPU's trace ring while the kernel writes it: slices, thresholds and samples of all
//! programs.

use core::{slice, sync::atomic::AtomicU64};

pub use tally_abi::trace::{SampleRecord, SliceRecord, ThresholdRecord};
use tally_abi::{
    Error,
    trace::{RING_PAGES, RING_WORDS},
};
pub use tally_ring::{Item, Status};
use tally_ring::{Reader, Ring};

use crate::{error::check, sys};

/// Observer of a CPU's trace ring. It affects neither the kernel nor the host. Records that the
/// kernel overwrote before they were read are reported as [`Item::Lost`].
#[derive(Debug)]
pub struct TraceReader {
    ring: &'static Ring<RING_WORDS, RING_PAGES>,
    reader: Reader<'static, RING_WORDS, RING_PAGES>,
}

impl TraceReader {
    /// Maps the ring of CPU number `cpu`, which stays mapped until the program ends. Reading starts
    /// with the oldest record.
    ///
    /// # Errors
    /// `NotPermitted`: the kernel was booted without `paranoid=0`. `WrongState`: the kernel keeps
    /// no trace. `BadArgument`: the kernel runs no such CPU.
    pub fn open(cpu: u16) -> Result<TraceReader, Error> {
        // SAFETY: the call does not touch the program's memory.
        let address =
            check(unsafe { sys::tally_call(sys::TRACE_MAP, [cpu.into(), 0, 0, 0, 0, 0]) })?;
        let words = size_of::<Ring<RING_WORDS, RING_PAGES>>() / size_of::<u64>();
        // SAFETY: (1) until the program ends, the kernel has a ring of whole words mapped there,
        // aligned to a page; (2) an observing reader never writes to it.
        let memory = unsafe { slice::from_raw_parts(address as *const AtomicU64, words) };
        let ring = Ring::at(memory).expect("a page has a ring's alignment");
        Ok(TraceReader { ring, reader: Reader::observe(ring) })
    }

    /// Returns the next record, or the number of records lost before it; `None` if the ring has no
    /// new record.
    pub fn take(&mut self) -> Option<Item<'_>> {
        self.reader.take()
    }

    /// Returns the ring's numbers of records.
    pub fn status(&self) -> Status {
        self.ring.status()
    }
}
