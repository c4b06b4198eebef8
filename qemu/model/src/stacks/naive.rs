//! The naive architecture: counts of events times a fixed penalty, whatever overlaps.
//!
//! The paper's version counts at the structures and so includes events of wrong paths. Wrong paths
//! are not modelled here. Beyond the non-speculative architecture this one counts accesses of
//! instructions that did not retire at the first attempt, of software prefetches, and those that
//! are parts of an instruction. It costs nothing besides its counters.

use super::component::Component;
use crate::{
    counts::Counts,
    geometry::{Geometry, Latency, WALK_BASE_CYCLES},
    signal::Signal,
};

/// The sum of some counts.
pub(super) fn sum(counts: &Counts, signals: &[Signal]) -> u64 {
    signals.iter().map(|signal| counts[*signal]).sum()
}

/// Cycles of a page walk that reads one entry from the L2.
pub(super) fn walk_cycles(latency: &Latency) -> u64 {
    u64::from(WALK_BASE_CYCLES + latency.l2_cycles)
}

/// The cycles of a front-end component, equal in both naive architectures: without wrong paths
/// every line of code, translation and branch belongs to an instruction that completes.
pub(super) fn front_end(component: Component, counts: &Counts, geometry: &Geometry) -> u64 {
    let latency = &geometry.latency;
    // Fetch runs ahead of the pipeline by about half of the L2's latency.
    let fetch = |cycles: u32| u64::from(cycles - latency.l2_cycles / 2);
    let sum = |signals: &[Signal]| sum(counts, signals);
    match component {
        Component::L1i => counts[Signal::L2CodeHit] * fetch(latency.l2_cycles),
        Component::L2i => {
            counts[Signal::LlcCodeHit] * fetch(latency.llc_cycles)
                + counts[Signal::LlcCodeMiss] * fetch(latency.memory_cycles)
        }
        Component::Itlb => {
            counts[Signal::ItlbStlbHit] * u64::from(latency.stlb_cycles)
                + sum(Signal::FETCH_WALKS) * walk_cycles(latency)
        }
        Component::Branch => counts[Signal::Mispredicts] * u64::from(latency.mispredict_cycles),
        _ => 0,
    }
}

/// The cycles of a component.
pub(super) fn cycles(component: Component, counts: &Counts, geometry: &Geometry) -> u64 {
    let latency = &geometry.latency;
    let sum = |signals: &[Signal]| sum(counts, signals);
    match component {
        Component::L1d => {
            sum(&[Signal::L2ReadHit, Signal::L2RfoHit]) * u64::from(latency.l2_cycles)
        }
        Component::L2d => {
            sum(&[Signal::LlcReadHit, Signal::LlcRfoHit]) * u64::from(latency.llc_cycles)
                + sum(&[Signal::LlcReadMiss, Signal::LlcRfoMiss]) * u64::from(latency.memory_cycles)
        }
        Component::Dtlb => {
            (sum(Signal::LOAD_STLB_HITS) + sum(Signal::STORE_STLB_HITS))
                * u64::from(latency.stlb_cycles)
                + (sum(Signal::LOAD_WALKS) + sum(Signal::STORE_WALKS)) * walk_cycles(latency)
        }
        _ => front_end(component, counts, geometry),
    }
}
