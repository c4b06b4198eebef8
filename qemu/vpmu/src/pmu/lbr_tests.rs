//! Tests of the last branch records: registers, the ring, filters, call stacks, freezing.

use tally_model::{BranchKind, Privilege};

use super::{
    AccessResult,
    access::select,
    tests::{Machine, USER_INSTRUCTIONS},
};
use crate::{
    Vendor,
    lbr::{TakenBranch, TakenKind},
};

const DEBUGCTL: u32 = 0x1d9;
const USER: [Privilege; 2] = [Privilege::User; 2];

/// The processors, and how each is switched on for all branches of ring 3.
const ON: [(&str, &[(u32, u64)]); 3] = [
    ("icelake-server", &[(0x1c8, 1), (DEBUGCTL, 1)]),
    ("sapphire-rapids", &[(0x14ce, 1 | 1 << 2 | 0x7f << 16)]),
    ("zen4", &[(0xc000_010e, 1), (0xc000_010f, 1 << 6)]),
];

fn machine(profile: &str) -> Machine {
    let mut machine = Machine::new(profile, 4);
    let (_, writes) = ON.iter().find(|(name, _)| *name == profile).expect("it has records");
    assert!(!machine.pmu.records_branches());
    for (msr, value) in *writes {
        assert_eq!(machine.write(*msr, *value), AccessResult::Done(0), "{profile} {msr:#x}");
    }
    assert!(machine.pmu.records_branches());
    machine
}

fn get(machine: &mut Machine, msr: u32) -> u64 {
    let AccessResult::Done(value) = machine.read(msr) else { panic!("MSR {msr:#x}") };
    value
}

/// The addresses of the entries by age, the last first, without the bits that are no address.
fn read(machine: &mut Machine) -> Vec<(u64, u64)> {
    let address = |value: u64| value & 0xffff_ffff_ffff;
    let top = match machine.read(0x1c9) {
        AccessResult::Done(top) => Some(top as u32),
        _ => None,
    };
    let depth = if machine.read(0xc001_0300) == AccessResult::Foreign { 32 } else { 16 };
    let registers = |age: u32| match (top, depth) {
        (Some(top), _) => [0x680, 0x6c0].map(|first| first + (top + 32 - age) % 32),
        (None, 32) => [0x1500 + age, 0x1600 + age],
        _ => [0xc001_0300 + 2 * age, 0xc001_0301 + 2 * age],
    };
    let entry = |age| registers(age).map(|msr| address(get(machine, msr)));
    (0..depth).map(entry).map(|[from, to]| (from, to)).collect()
}

fn near(kind: BranchKind, from: u64, to: u64) -> TakenBranch {
    let kind = TakenKind::Near(kind);
    TakenBranch { from, to, kind, rings: USER, is_wrong: false, length: 2 }
}

/// Records jumps from 1 to 101, 2 to 102 and so on.
fn jump(machine: &mut Machine, count: u64) {
    for from in 1..=count {
        machine.pmu.record_branch(&near(BranchKind::Jump, from, from + 100), 0);
    }
}

#[test]
fn registers_keep_their_valid_bits_and_refuse_others() {
    for (profile, holds, refuses) in [
        (
            "icelake-server",
            &[(0x1c8, 0x3ff), (0x1c9, 31), (0x69f, 7), (0xddf, 1 << 63)][..],
            &[(0x1c8, 1 << 10), (0x1c9, 32)][..],
        ),
        (
            "sapphire-rapids",
            &[(0x14ce, 0x7f_000e), (0x14cf, 16), (0x1500, 7), (0x120f, 5)],
            &[(0x14ce, 1 << 4), (0x14cf, 0), (0x14cf, 24), (0x14cf, 64), (0x14cf, 9)],
        ),
        (
            "zen4",
            &[(0xc000_010e, 0x1ff), (0xc000_010f, 0x40), (0xc001_031f, 3)],
            &[(0xc000_010e, 1 << 9), (0xc000_010f, 1)],
        ),
    ] {
        let mut machine = Machine::new(profile, 4);
        for (msr, value) in holds {
            assert_eq!(machine.write(*msr, *value), AccessResult::Done(0), "{profile} {msr:#x}");
            assert_eq!(get(&mut machine, *msr), *value, "{profile} {msr:#x}");
        }
        for (msr, value) in refuses {
            assert_eq!(machine.write(*msr, *value), AccessResult::Fault, "{profile} {msr:#x}");
        }
    }
}

