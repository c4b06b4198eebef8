//! Tests of the register rules, one by one.

use tally_model::{Block, Branch, Core, Insn, Privilege};

use super::{
    AccessResult, Unmodelled, VirtualPmu,
    access::{STATUS_FROZEN, select},
};
use crate::profile::Profile;

pub(super) struct Machine {
    pub(super) pmu: VirtualPmu,
    pub(super) core: Core,
}

impl Machine {
    pub(super) fn new(profile: &str, counters: u8) -> Machine {
        Machine::of(Profile::find(profile).expect("a profile of that name"), counters)
    }

    pub(super) fn of(profile: Profile, counters: u8) -> Machine {
        Machine { pmu: VirtualPmu::new(profile, counters), core: Core::new(&profile.geometry) }
    }

    pub(super) fn run(&mut self, ring: Privilege, instructions: usize) {
        let insns = vec![Insn { uops: 1, ..Insn::default() }; instructions];
        let width = self.core.geometry().width;
        self.core.retire(&Block::new(ring, width, (0, 0), Branch::default(), &insns), 0);
    }

    pub(super) fn write(&mut self, msr: u32, value: u64) -> AccessResult {
        self.pmu.wrmsr(msr, value, self.core.counts())
    }

    pub(super) fn read(&mut self, msr: u32) -> AccessResult {
        self.pmu.rdmsr(msr, self.core.counts())
    }

    /// PERF_CAPABILITIES without the bits of PEBS and of branch records.
    fn other_capabilities(&mut self) -> u64 {
        let AccessResult::Done(value) = self.read(0x345) else { panic!("it is there") };
        value & !0x4fff
    }
}

pub(super) const USER_INSTRUCTIONS: u64 = 0xc0 | select::USR | select::EN;

#[test]
fn a_counter_counts_its_ring_only() {
    for (profile, select, counter) in
        [("icelake-server", 0x186, 0xc1), ("zen4", 0xc001_0200, 0xc001_0201)]
    {
        let mut machine = Machine::new(profile, 4);
        machine.run(Privilege::User, 5);
        assert_eq!(machine.write(select, USER_INSTRUCTIONS), AccessResult::Done(0));
        machine.run(Privilege::User, 7);
        machine.run(Privilege::Kernel, 100);
        assert_eq!(machine.read(counter), AccessResult::Done(7));
        assert_eq!(machine.pmu.rdpmc(0, machine.core.counts()), AccessResult::Done(7));
    }
}

#[test]
fn an_overflow_sets_status_and_raises_one_interrupt() {
    let mut machine = Machine::new("icelake-server", 4);
    machine.write(0x4c2, (1 << 48) - 10);
    machine.write(0x187, USER_INSTRUCTIONS | select::INT);
    machine.run(Privilege::User, 9);
    assert_eq!(machine.read(0x38e), AccessResult::Done(0));
    assert!(!machine.pmu.take_interrupt());
    machine.run(Privilege::User, 4);
    assert_eq!(machine.read(0x38e), AccessResult::Done(2));
    assert!(machine.pmu.take_interrupt());
    assert!(!machine.pmu.take_interrupt());
    assert_eq!(machine.read(0xc2), AccessResult::Done(3));
    assert_eq!(machine.write(0x390, 2), AccessResult::Done(0));
    assert_eq!(machine.read(0x38e), AccessResult::Done(0));
}

#[test]
fn the_bound_on_slots_to_overflow_holds_to_the_last_instruction() {
    let mut machine = Machine::new("zen4", 6);
    machine.write(0xc001_0201, (1 << 48) - 1_000);
    machine.write(0xc001_0200, USER_INSTRUCTIONS | select::INT);
    let mut ran = 0;
    while !machine.pmu.take_interrupt() {
        let bound = machine.core.clock() + machine.pmu.slots_to_overflow(machine.core.counts());
        while machine.core.clock() < bound || machine.core.clock() == 0 {
            machine.run(Privilege::User, 1);
            ran += 1;
        }
        machine.run(Privilege::User, 1);
        ran += 1;
        machine.pmu.sync(machine.core.counts());
    }
    assert!((1_000..1_010).contains(&ran), "{ran}");
}

