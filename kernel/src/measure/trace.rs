//! What the engine asks of this kernel: the time, and a way for records. In the overflow path too.

use alloc::boxed::Box;
use core::arch::x86_64::_rdtsc;

use tally_abi::trace::{SampleRecord, SliceRecord, ThresholdRecord};
use tally_engine::{Clock, Sink};
use tally_ring::{Mode, Ring};

use super::stream;
use crate::cpu::{entry::Interrupted, lapic::Lapic, vectors};

/// A CPU's trace ring. A turn of the scheduler has some 50 slices of the default length, 20 words each at
/// most, and the timer drains the ring each turn; of slices as short as can be it holds a third of a turn's.
/// Pages are short, as the overflow path clears one when it has filled another.
pub(super) type TraceRing = Ring<16_384, 64>;

/// The time-stamp counter.
pub(super) struct Tsc;

impl Clock for Tsc {
    fn tsc(&self) -> u64 {
        // SAFETY: every x86-64 processor has RDTSC; it has no effect on memory.
        unsafe { _rdtsc() }
    }
}

/// A CPU's way to give records away: a ring if a trace was asked for.
pub(super) struct Trace {
    ring: Option<&'static TraceRing>,
    cpu: u16,
    lapic: Lapic,
}

impl Sink for Trace {
    #[inline(always)]
    fn record(&mut self, record: impl FnOnce() -> SliceRecord) {
        if let Some(ring) = self.ring {
            let record = record();
            ring.write(SliceRecord::KIND, || record.end_tsc, &record.head(), record.tail());
        }
    }

    fn threshold(&mut self, record: ThresholdRecord) {
        if let Some(ring) = self.ring {
            ring.write(ThresholdRecord::KIND, || record.tsc, &record.head(), record.tail());
        }
        self.upcall();
    }

    fn sample(&mut self, record: SampleRecord) {
        if let Some(ring) = self.ring {
            ring.write(SampleRecord::KIND, || record.tsc, &record.head(), record.tail());
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
    /// The way of CPU number `cpu`: its ring, if a trace is `wanted`, is made here.
    pub(super) fn new(cpu: u16, lapic: Lapic, wanted: bool) -> Trace {
        let ring = wanted.then(|| {
            // SAFETY: a ring is nothing but words, for which 0 is a value.
            let mut ring = unsafe { Box::<TraceRing>::new_zeroed().assume_init() };
            ring.init(Mode::Discard, Tsc.tsc());
            &*Box::leak(ring)
        });
        if let Some(ring) = ring {
            stream::add(cpu, ring);
        }
        Trace { ring, cpu, lapic }
    }

    /// Sends the records on their way to the host.
    pub(super) fn drain(&self) {
        if self.ring.is_some() {
            stream::drain(self.cpu);
        }
    }

    /// A threshold waits for the program that runs here.
    pub(super) fn upcall(&self) {
        self.lapic.interrupt_self(vectors::UPCALL);
    }
}
