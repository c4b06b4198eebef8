//! Load latency: an event of the loads whose latency exceeds the threshold of a register, and whose
//! records have the access's latency and source (SDM vol. 3, "Load Latency Performance Monitoring
//! Facility").
//!
//! A processor tags some of the loads and counts the tagged ones alone; here every load is tagged.

use tally_model::Signal::SlowLoads;

use crate::{event::Event, pmu::access::select, profile::PebsKind};

/// The place of `MSR_PEBS_LD_LAT_THRESHOLD` among the extra registers.
pub(super) const SLOT: usize = 3;
/// The bits of the register: the cycles.
pub(super) const VALID: u64 = 0xffff;
/// The least threshold in cycles.
const LEAST: u32 = 3;
/// Bits of a select that encode the event: code, unit mask, edge, invert and counter mask.
const ENCODING: u64 = 0xffff | select::EDGE | select::INV | 0xff << select::CMASK_SHIFT;

/// The event, on every counter.
pub(super) static EVENT: Event = Event::new(
    "MEM_TRANS_RETIRED.LOAD_LATENCY",
    0xcd,
    0x01,
    &[SlowLoads],
    "Loads retired whose latency exceeded a threshold.",
);

/// Returns whether a select value selects the event.
pub(super) fn is_selected(value: u64) -> bool {
    value & ENCODING == 0x01cd
}

/// Returns whether general counter `index` has the event: on Golden Cove not the first, on Lion
/// Cove not the first two (Linux, `intel_glc_event_constraints`, `intel_lnc_event_constraints`).
pub(super) fn is_on(kind: PebsKind, index: usize) -> bool {
    let first = match kind {
        PebsKind::IceLake => 0,
        PebsKind::SapphireRapids => 1,
        PebsKind::LunarLake | PebsKind::PantherLake => 2,
    };
    index >= first
}

/// Returns whether records can have the latency and the source: on Golden Cove only while another
/// counter counts event 03H, unit mask 82H (Linux, `PMU_FL_MEM_LOADS_AUX`).
pub(super) fn is_complete(kind: PebsKind, mut selects: impl Iterator<Item = u64>) -> bool {
    let is_auxiliary = |value: u64| value & select::EN != 0 && value & ENCODING == 0x8203;
    kind != PebsKind::SapphireRapids || selects.any(is_auxiliary)
}

/// The latency in cycles above which loads have the event, by the register's value.
pub(super) fn threshold(value: u64) -> u32 {
    ((value & VALID) as u32).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_and_control_bits_are_no_part_of_the_event() {
        assert!(is_selected(0x01cd) && is_selected(select::EN | select::USR | 0x01cd));
        assert!(is_selected(select::ADAPTIVE | select::INT | 0x01cd));
        assert!(!is_selected(0x02cd) && !is_selected(1 << select::CMASK_SHIFT | 0x01cd));
    }

    #[test]
    fn golden_cove_needs_another_counter_and_not_the_first() {
        let auxiliary = select::EN | select::USR | 0x8203;
        assert!(is_complete(PebsKind::IceLake, [].into_iter()));
        assert!(!is_complete(PebsKind::SapphireRapids, [0x8203, 0x01cd].into_iter()));
        assert!(is_complete(PebsKind::SapphireRapids, [0x01cd, auxiliary].into_iter()));
        assert!([0, 1].map(|index| is_on(PebsKind::SapphireRapids, index)) == [false, true]);
        assert!([1, 2].map(|index| is_on(PebsKind::LunarLake, index)) == [false, true]);
        assert!(is_complete(PebsKind::LunarLake, [].into_iter()));
        assert!(is_on(PebsKind::IceLake, 0));
    }

    #[test]
    fn a_threshold_is_at_least_three_cycles() {
        assert_eq!([0, 2, 4, 0x1_0080].map(threshold), [3, 3, 4, 0x80]);
    }
}
