//! What the engine asks of this kernel: the time, and a way for records. In the overflow path too.

use alloc::boxed::Box;
use core::arch::x86_64::_rdtsc;

use spin::Mutex;
use tally_abi::{
    boot::MAX_CPUS,
    trace::{Record, SampleRecord, SliceRecord, ThresholdRecord},
    wire::Message,
};
use tally_engine::{Clock, Sink, ring::Ring};

use crate::{
    cpu::{entry::Interrupted, lapic::Lapic, vectors},
    machine::serial,
};

/// Records that a CPU's trace ring holds: a turn of the scheduler has some 50 slices of the default
/// length, and the timer drains the ring each turn.
const RING_RECORDS: usize = 1024;

/// The rings of all CPUs, for the report at the end. A CPU's ring is made when it starts.
static RINGS: Mutex<[Option<&'static Ring>; MAX_CPUS]> = Mutex::new([None; MAX_CPUS]);

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
    ring: Option<&'static Ring>,
    lapic: Lapic,
}

impl Sink for Trace {
    #[inline(always)]
    fn record(&mut self, record: impl FnOnce() -> SliceRecord) {
        if let Some(mut ring) = self.ring {
            ring.record(record);
        }
    }

    fn threshold(&mut self, record: ThresholdRecord) {
        if let Some(mut ring) = self.ring {
            ring.threshold(record);
        }
        self.upcall();
    }

    fn sample(&mut self, record: SampleRecord) {
        if let Some(mut ring) = self.ring {
            ring.sample(record);
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
        let ring = wanted.then(|| &*Box::leak(Box::new(Ring::new(RING_RECORDS))));
        if let Some(slot) = RINGS.lock().get_mut(usize::from(cpu)) {
            *slot = ring;
        }
        Trace { ring, lapic }
    }

    /// Sends the records to the host.
    pub(super) fn drain(&self) {
        let Some(ring) = self.ring else { return };
        while let Some(words) = ring.pop() {
            match Record::from_words(&words) {
                Ok(Record::Slice(record)) => serial::send(&Message::Slice(record)),
                Ok(Record::Threshold(record)) => serial::send(&Message::Threshold(record)),
                Ok(Record::Sample(record)) => serial::send(&Message::Sample(record)),
                Err(_) => panic!("a trace ring gave back what was never written"),
            }
        }
    }

    /// A threshold waits for the program that runs here.
    pub(super) fn upcall(&self) {
        self.lapic.interrupt_self(vectors::UPCALL);
    }
}

/// Tells the host how each CPU's trace ring fared. Every CPU has drained its own.
pub fn report_rings() {
    for (cpu, ring) in (0..).zip(RINGS.lock().iter()) {
        if let Some(ring) = ring {
            let status = ring.status();
            serial::send(&Message::Ring {
                cpu,
                written: status.written,
                read: status.read,
                lost: status.lost,
            });
        }
    }
}
