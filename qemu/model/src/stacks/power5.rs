//! IBM POWER5's architecture: each cycle in which nothing completes counts for one cause.
//!
//! If the reorder buffer is empty, the cause is the miss or the misprediction that emptied it,
//! until new instructions enter; otherwise the cause is that of the oldest instruction's wait. The
//! cycles in which the buffer drains, and in which a branch is resolved, count for nothing.

use super::component::Component;
use crate::{counts::Counts, geometry::Geometry, signal::Signal};

/// The counter of a component.
pub(super) fn signal(component: Component) -> Signal {
    match component {
        Component::L1i => Signal::Power5L1i,
        Component::L2i => Signal::Power5L2i,
        Component::Itlb => Signal::Power5Itlb,
        Component::Branch => Signal::Power5Branch,
        Component::L1d => Signal::Power5L1d,
        Component::L2d => Signal::Power5L2d,
        Component::Dtlb => Signal::Power5Dtlb,
        Component::Units => Signal::Power5Units,
    }
}

/// Counts the cycles from `from` up to `until`, in which the buffer was empty or its oldest
/// instruction waited.
pub(super) fn waited(from: u64, until: u64, component: Component, counts: &mut Counts) {
    counts[signal(component)] += until.saturating_sub(from);
}

/// The bits besides the counters: two for each load in flight (L1D, L2, DTLB or none), and two for
/// the reason why the buffer is empty.
pub(super) fn bits(geometry: &Geometry) -> u64 {
    2 * u64::from(geometry.backend.loads) + 2
}
