//! The naive architecture of completed instructions: it counts at retirement, as Intel's Pentium 4
//! does by tags that follow an instruction through the pipeline.

use super::{component::Component, naive};
use crate::{counts::Counts, geometry::Geometry, signal::Signal};

/// Tags of an entry of the reorder buffer: L1I, L2 for code, ITLB, L1D, L2 for data, DTLB. A tag
/// for mispredictions is not needed, as the buffer marks mispredicted branches in any case.
const TAGS: u64 = 6;

/// The cycles of a component.
pub(super) fn cycles(component: Component, counts: &Counts, geometry: &Geometry) -> u64 {
    let latency = &geometry.latency;
    match component {
        Component::L1d => {
            (counts[Signal::LoadL2Hit] + counts[Signal::L2RfoHit]) * u64::from(latency.l2_cycles)
        }
        Component::L2d => {
            (counts[Signal::LoadL3Hit] + counts[Signal::LlcRfoHit]) * u64::from(latency.llc_cycles)
                + (counts[Signal::LoadL3Miss] + counts[Signal::LlcRfoMiss])
                    * u64::from(latency.memory_cycles)
        }
        Component::Dtlb => {
            (naive::sum(counts, Signal::LOAD_STLB_HITS)
                + naive::sum(counts, Signal::STORE_STLB_HITS))
                * u64::from(latency.stlb_cycles)
                + (counts[Signal::LoadsWalked] + counts[Signal::StoresWalked])
                    * naive::walk_cycles(latency)
        }
        _ => naive::front_end(component, counts, geometry),
    }
}

/// The bits besides the counters.
pub(super) fn bits(geometry: &Geometry) -> u64 {
    TAGS * u64::from(geometry.reorder_uops)
}
