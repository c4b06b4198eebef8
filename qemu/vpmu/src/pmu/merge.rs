//! Merged pairs of AMD's counters, for events that can happen more than 15 times a cycle (processor
//! programming reference of family 19h, "Large Increment per Cycle Events").
//!
//! The event Merge on an odd counter makes its low 16 bits the upper part of the even counter
//! before it. The model has no numbers of operations in a cycle, so without Merge such an event
//! counts nothing, and that is reported.

use tally_model::Counts;

use crate::{
    pmu::{
        access::{Unmodelled, select},
        state::VirtualPmu,
    },
    profile::Vendor,
};

/// The bits of an event code in a select.
const CODE: u64 = 0xf << 32 | 0xff;
/// Event code of Merge, 0FFFH, and of retired floating-point operations, 003H.
const MERGE: u64 = CODE;
const FLOPS: u64 = 0x003;
/// Bits of an odd counter that are the upper part of a merged one.
const UPPER: u64 = 0xffff;

impl VirtualPmu {
    fn amd_code(&self, index: usize) -> Option<u64> {
        let select = self.selects.get(index).filter(|_| self.profile.vendor == Vendor::Amd)?;
        Some(select & CODE)
    }

    /// Returns whether the counter after this one is its upper part.
    fn is_merged(&self, index: usize) -> bool {
        let is_on = self.selects.get(index + 1).is_some_and(|next| next & select::EN != 0);
        index.is_multiple_of(2) && is_on && self.amd_code(index + 1) == Some(MERGE)
    }

    /// Returns whether a counter's select counts nothing for reasons of merging: it is Merge, or it
    /// needs it. Reports the latter.
    pub(super) fn is_part_of_none(&mut self, index: usize) -> bool {
        match self.amd_code(index) {
            Some(MERGE) => true,
            Some(FLOPS) if !self.is_merged(index) => {
                self.unmodelled.push(Unmodelled::Unmerged(self.selects[index]));
                true
            }
            _ => false,
        }
    }

    /// The value of a counter as software reads it: with its upper part, if it has one.
    pub(super) fn merged_value(&self, index: usize, counts: &[Counts; 2]) -> u64 {
        let value = self.value(index, counts);
        if !self.is_merged(index) {
            return value;
        }
        value | (self.value(index + 1, counts) & UPPER) << self.profile.width
    }

    /// Adds a counter's overflow to its upper part. Returns whether the whole has overflowed.
    pub(super) fn carry(&mut self, index: usize, counts: &[Counts; 2]) -> bool {
        if !self.is_merged(index) {
            return true;
        }
        let upper = (self.value(index + 1, counts) + 1) & UPPER;
        self.set_value(index + 1, upper, counts);
        upper == 0
    }
}

#[cfg(test)]
mod tests {
    use tally_model::{Block, Branch, Insn, Privilege, Signal};

    use super::*;
    use crate::pmu::{AccessResult, tests::Machine};

    const ALL_FLOPS: u64 = 0x0f00 | FLOPS | select::USR | select::EN;
    /// Select of Merge, enabled, and nothing else, which Linux writes.
    const MERGE_ENABLED: u64 = 0xf_0040_00ff;

    fn control(counter: u32) -> u32 {
        0xc001_0200 + 2 * counter
    }

    fn counter(counter: u32) -> u32 {
        0xc001_0201 + 2 * counter
    }

    /// Runs FMAs of eight elements in ring 3: 16 operations each.
    fn calculate(machine: &mut Machine, times: usize) {
        let flops = Some((Signal::FlopsFused, 16));
        let insns = vec![Insn { uops: 1, flops, ..Insn::default() }; times];
        let width = machine.core.geometry().width;
        let block = Block::new(Privilege::User, width, (0, 0), Branch::default(), &insns);
        machine.core.retire(&block, 0);
    }

    #[test]
    fn a_merged_pair_counts_every_operation() {
        for profile in ["zen3", "zen4"] {
            for even in [0, 2, 4] {
                let mut machine = Machine::new(profile, 6);
                machine.write(control(even + 1), MERGE_ENABLED);
                machine.write(control(even), ALL_FLOPS);
                calculate(&mut machine, 100);
                assert_eq!(machine.read(counter(even)), AccessResult::Done(1600), "{profile}");
                assert_eq!(machine.read(counter(even + 1)), AccessResult::Done(0));
                // Divisions only.
                machine.write(control(even), ALL_FLOPS & !0x0b00);
                calculate(&mut machine, 100);
                assert_eq!(machine.read(counter(even)), AccessResult::Done(1600));
                assert!(machine.pmu.take_unmodelled().is_empty());
            }
        }
    }

    #[test]
    fn a_pair_has_64_bits_and_overflows_once() {
        let mut machine = Machine::new("zen4", 6);
        machine.write(control(3), MERGE_ENABLED);
        machine.write(control(2), ALL_FLOPS | select::INT);
        machine.write(counter(3), 0xfffe);
        machine.write(counter(2), (1 << 48) - 8);
        calculate(&mut machine, 1);
        // The carry is no overflow.
        assert_eq!(machine.read(counter(2)), AccessResult::Done(0xffff << 48 | 8));
        assert_eq!(machine.read(0xc000_0300), AccessResult::Done(0));
        assert!(!machine.pmu.take_interrupt());
        machine.write(counter(2), (1 << 48) - 8);
        calculate(&mut machine, 1);
        assert_eq!(machine.pmu.rdpmc(2, machine.core.counts()), AccessResult::Done(8));
        assert_eq!(machine.read(0xc000_0300), AccessResult::Done(1 << 2));
        assert!(machine.pmu.take_interrupt());
    }

    #[test]
    fn without_merge_the_event_counts_nothing_and_is_reported() {
        for (event, next, value) in [
            (2, 3, 0),
            (2, 3, MERGE_ENABLED & !select::EN),
            // Merge belongs on the odd counter above the event's.
            (3, 4, MERGE_ENABLED),
            (5, 4, MERGE_ENABLED),
        ] {
            let mut machine = Machine::new("zen4", 6);
            machine.write(control(next), value);
            machine.write(control(event), ALL_FLOPS);
            let reported = machine.pmu.take_unmodelled();
            assert_eq!(reported, [Unmodelled::Unmerged(ALL_FLOPS)], "{event} {next} {value:#x}");
            calculate(&mut machine, 100);
            assert_eq!(machine.read(counter(event)), AccessResult::Done(0));
        }
    }
}
