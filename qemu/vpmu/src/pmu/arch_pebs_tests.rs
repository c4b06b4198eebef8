//! Tests of architectural PEBS, by Linux's arch/x86/include/asm/msr-index.h and perf_event.h.

use tally_model::{BranchKind, Privilege};

use super::{
    AccessResult, Unmodelled,
    access::{STATUS_RECORDS, select},
    sampled::{Memory, PHYSICAL, SLOW_LOAD, Sampled},
    tests::{Machine, USER_INSTRUCTIONS},
};
use crate::{
    lbr::{TakenBranch, TakenKind},
    pebs::RetiredInsn,
};

const BUFFER: u64 = 0x12_3000;
const EN: u64 = 1 << 63;
const AUX: u64 = 1 << 62;
const ON: u64 = 1 << 32;

/// A machine with a buffer of 4 KiB and a threshold in units of 16 bytes.
fn machine(threshold: u64) -> Sampled {
    let mut sampled = Sampled::without_store("panther-lake", Memory::default());
    for (msr, value) in [(0x3f4, BUFFER), (0x3f5, ON | threshold << 36)] {
        assert_eq!(sampled.machine.write(msr, value), AccessResult::Done(0));
    }
    sampled
}

impl Sampled {
    /// Starts a general counter of instructions of ring 3 by its configuration of records.
    fn start_by(&mut self, index: u32, period: u64, config: u64) {
        let row = 0x1900 + 4 * index;
        self.machine.write(row, period.wrapping_neg() & ((1 << 48) - 1));
        self.machine.write(row + 1, USER_INSTRUCTIONS | select::INT);
        self.machine.write(row + 3, config);
    }

    fn index(&mut self) -> u64 {
        let AccessResult::Done(index) = self.machine.read(0x3f5) else { panic!("no index") };
        index
    }

    /// The words of the buffer up to the index.
    fn stored(&mut self) -> Vec<u64> {
        let end = self.index() & 0x7f_ffff0;
        (0..end).step_by(8).map(|at| self.memory.0[&(PHYSICAL | (BUFFER + at))]).collect()
    }
}

#[test]
fn registers_and_cpuid_are_those_of_linux() {
    let mut machine = Machine::new("panther-lake", 10);
    let AccessResult::Done(value) = machine.read(0x345) else { panic!("capabilities") };
    assert_eq!(value & 0xfff, 0xf3f, "format 15, architectural branches");
    assert_eq!(machine.pmu.cpuid(1, 0, [0; 4])[2..], [1 << 15, 0], "no debug store");
    assert_eq!(machine.pmu.cpuid(0x23, 0, [0; 4])[0], 0b11_0011);
    let groups = (AUX | 0b11 << 40 | 0b111 << 35) >> 32;
    assert_eq!(machine.pmu.cpuid(0x23, 4, [0; 4])[1], groups as u32);
    assert_eq!(machine.pmu.cpuid(0x23, 5, [0; 4]), [0x3ff, 1, 0xf, 1]);
    for (msr, valid, wrong) in [
        (0x3f4, BUFFER | 4, 1 << 5),
        (0x3f5, 0x7f_ffff << 36 | ON | 1 << 31 | 0x7f_ffff << 4, 1),
        (0x1903, EN | AUX | 0b11 << 40 | 0b111 << 35 | 0xffff_ffff, 1 << 61),
        (0x1927, EN, 1 << 38),
        (0x198f, EN, 1 << 49),
        (0x1901, 0xc0, 1 << 34),
        (0x38d, 0x3, 1 << 32),
    ] {
        assert_eq!(machine.write(msr, valid), AccessResult::Done(0), "{msr:#x}");
        assert_eq!(machine.write(msr, wrong), AccessResult::Fault, "{msr:#x}");
        assert_eq!(machine.read(msr), AccessResult::Done(valid), "{msr:#x}");
    }
    for msr in [0x3f1, 0x3f2, 0x600] {
        assert_eq!(machine.write(msr, 1), AccessResult::Foreign, "{msr:#x}");
    }
    assert_eq!(machine.read(0x192b), AccessResult::Fault, "counter 10");
    // Lunar Lake has none of it.
    let mut before = Machine::new("lunar-lake", 10);
    assert_eq!(
        [0x3f4, 0x1903].map(|msr| before.read(msr)),
        [AccessResult::Foreign, AccessResult::Fault]
    );
    assert_eq!(before.pmu.cpuid(0x23, 5, [0; 4]), [0; 4]);
}