#[test]
fn legacy_writes_are_sign_extended_and_full_writes_fault_beyond_the_width() {
    let mut machine = Machine::new("icelake-server", 4);
    machine.write(0xc1, 0x1234_5678_ffff_fff0);
    assert_eq!(machine.read(0x4c1), AccessResult::Done((1 << 48) - 16));
    machine.write(0xc1, 0xffff_ffff_7fff_ffff);
    assert_eq!(machine.read(0xc1), AccessResult::Done(0x7fff_ffff));
    assert_eq!(machine.write(0x4c1, 1 << 48), AccessResult::Fault);
    assert_eq!(machine.write(0x309, 1 << 48), AccessResult::Fault);
}

#[test]
fn intel_reserved_bits_fault() {
    let mut machine = Machine::new("icelake-server", 4);
    for (msr, value) in [
        (0x186, 1 << 21),
        (0x186, 1 << 32),
        (0x38d, 1 << 2),
        (0x38d, 1 << 16),
        (0x38e, 0),
        (0x38f, 1 << 4),
        (0x38f, 1 << 36),
        (0x390, 1 << 4),
        (0x391, 1 << 40),
        (0x345, 0),
        (0x392, 0),
        (0x18a, 0),
        (0xc5, 0),
        (0x4c5, 0),
        (0x30d, 0),
    ] {
        assert_eq!(machine.write(msr, value), AccessResult::Fault, "{msr:#x} <- {value:#x}");
    }
    assert_eq!(machine.write(0x38f, 0xf_0000_000f), AccessResult::Done(0));
    assert_eq!(machine.write(0x17, 0), AccessResult::Foreign);
    for index in [4, 1 << 30 | 4, 1 << 29 | 1, 1 << 31] {
        assert_eq!(machine.pmu.rdpmc(index, machine.core.counts()), AccessResult::Fault);
    }
}

#[test]
fn fixed_counters_follow_their_control_and_the_global_one() {
    let mut machine = Machine::new("icelake-server", 4);
    machine.write(0x38d, 0x2);
    machine.run(Privilege::User, 3);
    assert_eq!(machine.read(0x309), AccessResult::Done(0), "global control is still off");
    machine.write(0x38f, 1 << 32);
    machine.run(Privilege::User, 3);
    machine.run(Privilege::Kernel, 3);
    assert_eq!(machine.read(0x309), AccessResult::Done(3));
    assert_eq!(machine.pmu.rdpmc(1 << 30, machine.core.counts()), AccessResult::Done(3));
    machine.write(0x38d, 0x1);
    machine.run(Privilege::Kernel, 2);
    assert_eq!(machine.read(0x309), AccessResult::Done(5));
}

/// Lets counter 0 overflow with freezing enabled: it stops until the status is cleared. The
/// registers: the counter, the register that writes it, its select, the status, and the register
/// that clears it.
fn check_freezing(machine: &mut Machine, [counter, preload, select, status, clear]: [u32; 5]) {
    machine.write(0x1d9, 1 << 12);
    machine.write(preload, (1 << 48) - 5);
    machine.write(select, USER_INSTRUCTIONS | select::INT);
    machine.run(Privilege::User, 8);
    assert_eq!(machine.read(status), AccessResult::Done(1 | STATUS_FROZEN));
    machine.run(Privilege::User, 8);
    assert_eq!(machine.read(counter), AccessResult::Done(3));
    machine.write(clear, STATUS_FROZEN | 1);
    machine.run(Privilege::User, 8);
    assert_eq!(machine.read(counter), AccessResult::Done(11));
}

#[test]
fn a_pmi_freezes_every_counter() {
    let mut machine = Machine::new("icelake-server", 4);
    check_freezing(&mut machine, [0xc1, 0x4c1, 0x186, 0x38e, 0x390]);
}

