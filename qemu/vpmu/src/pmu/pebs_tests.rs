//! Tests of PEBS: registers, the instruction that gets a record, and the record's bytes.

use tally_model::{BranchKind, Privilege};

use super::{
    AccessResult, Unmodelled,
    access::{STATUS_BUFFER, STATUS_FROZEN, select},
    sampled::{AREA, BASIC, BUFFER, Memory, SLOW_LOAD, Sampled},
    tests::Machine,
};
use crate::{
    Profile,
    lbr::{TakenBranch, TakenKind},
    pebs::RetiredInsn,
};

#[test]
fn registers_keep_their_valid_bits_and_refuse_others() {
    for (profile, capabilities) in [("icelake-server", 0x4c5), ("sapphire-rapids", 0x4ff)] {
        let mut machine = Machine::new(profile, 4);
        let AccessResult::Done(value) = machine.read(0x345) else { panic!("capabilities") };
        assert_eq!(value & 0x4fff, 0x4000 | capabilities);
        assert_eq!(machine.pmu.cpuid(1, 0, [0; 4])[2..], [1 << 15 | 1 << 2, 1 << 21]);
        assert_eq!(machine.read(0x1a0), AccessResult::Done(1 | 1 << 11));
        assert_eq!(machine.write(0x1a0, 1 << 12 | 8), AccessResult::Foreign);
        assert_eq!(machine.read(0x1a0), AccessResult::Done(1 << 11 | 8));
        assert_eq!(machine.write(0x3f1, 1), AccessResult::Done(0));
        assert_eq!(machine.read(0x392), AccessResult::Done(1 << 63), "interrupts are in use");
        for (msr, valid, wrong) in [
            (0x600, AREA, 1 << 60),
            (0x3f1, 0xf_0000_000f, 1 << 4),
            (0x3f1, 0, 1 << 36),
            (0x3f2, 0xff00_000f, 1 << 4),
            (0x186, 1 << 34, 1 << 33),
            (0x38d, 1 << 44, 1 << 48),
        ] {
            assert_eq!(machine.write(msr, valid), AccessResult::Done(0), "{msr:#x}");
            assert_eq!(machine.write(msr, wrong), AccessResult::Fault, "{msr:#x}");
            assert_eq!(machine.read(msr), AccessResult::Done(valid), "{msr:#x}");
        }
    }
}

#[test]
fn other_profiles_and_versions_have_no_registers() {
    let of = |name, version| Profile::find(name).unwrap().with_version(version).unwrap();
    for profile in [of("icelake-server", 4), of("icelake-server", 6), of("lunar-lake", 5)] {
        let mut machine = Machine::of(profile, 4);
        for msr in [0x600, 0x3f1, 0x3f2, 0x1a0] {
            assert_eq!(machine.write(msr, 1), AccessResult::Foreign);
            assert_eq!(machine.read(msr), AccessResult::Foreign);
        }
        assert_eq!(machine.pmu.cpuid(1, 0, [0; 4])[3], 0);
        assert_eq!(machine.write(0x186, 1 << 34), AccessResult::Fault);
        assert_eq!(machine.pmu.slots_to_record(machine.core.counts()), None);
    }
}

#[test]
fn counter_0_records_the_instruction_of_each_overflow() {
    let mut sampled = Sampled::new("sapphire-rapids", Memory::with_store(1 << 16, 1 << 16, 7));
    sampled.start(0, 10, 0);
    sampled.run(40);
    let ips: Vec<u64> = sampled.memory.records().iter().map(|(ip, _)| *ip).collect();
    assert_eq!(ips, [10, 17, 24, 31, 38]);
    assert_eq!(sampled.machine.read(0x38e), AccessResult::Done(0));
    assert!(!sampled.machine.pmu.take_interrupt());
    assert_eq!(sampled.memory.words()[..4], [BASIC << 48, 10, 1, 0]);
    let reset = (1 << 48) - 7;
    assert_eq!(sampled.machine.read(0xc1), AccessResult::Done(reset + 2));
}

#[test]
fn another_counter_records_the_instruction_of_the_next_event() {
    let mut sampled = Sampled::new("sapphire-rapids", Memory::with_store(1 << 16, 1 << 16, 7));
    sampled.start(2, 10, 0);
    sampled.run(10);
    let counts = sampled.machine.core.counts();
    assert_eq!(sampled.machine.pmu.slots_to_record(counts), Some(0));
    sampled.machine.run(Privilege::Kernel, 5);
    sampled.run(20);
    assert_eq!(sampled.memory.records(), [(11, 4), (19, 4), (27, 4)]);
}

#[test]
fn events_of_an_instruction_that_does_not_retire_give_the_next_one_the_record() {
    let mut sampled = Sampled::new("sapphire-rapids", Memory::with_store(1 << 16, 1 << 16, 7));
    sampled.start(2, 4, 0);
    sampled.run(3);
    // The overflow, and an event behind it, before an interrupt.
    sampled.interrupt();
    sampled.interrupt();
    assert!(sampled.memory.records().is_empty());
    sampled.run(1);
    assert_eq!(sampled.memory.records(), [(4, 1 << 2)]);
}