#[test]
fn cpuid_and_capabilities_announce_the_kind() {
    let formats = [("icelake-server", 5), ("sapphire-rapids", 0x3f), ("lunar-lake", 0x3f)];
    for (profile, format) in formats {
        assert_eq!(get(&mut Machine::new(profile, 4), 0x345) & 0x3f, format, "{profile}");
    }
    let leaf = |profile, leaf| Machine::new(profile, 4).pmu.cpuid(leaf, 0, [0; 4]);
    assert_eq!(leaf("sapphire-rapids", 7)[3], 1 << 19);
    assert_eq!(leaf("icelake-server", 7)[3], 0);
    assert_eq!(leaf("sapphire-rapids", 0x1c), [0b1011, 0b111, 0b111, 0]);
    assert_eq!(leaf("zen4", 0x8000_0022)[..2], [0b111, 4 | 16 << 4]);
    assert_eq!(Machine::new("zen3", 4).read(0xc001_0300), AccessResult::Foreign);
}

#[test]
fn the_ring_has_the_last_branches() {
    for (profile, _) in ON {
        let mut machine = machine(profile);
        jump(&mut machine, 3);
        let entries = read(&mut machine);
        assert_eq!(entries[..4], [(3, 103), (2, 102), (1, 101), (0, 0)], "{profile}");
        jump(&mut machine, 100);
        let all = read(&mut machine);
        let expected = (0..all.len() as u64).map(|age| (100 - age, 200 - age));
        assert!(all.into_iter().eq(expected), "{profile}");
    }
}

#[test]
fn a_smaller_depth_clears_and_limits_the_ring() {
    let mut machine = machine("sapphire-rapids");
    jump(&mut machine, 20);
    machine.write(0x14cf, 8);
    assert!(read(&mut machine).iter().all(|entry| *entry == (0, 0)));
    jump(&mut machine, 20);
    let entries = read(&mut machine);
    assert_eq!((entries[7], entries[8]), ((13, 113), (0, 0)));
    machine.write(0x1508, 5);
    assert_eq!(get(&mut machine, 0x1508), 0, "there is no such entry");
}

#[test]
fn privileges_are_filtered_by_where_a_branch_leads() {
    let [user, kernel] = [Privilege::User, Privilege::Kernel];
    for (profile, _) in ON {
        let mut machine = machine(profile);
        for (from, rings) in [[user, kernel], [kernel, kernel], [kernel, user]]
            .into_iter()
            .zip(1..)
            .map(|(rings, from)| (from, rings))
        {
            let far =
                TakenBranch { rings, kind: TakenKind::Far, ..near(BranchKind::None, from, 9) };
            machine.pmu.record_branch(&far, 0);
        }
        let from = if profile == "sapphire-rapids" { 0xffff_ffff } else { 3 };
        assert_eq!(read(&mut machine)[..2], [(from, 9), (0, 0)], "{profile}");
    }
}

/// The kinds, and the bits of the older filter and of the architectural one, and the type.
const KINDS: [(BranchKind, u32, u32, u64); 6] = [
    (BranchKind::Cond, 2, 16, 0),
    (BranchKind::Call, 3, 19, 4),
    (BranchKind::IndirectCall, 4, 20, 3),
    (BranchKind::Return, 5, 21, 5),
    (BranchKind::IndirectJump, 6, 18, 1),
    (BranchKind::Jump, 7, 17, 2),
];

#[test]
fn each_type_is_filtered_alone() {
    for (index, (kind, select, control, number)) in KINDS.into_iter().enumerate() {
        let at = index as u64 + 1;
        for (profile, msr, value) in [
            ("icelake-server", 0x1c8, 0x1ff & !2 & !(1 << select)),
            ("zen4", 0xc000_010e, 0x1ff & !2 & !(1 << select)),
            ("sapphire-rapids", 0x14ce, 1 | 1 << 2 | 1 << control),
        ] {
            let mut machine = machine(profile);
            machine.write(msr, value);
            for ((kind, ..), from) in KINDS.into_iter().zip(1..) {
                machine.pmu.record_branch(&near(kind, from, 50), 0);
            }
            assert_eq!(read(&mut machine)[..2], [(at, 50), (0, 0)], "{profile} {kind:?}");
            if profile == "sapphire-rapids" {
                assert_eq!(get(&mut machine, 0x1200) >> 56, 1 << 4 | number, "{kind:?}");
            }
        }
    }
}