#[test]
fn amd_stays_frozen_until_the_status_bit_is_cleared() {
    let mut machine = Machine::new("zen4", 6);
    assert_eq!(machine.pmu.cpuid(0x8000_0022, 0, [0; 4])[0], 0b111);
    assert_eq!(machine.write(0x1d9, 1 << 6), AccessResult::Fault);
    let counter = 0xc001_0201;
    check_freezing(&mut machine, [counter, counter, 0xc001_0200, 0xc000_0300, 0xc000_0302]);
    assert_eq!(machine.write(0xc000_0302, 1 << 58), AccessResult::Done(0));
    assert_eq!(machine.write(0xc000_0303, 1 << 58), AccessResult::Fault);
    assert_eq!(Machine::new("zen3", 6).read(0x1d9), AccessResult::Foreign);
}

/// An Intel processor with fixed counter 3 and PERF_METRICS enabled in ring 3.
fn with_metrics(profile: &str) -> Machine {
    let mut machine = Machine::new(profile, 4);
    machine.write(0x38d, 0x2000);
    machine.write(0x38f, 1 << 48 | 1 << 35);
    machine
}

#[test]
fn metrics_are_the_fractions_of_the_slots() {
    for (profile, want) in [("icelake-server", 0xff), ("sapphire-rapids", 0xff)] {
        let mut machine = with_metrics(profile);
        assert_eq!(machine.other_capabilities(), 1 << 12 | 1 << 13 | 1 << 15);
        assert_eq!(machine.read(0x329), AccessResult::Done(0));
        machine.run(Privilege::User, 1000);
        machine.run(Privilege::Kernel, 500);
        assert_eq!(machine.read(0x329), AccessResult::Done(want), "{profile}: all of it retires");
        assert_eq!(machine.pmu.rdpmc(1 << 29, machine.core.counts()), AccessResult::Done(want));
        machine.core.interrupt(1000);
        assert_eq!(machine.read(0x329), AccessResult::Done(want), "{profile}: not ring 3's");
    }
}

#[test]
fn the_first_level_of_metrics_adds_up_to_the_whole() {
    let mut machine = with_metrics("icelake-server");
    // Each part gets a quarter of the slots.
    machine.write(0x30c, 4000);
    machine.write(0x329, 0x4040_4040);
    assert_eq!(machine.read(0x329), AccessResult::Done(0x3f40_4040));
    machine.write(0x30c, 0);
    machine.write(0x329, 0);
    assert_eq!(machine.read(0x329), AccessResult::Done(0));
    assert_eq!(machine.write(0x329, 1 << 32), AccessResult::Fault);
    assert_eq!(with_metrics("sapphire-rapids").write(0x329, 1 << 63), AccessResult::Done(0));
}

#[test]
fn metrics_overflow_with_their_slots() {
    let mut machine = with_metrics("icelake-server");
    machine.write(0x38d, 0xa000);
    machine.write(0x30c, (1 << 48) - 100);
    machine.write(0x329, 0xff);
    machine.run(Privilege::User, 200);
    assert_eq!(machine.read(0x38e), AccessResult::Done(1 << 48 | 1 << 35));
    assert!(machine.pmu.take_interrupt());
    machine.write(0x390, 1 << 48 | 1 << 35);
    assert_eq!(machine.read(0x38e), AccessResult::Done(0));
}

#[test]
fn metrics_need_the_fourth_fixed_counter_and_version_5() {
    let profile = Profile::find("icelake-server").expect("there is one");
    for profile in [profile.with_fixed(3), profile.with_version(4)] {
        let mut machine = Machine::new("icelake-server", 4);
        machine.pmu = VirtualPmu::new(profile.expect("of Intel's"), 4);
        assert_eq!(machine.read(0x329), AccessResult::Fault);
        assert_eq!(machine.write(0x38f, 1 << 48), AccessResult::Fault);
        assert_eq!(machine.other_capabilities(), 1 << 12 | 1 << 13);
        assert_eq!(machine.pmu.rdpmc(1 << 29, machine.core.counts()), AccessResult::Fault);
    }
}