#[test]
fn one_record_has_all_counters_of_its_instruction() {
    let mut sampled = Sampled::new("sapphire-rapids", Memory::with_store(1 << 16, 1 << 16, 1_000));
    sampled.start(0, 11, 0);
    sampled.start(1, 10, 0);
    sampled.machine.write(0x309, (1 << 48) - 11);
    sampled.machine.write(0x38d, 2);
    sampled.machine.write(0x38f, 0x1_0000_0003);
    sampled.machine.write(0x3f1, 0x1_0000_0003);
    sampled.run(20);
    assert_eq!(sampled.memory.records(), [(11, 0x1_0000_0003)]);
}

#[test]
fn reset_values_of_fixed_counters_are_behind_8_general_ones_or_32() {
    for (profile, offset) in
        [("icelake-server", 0x88), ("sapphire-rapids", 0x88), ("lunar-lake", 0x148)]
    {
        let mut sampled = Sampled::new(profile, Memory::with_store(1 << 16, 1 << 16, 1_000));
        sampled.memory.0.insert(AREA + offset, 0xffff_ffff_ffff_ff00);
        sampled.machine.write(0x30a, (1 << 48) - 2);
        sampled.machine.write(0x3f1, 2 << 32);
        sampled.machine.write(0x38d, 0x20);
        sampled.machine.write(0x38f, 2 << 32);
        while sampled.memory.records().is_empty() {
            sampled.run(1);
        }
        assert_eq!(sampled.machine.read(0x30a), AccessResult::Done(0xffff_ffff_ff00));
    }
}

#[test]
fn the_threshold_raises_one_interrupt_and_a_full_buffer_drops_records() {
    let mut sampled =
        Sampled::new("sapphire-rapids", Memory::with_store(4 * BASIC + 8, 3 * BASIC, 5));
    sampled.start(0, 5, 0);
    sampled.run(14);
    assert!(!sampled.machine.pmu.take_interrupt());
    sampled.run(1);
    assert!(sampled.machine.pmu.take_interrupt());
    assert_eq!(sampled.machine.read(0x38e), AccessResult::Done(STATUS_BUFFER));
    sampled.run(50);
    assert!(!sampled.machine.pmu.take_interrupt());
    assert_eq!(sampled.memory.records().len(), 4);
    // The status is cleared, but not the index: the next record has no room and interrupts again.
    sampled.machine.write(0x390, STATUS_BUFFER);
    sampled.run(5);
    assert!(sampled.machine.pmu.take_interrupt());
    sampled.memory.0.insert(AREA + 0x28, BUFFER);
    sampled.machine.write(0x390, STATUS_BUFFER);
    sampled.run(5);
    assert_eq!(sampled.memory.records(), [(75, 1)]);
}

#[test]
fn the_threshold_freezes_the_counters_if_that_is_enabled() {
    let mut sampled = Sampled::new("sapphire-rapids", Memory::with_store(1 << 16, BASIC, 5));
    sampled.machine.write(0x1d9, 1 << 12);
    sampled.start(0, 5, 0);
    sampled.run(20);
    assert_eq!(sampled.memory.records(), [(5, 1)]);
    assert_eq!(sampled.machine.read(0x38e), AccessResult::Done(STATUS_BUFFER | STATUS_FROZEN));
}

#[test]
fn the_memory_group_of_other_events_has_the_address_alone() {
    // Counter 1 on both: the second instruction has the event after the overflow.
    for profile in ["icelake-server", "sapphire-rapids"] {
        let mut sampled = Sampled::new(profile, Memory::with_store(1 << 16, 1 << 16, 1_000));
        sampled.machine.write(0x3f2, 1);
        sampled.start(1, 1, 1 << 34);
        sampled.run(1);
        sampled.retire(RetiredInsn { ip: 5, tsc: 6, data: Some(SLOW_LOAD), retire_cycles: 0 });
        let words = sampled.memory.words();
        assert_eq!(words, [64 << 48 | 1, 5, 2, 6, 0x1234, 0x10, 0, 0]);
    }
}