#[test]
fn information_has_the_prediction_and_the_cycles_since_the_last_record() {
    for (profile, infos, valid) in [
        ("icelake-server", [0xdc1, 0xdc2, 0xdc3], 0),
        ("sapphire-rapids", [0x1202, 0x1201, 0x1200], 1),
    ] {
        let mut machine = machine(profile);
        let width = u64::from(machine.core.geometry().width);
        let branch = near(BranchKind::Cond, 1, 5);
        let cycles = [7, 7 + 20, 7 + 20 + 100_000];
        for (cycles, is_wrong) in cycles.into_iter().zip([false, true, false]) {
            machine.pmu.record_branch(&TakenBranch { is_wrong, ..branch }, cycles * width);
        }
        let expected = [7, 20 | 1 << 63, 0xffff].map(|info| info | valid << 60);
        assert_eq!(infos.map(|msr| get(&mut machine, msr)), expected, "{profile}");
    }
    let mut machine = machine("zen4");
    let branch = TakenBranch { is_wrong: true, ..near(BranchKind::Cond, !0xfff, 5) };
    machine.pmu.record_branch(&branch, 0);
    assert_eq!(get(&mut machine, 0xc001_0300), !0xfff, "mispredicted, and the sign");
    assert_eq!(get(&mut machine, 0xc001_0301), 5 | 1 << 63, "valid");
}

#[test]
fn a_call_stack_has_the_calls_that_have_not_returned() {
    for (profile, msr, value) in [
        ("icelake-server", 0x1c8, 0x3ff & !2 & !(0b1111 << 2) | 1 << 2),
        ("sapphire-rapids", 0x14ce, 0x38_000d),
    ] {
        let mut machine = machine(profile);
        machine.write(msr, value);
        let mut record = |kind, from, to| machine.pmu.record_branch(&near(kind, from, to), 0);
        record(BranchKind::Call, 1, 101);
        record(BranchKind::Call, 2, 102);
        record(BranchKind::Call, 7, 9);
        record(BranchKind::Jump, 3, 103);
        record(BranchKind::Return, 4, 3);
        record(BranchKind::IndirectCall, 5, 105);
        assert_eq!(read(&mut machine)[..3], [(5, 105), (1, 101), (0, 0)], "{profile}");
        let mut record = |kind, from, to| machine.pmu.record_branch(&near(kind, from, to), 0);
        (0..5).for_each(|_| record(BranchKind::Return, 6, 1));
        record(BranchKind::Call, 8, 108);
        assert_eq!(read(&mut machine)[..2], [(8, 108), (0, 0)], "{profile}");
    }
}

/// Lets a general counter overflow, with an interrupt.
fn overflow(machine: &mut Machine) {
    let is_intel = machine.pmu.profile().vendor == Vendor::Intel;
    let [counter, selector] = if is_intel { [0x4c1, 0x186] } else { [0xc001_0201, 0xc001_0200] };
    machine.write(counter, (1 << 48) - 1);
    machine.write(selector, USER_INSTRUCTIONS | select::INT);
    machine.run(Privilege::User, 2);
    machine.pmu.sync(machine.core.counts());
    assert!(machine.pmu.take_interrupt());
}

#[test]
fn an_interrupt_freezes_the_records_if_enabled() {
    for (profile, status, clear, freezes) in [
        ("icelake-server", 0x38e, 0x390, 1 << 11 | 1),
        ("sapphire-rapids", 0x38e, 0x390, 1 << 11),
        ("zen4", 0xc000_0300, 0xc000_0302, 1 << 11),
        ("icelake-server", 0x38e, 0x390, 1),
    ] {
        let mut machine = machine(profile);
        machine.write(DEBUGCTL, freezes);
        overflow(&mut machine);
        jump(&mut machine, 2);
        let is_frozen = freezes >> 11 == 1;
        assert_eq!(get(&mut machine, status) >> 58 & 1 == 1, is_frozen, "{profile}");
        assert_eq!(machine.pmu.records_branches(), !is_frozen, "{profile}");
        assert_eq!(read(&mut machine)[0] == (0, 0), is_frozen, "{profile}");
        machine.write(clear, 1 << 58);
        jump(&mut machine, 2);
        assert_eq!(read(&mut machine)[0], (2, 102), "{profile}");
    }
}
