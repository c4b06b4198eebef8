//! The five architectures: the signal that counts each component, and the hardware cost.

use super::{component::Component, fmt, naive, non_speculative, power5, sfmt};
use crate::{counts::Counts, geometry::Geometry, signal::Signal};

/// A counter architecture of paper 001.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Counts times penalties.
    Naive,
    /// Counts of completed instructions times penalties.
    NonSpeculative,
    /// IBM POWER5's completion stalls.
    Power5,
    /// The frontend miss event table.
    Fmt,
    /// The simplified frontend miss event table.
    Sfmt,
}

impl Architecture {
    /// All architectures, in the paper's order.
    pub const ALL: [Architecture; 5] = [
        Architecture::Naive,
        Architecture::NonSpeculative,
        Architecture::Power5,
        Architecture::Fmt,
        Architecture::Sfmt,
    ];

    /// The counter of a component; the naive architectures have none for units.
    pub fn signal(self, component: Component) -> Option<Signal> {
        let naive = match component {
            Component::L1i => Some((Signal::NaiveL1i, Signal::NonSpecL1i)),
            Component::L2i => Some((Signal::NaiveL2i, Signal::NonSpecL2i)),
            Component::Itlb => Some((Signal::NaiveItlb, Signal::NonSpecItlb)),
            Component::Branch => Some((Signal::NaiveBranch, Signal::NonSpecBranch)),
            Component::L1d => Some((Signal::NaiveL1d, Signal::NonSpecL1d)),
            Component::L2d => Some((Signal::NaiveL2d, Signal::NonSpecL2d)),
            Component::Dtlb => Some((Signal::NaiveDtlb, Signal::NonSpecDtlb)),
            Component::Units => None,
        };
        match self {
            Architecture::Naive => naive.map(|(naive, _)| naive),
            Architecture::NonSpeculative => naive.map(|(_, non_speculative)| non_speculative),
            Architecture::Power5 => Some(power5::signal(component)),
            Architecture::Fmt => Some(fmt::signal(component)),
            Architecture::Sfmt => Some(sfmt::signal(component)),
        }
    }

    /// Hardware cost in bits besides the global counters.
    pub fn bits(self, geometry: &Geometry) -> u64 {
        match self {
            Architecture::Naive => 0,
            Architecture::NonSpeculative => non_speculative::bits(geometry),
            Architecture::Power5 => power5::bits(geometry),
            Architecture::Fmt => fmt::bits(geometry),
            Architecture::Sfmt => sfmt::bits(geometry),
        }
    }

    /// The bits of one more counter in each row of a table, for cycles of units.
    pub fn units_bits(geometry: &Geometry) -> u64 {
        fmt::counter_bits(geometry)
    }
}

/// Computes the signals of the naive architectures from the counts.
pub(crate) fn charge_products(counts: &mut Counts, geometry: &Geometry) {
    for component in Component::ALL {
        if let Some(signal) = Architecture::Naive.signal(component) {
            counts[signal] = naive::cycles(component, counts, geometry);
        }
        if let Some(signal) = Architecture::NonSpeculative.signal(component) {
            counts[signal] = non_speculative::cycles(component, counts, geometry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_ice_lake_has_its_bits() {
        let geometry = Geometry::ICELAKE_SERVER;
        // 352 entries of the reorder buffer, 128 loads: 88 rows of 9 + 1 + 12 bits, three pointers
        // of 7 bits, and two bits a load.
        let shared = 88 * 22 + 3 * 7 + 2 * 128;
        let want = [0, 6 * 352, 2 * 128 + 2, shared + 88 * 36, shared + 36 + 352];
        assert_eq!(Architecture::ALL.map(|one| one.bits(&geometry)), want);
    }

    #[test]
    fn naive_cycles_are_counts_times_penalties() {
        let geometry = Geometry::ICELAKE_SERVER;
        let mut counts = Counts::ZERO;
        counts[Signal::Mispredicts] = 3;
        counts[Signal::L2ReadHit] = 5;
        counts[Signal::LoadL2Hit] = 4;
        counts[Signal::LlcReadMiss] = 2;
        charge_products(&mut counts, &geometry);
        let latency = &geometry.latency;
        let want = |times: u64, cycles: u32| times * u64::from(cycles);
        assert_eq!(counts[Signal::NaiveBranch], want(3, latency.mispredict_cycles));
        assert_eq!(counts[Signal::NonSpecBranch], want(3, latency.mispredict_cycles));
        assert_eq!(counts[Signal::NaiveL1d], want(5, latency.l2_cycles));
        assert_eq!(counts[Signal::NonSpecL1d], want(4, latency.l2_cycles));
        assert_eq!(counts[Signal::NaiveL2d], want(2, latency.memory_cycles));
        assert_eq!(counts[Signal::NonSpecL2d], 0);
    }
}