#[test]
fn counters_can_be_fewer_and_narrower() {
    let profile = Profile::find("icelake-server").and_then(|profile| profile.with_width(40));
    let profile = profile.and_then(|profile| profile.with_fixed(2)).expect("of Intel's");
    let mut machine = Machine::new("icelake-server", 4);
    machine.pmu = VirtualPmu::new(profile, 4);
    let [eax, _, ecx, edx] = machine.pmu.cpuid(0xa, 0, [0; 4]);
    assert_eq!((eax >> 16 & 0xff, ecx, edx & 0x1f, edx >> 5 & 0xff), (40, 3, 2, 40));
    assert_eq!(machine.write(0x4c1, 1 << 40), AccessResult::Fault);
    assert_eq!(machine.write(0x30b, 0), AccessResult::Fault);
    assert_eq!(machine.write(0x38f, 1 << 34), AccessResult::Fault);
    machine.write(0xc1, 0xffff_fffb);
    assert_eq!(machine.read(0x4c1), AccessResult::Done((1 << 40) - 5));
    machine.write(0x186, USER_INSTRUCTIONS | select::INT);
    machine.run(Privilege::User, 8);
    assert_eq!(machine.read(0x38e), AccessResult::Done(1));
    assert_eq!(machine.read(0xc1), AccessResult::Done(3));
}

#[test]
fn off_core_filters_select_responses() {
    let mut machine = Machine::new("icelake-server", 4);
    machine.write(0x1a6, 0x1_0001);
    machine.write(0x186, 0x1b7 | select::USR | select::EN);
    machine.write(0x187, 0x1bb | select::USR | select::EN);
    assert_eq!(machine.pmu.take_unmodelled(), [Unmodelled::Offcore(0)]);
    let block = Block::new(Privilege::User, 5, (0, 0), Branch::default(), &[Insn::default()]);
    let access = |address| tally_model::Access { address, bytes: 8, retires: true, insn: 0 };
    machine.core.access::<false>(&block, access(0x1000), |address| address);
    machine.core.access::<true>(&block, access(0x2000), |address| address);
    assert_eq!(machine.read(0xc1), AccessResult::Done(1));
    assert_eq!(machine.write(0x1a6, 1 << 38), AccessResult::Fault);
    machine.write(0x1a6, 0x1_0003);
    machine.core.access::<true>(&block, access(0x3000), |address| address);
    assert_eq!(machine.read(0xc1), AccessResult::Done(2), "a filter holds from when it is written");
}

#[test]
fn writes_of_absent_features_are_reported() {
    let older = Profile::find("icelake-server").and_then(|profile| profile.with_version(4));
    let mut machine = Machine::of(older.expect("of Intel's"), 4);
    assert_eq!(machine.write(0x3f1, 0), AccessResult::Foreign);
    assert!(machine.pmu.take_unmodelled().is_empty());
    assert_eq!(machine.write(0x3f1, 1), AccessResult::Foreign);
    machine.write(0x1d9, 1);
    let absent = [Unmodelled::Register(0x3f1), Unmodelled::Register(0x1d9)];
    assert_eq!(machine.pmu.take_unmodelled(), absent);
    let mut machine = Machine::new("zen4", 6);
    machine.write(0xc001_0200, 0x0329 | 0x400 | select::EN);
    let select = 0x0329 | 0x400 | select::EN;
    assert_eq!(machine.pmu.take_unmodelled(), [Unmodelled::UnitMask(select)]);
}

#[test]
fn amd_global_control_enables_counters_and_legacy_registers_alias_them() {
    let mut machine = Machine::new("zen4", 6);
    machine.write(0xc000_0301, 0);
    machine.write(0xc001_0000, USER_INSTRUCTIONS);
    machine.run(Privilege::User, 4);
    assert_eq!(machine.read(0xc001_0004), AccessResult::Done(0));
    machine.write(0xc000_0301, 0x3f);
    machine.run(Privilege::User, 4);
    assert_eq!(machine.read(0xc001_0201), AccessResult::Done(4));
    assert_eq!(machine.read(0xc001_0004), AccessResult::Done(4));
    assert_eq!(machine.write(0xc000_0301, 0x40), AccessResult::Fault);
    assert_eq!(machine.write(0xc000_0300, 0), AccessResult::Fault);
    assert_eq!(machine.pmu.rdpmc(6, machine.core.counts()), AccessResult::Fault);
}

