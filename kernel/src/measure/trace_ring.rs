//! The trace rings, one for each CPU, in memory that programs may have mapped.

use alloc::{boxed::Box, vec::Vec};

use spin::Mutex;
use tally_abi::{
    Error,
    boot::Tracing,
    trace::{RING_PAGES, RING_WORDS},
};
use tally_engine::Clock;
use tally_ring::{Ring, WhenFull};

use super::settings::settings;
use crate::{arch::cycles, machine::clock, memory::shared::Shared};

/// A CPU's trace ring.
pub(super) type TraceRing = Ring<RING_WORDS, RING_PAGES>;

/// The memory of each CPU's ring, which is never freed.
static RINGS: Mutex<Vec<(u64, &Shared)>> = Mutex::new(Vec::new());

/// The memory of a CPU's trace ring.
///
/// # Errors
/// There is no trace, or the CPU does not exist.
pub fn ring_memory(cpu: u64) -> Result<&'static Shared, Error> {
    let memory = RINGS.lock().iter().find(|(of, _)| *of == cpu).map(|(_, memory)| *memory);
    memory.ok_or(if settings().trace.is_some() { Error::BadArgument } else { Error::WrongState })
}

/// The processor's clocks.
pub struct ProcessorClock;

impl Clock for ProcessorClock {
    #[inline(always)]
    fn tsc(&self) -> u64 {
        clock::tsc()
    }

    fn core_cycles(&self) -> Option<u64> {
        cycles::core_cycles()
    }
}

/// Writes a record to a CPU's ring.
#[inline(always)]
pub(super) fn write<const HEAD: usize>(
    ring: &'static TraceRing,
    kind: u8,
    clock: impl tally_ring::TimeSource,
    head: &[u64; HEAD],
    tail: &[u64],
) {
    // SAFETY: (1) `make` made it, and programs have it mapped read-only; (2) it is one
    // `TraceSink`'s, which stays with its CPU.
    unsafe { ring.write(kind, clock, head, tail) };
}

/// Makes a CPU's ring of at most `pages` pages, once; `None` if no memory is left.
pub(super) fn make(cpu: u16, tracing: Tracing, pages: Option<usize>) -> Option<&'static TraceRing> {
    let memory = Shared::allocate(size_of::<TraceRing>()).ok()?;
    let ring = memory.start().as_mut_ptr::<TraceRing>();
    // SAFETY: (1) the memory has room for a ring, is aligned as pages are and is never freed; (2)
    // it holds zeros, which are a value of a ring's words; (3) nothing else refers to it yet.
    let ring = unsafe { &mut *ring };
    let mode = match tracing {
        Tracing::Stream | Tracing::Halt => WhenFull::Discard,
        Tracing::Last => WhenFull::Overwrite,
    };
    ring.init(mode, ProcessorClock.tsc());
    if let Some(pages) = pages {
        ring.limit(pages);
    }
    RINGS.lock().push((cpu.into(), Box::leak(Box::new(memory))));
    Some(ring)
}
