//! What the engine asks of this kernel: the time, and a way for records. In the overflow path too.

use spin::Once;
use tally_abi::{
    Error,
    boot::{MAX_CPUS, Tracing},
    trace::{RING_PAGES, RING_WORDS, SampleRecord, SliceRecord, ThresholdRecord},
};
use tally_engine::{Clock, Sink};
use tally_ring::{Ring, WhenFull};

use super::{settings::settings, stream};
use crate::{
    cpu::{entry::Interrupted, lapic::Lapic, vectors},
    machine::clock,
    memory::shared::Shared,
};

/// A CPU's trace ring.
pub(super) type TraceRing = Ring<RING_WORDS, RING_PAGES>;

/// The rings' memory, by CPU.
static RINGS: [Once<Shared>; MAX_CPUS] = [const { Once::new() }; MAX_CPUS];

/// The memory of a CPU's trace ring.
///
/// # Errors
/// No trace is kept, or there is no such CPU.
pub fn ring_memory(cpu: u64) -> Result<&'static Shared, Error> {
    let ring = usize::try_from(cpu).ok().and_then(|cpu| RINGS.get(cpu));
    let memory = ring.ok_or(Error::BadArgument)?.get();
    memory.ok_or(if settings().trace.is_some() { Error::BadArgument } else { Error::WrongState })
}

/// The time-stamp counter.
pub(super) struct Tsc;

impl Clock for Tsc {
    #[inline(always)]
    fn tsc(&self) -> u64 {
        clock::tsc()
    }
}

/// A CPU's way to give records away: a ring if a trace was asked for.
pub(super) struct Trace {
    ring: Option<&'static TraceRing>,
    cpu: u16,
    /// Whether records go to the host while programs run.
    streams: bool,
    lapic: Lapic,
}

impl Sink for Trace {
    #[inline(always)]
    fn record(&mut self, record: impl FnOnce() -> SliceRecord) {
        if let Some(ring) = self.ring {
            let record = record();
            write(ring, SliceRecord::KIND, || record.end_tsc, &record.head(), record.tail());
        }
    }

    fn threshold(&mut self, record: ThresholdRecord) {
        if let Some(ring) = self.ring {
            write(ring, ThresholdRecord::KIND, || record.tsc, &record.head(), record.tail());
        }
        self.upcall();
    }

    fn sample(&mut self, record: SampleRecord) {
        if let Some(ring) = self.ring {
            write(ring, SampleRecord::KIND, || record.tsc, &record.head(), record.tail());
        }
    }
}

/// The same in the overflow interrupt.
pub(super) struct AtInterrupt<'a> {
    pub(super) trace: &'a mut Trace,
    pub(super) interrupted: &'a Interrupted,
}

impl Sink for AtInterrupt<'_> {
    #[inline(always)]
    fn record(&mut self, record: impl FnOnce() -> SliceRecord) {
        self.trace.record(record);
    }

    fn threshold(&mut self, record: ThresholdRecord) {
        self.trace.threshold(record);
    }

    fn interrupted(&self) -> Option<(u64, bool)> {
        Some((self.interrupted.rip, self.interrupted.is_user()))
    }

    fn sample(&mut self, record: SampleRecord) {
        self.trace.sample(record);
    }
}

impl Trace {
    /// The way of CPU number `cpu`, once: its ring, if a trace is wanted, is made here.
    pub(super) fn new(cpu: u16, lapic: Lapic, wanted: Option<Tracing>) -> Trace {
        let ring = wanted.and_then(|tracing| {
            let ring = make_ring(cpu, tracing);
            if ring.is_none() {
                log::error!("CPU {cpu} keeps no trace: no memory is left");
            }
            ring
        });
        if let Some(ring) = ring {
            stream::add(cpu, ring);
        }
        Trace { ring, cpu, streams: wanted == Some(Tracing::Stream), lapic }
    }

    /// Sends the records on their way to the host.
    pub(super) fn drain(&self) {
        if self.ring.is_some() && self.streams {
            stream::drain(self.cpu);
        }
    }

    /// A threshold waits for the program that runs here.
    pub(super) fn upcall(&self) {
        self.lapic.interrupt_self(vectors::UPCALL);
    }
}

/// Writes a record to a [`Trace`]'s ring.
#[inline(always)]
fn write<const HEAD: usize>(
    ring: &'static TraceRing,
    kind: u8,
    clock: impl tally_ring::TimeSource,
    head: &[u64; HEAD],
    tail: &[u64],
) {
    // SAFETY: (1) `make_ring` made it, and programs that look on have it mapped to be read only; (2) it is one
    // `Trace`'s, which stays with its CPU.
    unsafe { ring.write(kind, clock, head, tail) };
}

fn make_ring(cpu: u16, tracing: Tracing) -> Option<&'static TraceRing> {
    let memory = Shared::allocate(size_of::<TraceRing>()).ok()?;
    let ring = memory.start().as_mut_ptr::<TraceRing>();
    // SAFETY: (1) the memory has room for a ring, is aligned as pages are and stays for ever; (2) it is zeros,
    // which is a value of a ring's words; (3) nobody else knows it yet.
    let ring = unsafe { &mut *ring };
    let mode = match tracing {
        Tracing::Stream => WhenFull::Discard,
        Tracing::Last => WhenFull::Overwrite,
    };
    ring.init(mode, Tsc.tsc());
    RINGS.get(usize::from(cpu))?.call_once(|| memory);
    Some(ring)
}
