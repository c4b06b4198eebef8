//! The simplified table (sFMT): the FMT with one set of counters of the instruction side for all
//! branches, and a bit in each entry of the reorder buffer that marks an instruction that waited
//! there.
//!
//! Completion of such an instruction adds the set to the global counters and clears the set.
//! Completion of a mispredicted branch clears the set without adding it: the cycles counted since
//! the branch belong to the wrong path, or to the right path before the branch retired, and these
//! are lost.

use super::{component::Component, fmt};
use crate::{counts::Counts, geometry::Geometry, signal::Signal};

/// The counter of a component. Branches and the back end use the FMT's.
pub(super) fn signal(component: Component) -> Signal {
    match component {
        Component::L1i => Signal::SfmtL1i,
        Component::L2i => Signal::SfmtL2i,
        Component::Itlb => Signal::SfmtItlb,
        other => fmt::signal(other),
    }
}

/// The bits besides the global counters.
pub(super) fn bits(geometry: &Geometry) -> u64 {
    fmt::shared_bits(geometry) + fmt::miss_bits() + u64::from(geometry.reorder_uops)
}

/// The table, represented by the last cycle in which it was cleared: an instruction whose wait was
/// counted since then completes later than every mispredicted branch before it, and adds the wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sfmt {
    cleared_at: u64,
}

impl Sfmt {
    /// Clears the set at `cycle`, when a mispredicted branch completes.
    pub(super) fn clear(&mut self, cycle: u64) {
        self.cleared_at = self.cleared_at.max(cycle);
    }

    /// Counts the cycles from `from` up to `until`, in which dispatch got nothing because of a
    /// miss.
    pub(super) fn unfed(&self, from: u64, until: u64, miss: Component, counts: &mut Counts) {
        counts[signal(miss)] += until.saturating_sub(from.max(self.cleared_at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_before_a_mispredicted_branch_completes_are_lost() {
        let (mut sfmt, mut counts) = (Sfmt::default(), Counts::ZERO);
        sfmt.unfed(10, 30, Component::L1i, &mut counts);
        sfmt.clear(50);
        sfmt.unfed(35, 45, Component::L2i, &mut counts);
        sfmt.unfed(45, 60, Component::Itlb, &mut counts);
        let counted = [Signal::SfmtL1i, Signal::SfmtL2i, Signal::SfmtItlb].map(|s| counts[s]);
        assert_eq!(counted, [20, 0, 10]);
    }
}