#[test]
fn amd_unit_mask_bits_add_up() {
    let mut machine = Machine::new("zen4", 6);
    let loads_and_stores = 0x29 | 0x300 | select::USR | select::EN;
    machine.write(0xc001_0200, loads_and_stores);
    assert!(machine.pmu.take_unmodelled().is_empty());
    let access = tally_model::Access { address: 0x1000, bytes: 8, retires: true, insn: 0 };
    let block = Block::new(Privilege::User, 6, (0, 0), Branch::default(), &[Insn::default()]);
    machine.core.access::<false>(&block, access, |address| address);
    machine.core.access::<true>(&block, access, |address| address);
    assert_eq!(machine.read(0xc001_0201), AccessResult::Done(2));
}

#[test]
fn unmodelled_selects_are_reported() {
    let mut machine = Machine::new("icelake-server", 4);
    machine.write(0x186, 0x1ff | select::USR | select::EN);
    assert_eq!(
        machine.pmu.take_unmodelled(),
        [Unmodelled::Select(0x1ff | select::USR | select::EN)]
    );
}

/// An Intel processor with an older version of the architecture.
fn version(version: u8) -> Machine {
    let mut machine = Machine::new("icelake-server", 4);
    let profile = machine.pmu.profile().with_version(version).expect("a version of Intel's");
    machine.pmu = VirtualPmu::new(profile, 4);
    machine
}

#[test]
fn the_first_version_has_only_general_counters() {
    let mut machine = version(1);
    for msr in [0x38d, 0x38e, 0x38f, 0x390, 0x391, 0x392, 0x309] {
        assert_eq!(machine.write(msr, 0), AccessResult::Fault, "{msr:#x}");
    }
    machine.write(0x186, USER_INSTRUCTIONS);
    machine.run(Privilege::User, 6);
    assert_eq!(machine.read(0xc1), AccessResult::Done(6));
    assert_eq!(machine.pmu.cpuid(0xa, 0, [0; 4])[3], 0);
}

#[test]
fn any_thread_exists_in_versions_3_and_4() {
    for (number, valid) in [(2, false), (3, true), (4, true), (5, false)] {
        let want = if valid { AccessResult::Done(0) } else { AccessResult::Fault };
        let mut machine = version(number);
        assert_eq!(machine.write(0x186, 1 << 21), want, "version {number}");
        assert_eq!(machine.write(0x38d, 1 << 2), want, "version {number}");
        let gone = machine.pmu.cpuid(0xa, 0, [0; 4])[3] >> 15;
        assert_eq!(gone, u32::from(number == 5));
    }
}

#[test]
fn status_bits_grow_with_the_version() {
    for number in [2, 3, 4, 5] {
        let mut machine = version(number);
        let want = if number >= 4 { AccessResult::Done(0) } else { AccessResult::Fault };
        assert_eq!(machine.write(0x390, 1 << 59), want, "version {number}");
        assert_eq!(machine.write(0x391, 1), want, "version {number}");
        assert_eq!(machine.write(0x390, 1 << 62), AccessResult::Done(0));
    }
}

#[test]
fn before_version_4_a_freeze_clears_global_control() {
    let mut machine = version(3);
    machine.write(0x1d9, 1 << 12);
    machine.write(0x4c1, (1 << 48) - 5);
    machine.write(0x186, USER_INSTRUCTIONS | select::INT);
    machine.run(Privilege::User, 8);
    assert_eq!(machine.read(0x38e), AccessResult::Done(1));
    assert_eq!(machine.read(0x38f), AccessResult::Done(0));
}