#[test]
fn the_first_counter_records_its_overflows_and_others_the_next_event() {
    for (index, expected) in [(0, [10, 17, 24]), (2, [11, 19, 27])] {
        let mut sampled = machine(1 << 10);
        sampled.start_by(index, 10, EN | 7_u64.wrapping_neg() & 0xffff_ffff);
        sampled.run(30);
        let words = sampled.stored();
        let ips: Vec<u64> = words.chunks(8).map(|record| record[2]).collect();
        assert_eq!(ips, expected);
        assert_eq!(words[..2], [EN | 1 << 30 | 64, 0]);
        assert_eq!(words[3..8], [1 << index, 0, 1 << 16, 0, 0]);
        assert_eq!(sampled.machine.read(0x38e), AccessResult::Done(0));
    }
}

#[test]
fn an_access_has_eight_words_and_the_retire_latency_is_valid() {
    let mut sampled = machine(1 << 10);
    sampled.start_by(0, 1, EN | AUX | 0xffff_0000);
    sampled.retire(RetiredInsn { ip: 5, tsc: 6, data: Some(SLOW_LOAD), retire_cycles: 300 });
    let words = sampled.stored();
    let basic = [EN | AUX | 1 << 30 | 128, 0, 5, 1, 6, 1 << 16 | 300, 0, 0];
    assert_eq!(words[..8], basic);
    assert_eq!(words[8..], [0x1234, 0, 0, 0, 0, 1 << 10, 0, 0]);
}

#[test]
fn the_threshold_interrupts_once_and_a_full_buffer_says_so() {
    let mut sampled = machine(9);
    sampled.start_by(0, 5, EN | 5_u64.wrapping_neg() & 0xffff_ffff);
    sampled.run(14);
    assert!(!sampled.machine.pmu.take_interrupt(), "128 bytes");
    sampled.run(1);
    assert!(sampled.machine.pmu.take_interrupt(), "192 bytes");
    assert_eq!(sampled.machine.read(0x38e), AccessResult::Done(STATUS_RECORDS));
    sampled.run(1_000);
    assert!(!sampled.machine.pmu.take_interrupt());
    assert_eq!(sampled.index(), 9 << 36 | ON | 1 << 31 | 4096);
    assert_eq!(sampled.stored().len(), 512);
    sampled.machine.write(0x390, STATUS_RECORDS);
    sampled.machine.write(0x3f5, ON | 9 << 36);
    sampled.run(5);
    assert_eq!((sampled.stored().len(), sampled.machine.read(0x38e)), (8, AccessResult::Done(0)));
}

#[test]
fn without_the_switch_or_memory_nothing_is_stored() {
    let mut sampled = machine(1);
    sampled.machine.write(0x3f5, 0);
    sampled.start_by(0, 5, EN | 5_u64.wrapping_neg() & 0xffff_ffff);
    sampled.run(20);
    assert_eq!((sampled.index(), sampled.machine.read(0x38e)), (0, AccessResult::Done(0)));
    // A counter that stores no records is an ordinary one.
    sampled.start_by(0, 5, 0);
    sampled.run(5);
    assert_eq!(sampled.machine.read(0x38e), AccessResult::Done(1));
}

/// The model's choice: other groups are in a fragment of their own.
#[test]
fn branches_and_values_are_in_a_second_fragment() {
    let mut sampled = machine(1 << 10);
    sampled.machine.write(0x14ce, 0x7f_0005);
    for from in 1..4 {
        let kind = TakenKind::Near(BranchKind::Jump);
        let rings = [Privilege::User; 2];
        let branch = TakenBranch { from, to: 9, kind, rings, is_wrong: false, length: 2 };
        sampled.machine.pmu.record_branch(&branch, 0);
    }
    sampled.start_by(1, 1_000, 1 << 35);
    sampled.start_by(0, 3, EN | 1 << 40 | 1 << 36);
    sampled.run(3);
    let words = sampled.stored();
    assert_eq!(words[0], EN | 1 << 30 | 1 << 31 | 64);
    let bytes = 8 * (2 + 6 + 3 * 8 + 4);
    assert_eq!(words[8..13], [1 << 30 | 1 << 40 | 1 << 36 | bytes, 0, 0, 0x7f_0005, 32]);
    assert_eq!(words[16..19], [3, 9, 0x12 << 56]);
    assert_eq!(words[40..], [1 << 1, 0, (1 << 48) - 997, 0]);
    assert!(
        sampled.machine.pmu.take_unmodelled().iter().all(|of| !matches!(of, Unmodelled::Groups(_)))
    );
}
