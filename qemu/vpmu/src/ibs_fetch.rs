//! The sampler of fetches of instruction-based sampling (APM vol. 2, "IBS Fetch Sampling"; the
//! processor programming reference of family 19h, "IBS Fetch Control").
//!
//! A fetch is of a line of code, and completes.

use tally_model::{Counts, FetchedLine, Geometry, ServedBy, Signal};

use crate::{
    counter::{Counter, CounterInput},
    event::Event,
};

/// `IbsFetchCtl`: enable, a sample is there, start at random, and, on Zen 4, fetches that hit the
/// last level are dropped.
const ENABLE: u64 = 1 << 48;
const VALID: u64 = 1 << 49;
const RANDOM: u64 = 1 << 57;
const L3_MISS: u64 = 1 << 59;
/// Bits 19:4 of the maximum count, and the position of those of the current count.
const MAXIMUM: u64 = 0xffff;
const CURRENT_SHIFT: u32 = 16;
/// The fields of a sample.
const LATENCY_SHIFT: u32 = 32;
const COMPLETE: u32 = 50;
const MISSED_L1: u32 = 51;
const PHYSICAL_VALID: u32 = 52;
const MISSED_L1_TLB: u32 = 55;
const MISSED_L2_TLB: u32 = 56;
const MISSED_L2: u32 = 58;
/// Bits that software sets.
const SET: u64 = MAXIMUM | ENABLE | VALID | RANDOM | L3_MISS;

static FETCHES: Event =
    Event::new("IBS fetches", 0, 0, &[Signal::L1iHit, Signal::L1iMiss], "Lines of code fetched.");

/// The sampler of fetches.
#[derive(Clone, Debug, Default)]
pub(crate) struct FetchSampler {
    /// Bits that software has set in `IbsFetchCtl`, and the valid bit.
    control: u64,
    counter: Counter,
    /// The fields of the last sample in `IbsFetchCtl`.
    fields: u64,
    /// `IbsFetchLinAd`, `IbsFetchPhysAd`.
    pub(crate) addresses: [u64; 2],
    /// `IcIbsExtdCtl`: the latency of the translation.
    pub(crate) extended: u64,
}

impl FetchSampler {
    /// `IbsFetchCtl`.
    pub(crate) fn control(&self, counts: &[Counts; 2], geometry: &Geometry) -> u64 {
        let current = self.counter.unwrapped(counts, geometry) >> 4 & 0xffff;
        self.control | self.fields | current << CURRENT_SHIFT
    }

    /// Writes `IbsFetchCtl`; `random` is the start of a count at random.
    pub(crate) fn set_control(
        &mut self,
        value: u64,
        random: u64,
        (counts, geometry): (&[Counts; 2], &Geometry),
    ) {
        self.control = value & SET;
        let low = if value & RANDOM != 0 { random & 0xf } else { 0 };
        self.counter.run(None, counts, geometry);
        self.counter.set((value >> CURRENT_SHIFT & 0xffff) << 4 | low, counts, geometry);
        if value & (ENABLE | VALID) == ENABLE {
            self.fields = 0;
            let input = CounterInput::of(vec![&FETCHES], [true; 2]);
            self.counter.run(Some(input), counts, geometry);
        }
    }

    /// Returns whether the sampler counts.
    pub(crate) fn is_on(&self) -> bool {
        self.counter.is_running()
    }

    /// Minimum number of slots before a fetch can be sampled; `None` if none can.
    pub(crate) fn slots_to_sample(&self, counts: &[Counts; 2], geometry: &Geometry) -> Option<u64> {
        let left = self.maximum().saturating_sub(self.counter.unwrapped(counts, geometry));
        self.is_on().then(|| left / self.counter.growth_per_slot())
    }

    fn maximum(&self) -> u64 {
        (self.control & MAXIMUM) << 4
    }

    /// Handles a fetch; returns whether it was sampled.
    pub(crate) fn fetch(
        &mut self,
        counts: &[Counts; 2],
        geometry: &Geometry,
        line: &FetchedLine,
    ) -> bool {
        if !self.is_on() || self.counter.unwrapped(counts, geometry) < self.maximum() {
            return false;
        }
        let missed_all = line.missed_to == Some(ServedBy::Memory);
        self.counter.set(0, counts, geometry);
        if self.control & L3_MISS != 0 && !missed_all {
            return false;
        }
        self.counter.run(None, counts, geometry);
        self.control |= VALID;
        self.fields = fields(line);
        self.addresses = [line.address, line.physical];
        self.extended = u64::from(line.translation.0).min(0xffff);
        true
    }
}

/// The fields of a sample in `IbsFetchCtl`.
fn fields(line: &FetchedLine) -> u64 {
    let (tlb_cycles, walks) = line.translation;
    let bits = [
        (COMPLETE, true),
        (MISSED_L1, line.missed_to.is_some()),
        (PHYSICAL_VALID, true),
        (MISSED_L1_TLB, tlb_cycles != 0),
        (MISSED_L2_TLB, walks),
        (MISSED_L2, line.missed_to.is_some_and(|level| level > ServedBy::L2)),
    ];
    let flags: u64 = bits.into_iter().map(|(bit, is_set)| u64::from(is_set) << bit).sum();
    flags | u64::from(line.latency_cycles).min(0xffff) << LATENCY_SHIFT
}