/// Golden Cove needs another counter for latency and source, and does not have the event on counter
/// 0.
#[test]
fn the_memory_group_of_slow_loads_has_latency_and_source() {
    let auxiliary = 0x8203 | select::USR | select::EN;
    for (profile, beside, known) in [
        ("icelake-server", 0, [0x1c, 200]),
        ("sapphire-rapids", auxiliary, [0x1c, 200 << 32 | 200]),
        ("sapphire-rapids", 0, [0x10, 0]),
    ] {
        let mut sampled = Sampled::new(profile, Memory::with_store(1 << 16, 1 << 16, 1_000));
        sampled.machine.write(0x3f2, 1);
        sampled.machine.write(0x3f6, 150);
        sampled.machine.write(0x188, beside);
        sampled.machine.write(0x4c2, (1 << 48) - 1);
        sampled.machine.write(0x187, 0x01cd | select::USR | select::EN | 1 << 34);
        sampled.machine.write(0x3f1, 2);
        assert_eq!(sampled.machine.pmu.slow_load_cycles(), Some(150));
        sampled.machine.core.set_slow_loads(Some(150));
        for ip in [4, 5] {
            sampled.load(0x1000_0000 * ip);
            sampled.retire(RetiredInsn { ip, tsc: 6, data: Some(SLOW_LOAD), retire_cycles: 0 });
        }
        let words = sampled.memory.words();
        let [source, latency] = known;
        assert_eq!(words, [64 << 48 | 1, 5, 2, 6, 0x1234, source, latency, 0], "{profile}");
        // Above the latency of memory there is nothing.
        sampled.machine.core.set_slow_loads(Some(0xffff));
        let before = sampled.machine.read(0xc2);
        sampled.load(0x3_0000_0000);
        assert_eq!(sampled.machine.read(0xc2), before);
    }
    let mut machine = Machine::new("sapphire-rapids", 8);
    machine.write(0x186, 0x01cd | select::USR | select::EN);
    assert_eq!(machine.pmu.take_unmodelled().len(), 1, "not on counter 0");
    assert_eq!(machine.write(0x3f6, 1 << 16), AccessResult::Fault);
}

#[test]
fn without_the_adaptive_bit_a_record_is_basic() {
    let mut sampled = Sampled::new("sapphire-rapids", Memory::with_store(1 << 16, 1 << 16, 1_000));
    sampled.machine.write(0x3f2, 0b11);
    sampled.start(0, 3, 0);
    sampled.run(10);
    assert_eq!(sampled.memory.words(), [BASIC << 48, 3, 1, 0]);
}

#[test]
fn unmodelled_groups_and_an_unmapped_store_are_named_and_write_nothing() {
    let mut sampled = Sampled::new("sapphire-rapids", Memory::with_store(1 << 16, 1 << 16, 100));
    sampled.machine.write(0x3f2, 0b10);
    sampled.start(0, 3, 1 << 34);
    sampled.run(10);
    assert_eq!(sampled.machine.pmu.take_unmodelled(), [Unmodelled::Groups(2)]);
    assert!(sampled.memory.words().is_empty());
    // The counter has its reset value all the same.
    assert_eq!(sampled.machine.read(0xc1), AccessResult::Done((1 << 48) - 93));
    sampled.memory.0.clear();
    sampled.run(100);
    assert_eq!(sampled.machine.pmu.take_unmodelled(), [Unmodelled::DebugStore(AREA)]);
    assert!(sampled.memory.0.is_empty());
}

#[test]
fn a_disabled_counter_is_an_ordinary_one() {
    let mut sampled = Sampled::new("sapphire-rapids", Memory::with_store(1 << 16, 1 << 16, 5));
    sampled.start(1, 5, 0);
    sampled.run(5);
    // Armed, then disabled: no record.
    sampled.machine.write(0x3f1, 0);
    sampled.run(5);
    assert!(sampled.memory.records().is_empty());
    assert_eq!(sampled.machine.read(0x38e), AccessResult::Done(0));
    sampled.start(1, 5, 0);
    sampled.machine.write(0x3f1, 0);
    sampled.run(5);
    assert_eq!(sampled.machine.read(0x38e), AccessResult::Done(2));
    assert!(sampled.machine.pmu.take_interrupt());
}

#[test]
fn the_branch_group_has_the_last_branches() {
    for (profile, msr, on, info) in
        [("icelake-server", 0x1d9, 1, 0), ("sapphire-rapids", 0x14ce, 0x7f_0005, 0x12 << 56)]
    {
        let mut sampled = Sampled::new(profile, Memory::with_store(1 << 16, 1 << 16, 1_000));
        sampled.machine.write(0x3f2, 1 << 3 | 1 << 24);
        sampled.machine.write(msr, on);
        sampled.start(1, 1, 1 << 34);
        sampled.run(1);
        for from in 1..4 {
            let kind = TakenKind::Near(BranchKind::Jump);
            let rings = [Privilege::User; 2];
            let branch = TakenBranch { from, to: 9, kind, rings, is_wrong: from == 3, length: 2 };
            sampled.machine.pmu.record_branch(&branch, 0);
        }
        sampled.retire(RetiredInsn { ip: 5, ..RetiredInsn::default() });
        let words = sampled.memory.words();
        let format = 80 << 48 | 1 << 24 | 1 << 3;
        assert_eq!(words, [format, 5, 2, 0, 3, 9, 1 << 63 | info, 2, 9, info], "{profile}");
    }
}
