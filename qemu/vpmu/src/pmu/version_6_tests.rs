//! Version 6 by the manuals: addresses and bits are written out, from Linux's
//! arch/x86/include/asm/msr-index.h and perf_event.h.

use tally_model::Privilege;

use super::tests::{Machine, USER_INSTRUCTIONS};
use crate::{
    pmu::access::{AccessResult, Unmodelled},
    profile::Profile,
};

const UMASK2: u64 = 0xff << 40;
const EQ: u64 = 1 << 36;

fn lunar_lake() -> Machine {
    Machine::new("lunar-lake", 10)
}

#[test]
fn rows_alias_the_legacy_registers_and_reach_more_counters() {
    let mut machine = lunar_lake();
    for index in 0..8 {
        machine.write(0x1900 + 4 * index, 0x9000_0000_0000 + u64::from(index));
        let want = AccessResult::Done(0x9000_0000_0000 + u64::from(index));
        assert_eq!([machine.read(0xc1 + index), machine.read(0x4c1 + index)], [want; 2]);
        machine.write(0x186 + index, 0xc4);
        assert_eq!(machine.read(0x1901 + 4 * index), AccessResult::Done(0xc4));
        // A legacy write sign-extends 32 bits.
        machine.write(0xc1 + index, 0xffff_fff0);
        assert_eq!(machine.read(0x1900 + 4 * index), AccessResult::Done((1 << 48) - 16));
    }
    for index in 0..4 {
        machine.write(0x1980 + 4 * index, 77);
        assert_eq!(machine.read(0x309 + index), AccessResult::Done(77));
    }
    machine.write(0x1901 + 4 * 9, USER_INSTRUCTIONS);
    machine.run(Privilege::User, 5);
    assert_eq!(machine.read(0x1900 + 4 * 9), AccessResult::Done(5));
    assert_eq!(machine.pmu.rdpmc(9, machine.core.counts()), AccessResult::Done(5));
}

#[test]
fn what_is_not_there_faults() {
    let mut machine = lunar_lake();
    // Counters 8 and 9 have no legacy registers. Counter 10, fixed counter 4 and the registers of
    // reloading do not exist.
    for msr in [0xc9, 0x4c9, 0x18e, 0x1928, 0x1929, 0x1902, 0x1903, 0x1990, 0x1982, 0x19ff] {
        assert_eq!(machine.read(msr), AccessResult::Fault, "{msr:#x}");
        assert_eq!(machine.write(msr, 0), AccessResult::Fault, "{msr:#x}");
    }
    for (msr, value) in [
        (0x1900, 1 << 48),
        (0x1980, 1 << 48),
        (0x1901, 1 << 21),
        (0x1901, 1 << 32),
        (0x1901, 1 << 35),
        (0x1901, 1 << 37),
        (0x1901, 1 << 48),
        (0x38f, 1 << 10),
        (0x390, 1 << 10),
    ] {
        assert_eq!(machine.write(msr, value), AccessResult::Fault, "{msr:#x} {value:#x}");
    }
    for value in [UMASK2, EQ] {
        assert_eq!(machine.write(0x1901, value), AccessResult::Done(0), "{value:#x}");
        assert_eq!(machine.write(0x186, value), AccessResult::Done(0), "{value:#x}");
    }
    assert_eq!(machine.pmu.rdpmc(10, machine.core.counts()), AccessResult::Fault);
    // Version 5 has neither the rows nor the fields.
    let mut before = Machine::new("sapphire-rapids", 8);
    assert_eq!(before.read(0x1900), AccessResult::Fault);
    assert_eq!(before.write(0x186, UMASK2), AccessResult::Fault);
}

#[test]
fn the_highest_counter_overflows() {
    let mut machine = lunar_lake();
    machine.write(0x1924, (1 << 48) - 10);
    machine.write(0x1925, USER_INSTRUCTIONS | 1 << 20);
    machine.run(Privilege::User, 12);
    assert_eq!(machine.read(0x38e), AccessResult::Done(1 << 9));
    assert!(machine.pmu.take_interrupt());
    assert_eq!(machine.write(0x390, 1 << 9), AccessResult::Done(0));
    assert_eq!(machine.read(0x38e), AccessResult::Done(0));
}

/// Conditional branches have the code C4H and, with the second unit mask, 111H (Intel's table of
/// Lion Cove); 11H alone is not in the table.
#[test]
fn the_second_unit_mask_is_a_part_of_the_event() {
    let pmu = lunar_lake().pmu;
    assert!(pmu.models(1 << 40 | 0x11c4, 0));
    assert!(!pmu.models(0x11c4, 0) && !pmu.models(2 << 40 | 0x11c4, 0));
    let mut machine = lunar_lake();
    let exactly_one = USER_INSTRUCTIONS | EQ | 1 << 24;
    machine.write(0x1901, exactly_one);
    assert_eq!(machine.pmu.take_unmodelled(), [Unmodelled::Select(exactly_one)]);
    // Without a counter mask there is no comparison.
    machine.write(0x1901, USER_INSTRUCTIONS | EQ);
    assert!(machine.pmu.take_unmodelled().is_empty());
}

#[test]
fn cpuid_has_masks_of_counters() {
    let pmu = lunar_lake().pmu;
    let of = |leaf, subleaf| pmu.cpuid(leaf, subleaf, [0; 4]);
    assert!(of(0, 0)[0] >= 0x23);
    assert_eq!(of(7, 0)[3] >> 15 & 1, 1, "hybrid");
    assert_eq!((of(7, 1)[0] >> 8 & 1, of(0x1a, 0)[0]), (1, 0x4000_0003));
    assert_eq!((of(0x23, 0)[0], of(0x23, 0)[1]), (0b11, 0b11));
    assert_eq!((of(0x23, 1)[0], of(0x23, 1)[1]), (0x3ff, 0xf));
    // What all cores of the processor have.
    let [eax, _, _, edx] = of(0xa, 0);
    assert_eq!((eax & 0xff, eax >> 8 & 0xff, edx & 0x1f), (6, 8, 3));
    let before = Machine::new("sapphire-rapids", 8).pmu;
    assert_eq!(before.cpuid(0x23, 0, [0; 4]), [0; 4]);
    assert_eq!(before.cpuid(7, 1, [0; 4]), [0; 4]);
}

#[test]
fn any_profile_of_intel_s_can_have_version_6() {
    let profile = Profile::find("icelake-server").and_then(|profile| profile.with_version(6));
    let mut machine = Machine::of(profile.expect("of Intel's"), 10);
    machine.write(0x1925, USER_INSTRUCTIONS);
    machine.run(Privilege::User, 3);
    assert_eq!(machine.read(0x1924), AccessResult::Done(3));
    assert_eq!(machine.pmu.cpuid(0xa, 0, [0; 4])[3] & 0x1f, 4, "no hybrid");
}
