//! Tests of IBS: registers, the op that is tagged, and the registers of its sample.

use tally_model::{Block, Branch, DataAccess, FetchedLine, Insn, Privilege, ServedBy};

use super::{AccessResult, tests::Machine};
use crate::{
    RetiredBranch, RetiredInsn, RetiredOp,
    ibs::{OP_COUNTS_OPS, OP_ENABLE, OP_L3_MISS, OP_VALID},
    pebs::GuestMemory,
};

const OP_CTL: u32 = 0xc001_1033;

/// IBS writes no memory.
struct NoMemory;

impl GuestMemory for NoMemory {
    fn read(&mut self, _: u64) -> Option<u64> {
        None
    }

    fn write(&mut self, _: u64, _: &[u8]) -> bool {
        false
    }

    fn write_physical(&mut self, _: u64, _: &[u8]) -> bool {
        false
    }
}

/// Retires instructions of one op each, the address of each its number, from 1 on, until a sample
/// is taken; returns the number of the last.
fn run_to_sample(machine: &mut Machine, make: impl Fn(u64) -> RetiredOp) -> u64 {
    for ip in 1..=2_000_000 {
        machine.run(Privilege::User, 1);
        let op = RetiredOp { ip, ..make(ip) };
        machine.pmu.retire_insn(
            machine.core.counts(),
            (&RetiredInsn::default(), &op),
            &mut NoMemory,
        );
        if machine.pmu.take_sampler_interrupt() {
            return ip;
        }
    }
    panic!("no sample");
}

fn plain(_: u64) -> RetiredOp {
    RetiredOp { has_op: true, ..RetiredOp::default() }
}

fn value(machine: &mut Machine, msr: u32) -> u64 {
    let AccessResult::Done(value) = machine.read(msr) else { panic!("{msr:#x}") };
    value
}

#[test]
fn reserved_bits_and_the_read_only_register_refuse_writes() {
    for (profile, eax, filters) in [("zen3", 0x3ff, false), ("zen4", 0xbff, true)] {
        let mut machine = Machine::new(profile, 6);
        assert_eq!(machine.pmu.cpuid(0x8000_001b, 0, [0; 4]), [eax, 0, 0, 0], "{profile}");
        assert_eq!(machine.pmu.cpuid(0x8000_0001, 0, [0; 4])[2] >> 10 & 1, 1);
        let filtered = machine.write(OP_CTL, OP_L3_MISS);
        let expected = if filters { AccessResult::Done(0) } else { AccessResult::Fault };
        assert_eq!(filtered, expected, "{profile}");
        for (msr, bits) in [(OP_CTL, 1 << 27), (OP_CTL, 1 << 59), (0xc001_103a, 0)] {
            assert_eq!(machine.write(msr, bits), AccessResult::Fault, "{msr:#x} {bits:#x}");
        }
        assert_eq!(machine.read(0xc001_103a), AccessResult::Done(1 << 8));
        machine.write(OP_CTL, 0x07ff_ffff_07ec_ffff);
        assert_eq!(value(&mut machine, OP_CTL), 0x07ff_ffff_07ec_ffff);
        machine.write(0xc001_1038, 0x1234);
        assert_eq!(value(&mut machine, 0xc001_1038), 0x1234);
    }
    assert_eq!(Machine::new("icelake-server", 4).read(OP_CTL), AccessResult::Foreign);
}

#[test]
fn the_op_at_which_the_count_of_ops_reaches_the_maximum_is_tagged() {
    for (start, maximum) in [(0, 0x10), (5, 0x10), (0, 0x1_0010)] {
        let mut machine = Machine::new("zen4", 6);
        let fields = maximum & 0xffff | maximum >> 16 << 20;
        machine.write(OP_CTL, start << 32 | OP_COUNTS_OPS | OP_ENABLE | fields);
        assert_eq!(run_to_sample(&mut machine, plain), (maximum << 4) - start);
        assert_eq!(value(&mut machine, 0xc001_1034), (maximum << 4) - start);
        let control = value(&mut machine, OP_CTL);
        assert!(control & OP_VALID != 0 && control >> 32 < 128, "{control:#x}");
    }
}

/// A sample every 64 cycles of four instructions each is at the next instruction.
#[test]
fn of_cycles_the_next_op_is_tagged() {
    let mut machine = Machine::new("zen4", 6);
    let width = u64::from(machine.core.geometry().width);
    machine.write(OP_CTL, OP_ENABLE | 4);
    assert_eq!(run_to_sample(&mut machine, plain), 64 * width + 1);
}

/// Where the time of dispatch is known, the first op that is dispatched then is tagged: of a full
/// pipeline one far behind the retired ones, after an empty one that which is dispatched first.
#[test]
fn of_cycles_the_op_that_is_dispatched_then_is_tagged() {
    for flight in [0, 50] {
        let mut machine = Machine::new("zen4", 6);
        let width = u64::from(machine.core.geometry().width);
        machine.write(OP_CTL, OP_ENABLE | 4);
        let in_flight = |_| RetiredOp { flight_cycles: Some(flight), ..plain(0) };
        assert_eq!(run_to_sample(&mut machine, in_flight), (64 + flight) * width);
        let to_retirement = value(&mut machine, 0xc001_1035) >> 16 & 0xffff;
        assert_eq!(to_retirement, flight.max(4));
    }
}

#[test]
fn nothing_is_sampled_until_software_clears_the_valid_bit() {
    let mut machine = Machine::new("zen3", 6);
    let on = OP_COUNTS_OPS | OP_ENABLE | 0x10;
    machine.write(OP_CTL, on);
    let at = run_to_sample(&mut machine, plain);
    assert!(machine.pmu.slots_to_record(machine.core.counts()).is_none());
    for _ in 0..1_000 {
        machine.run(Privilege::User, 1);
        let op = plain(0);
        machine.pmu.retire_insn(
            machine.core.counts(),
            (&RetiredInsn::default(), &op),
            &mut NoMemory,
        );
    }
    assert!(!machine.pmu.take_sampler_interrupt());
    assert_eq!(value(&mut machine, 0xc001_1034), at);
    machine.write(OP_CTL, on);
    assert_eq!(run_to_sample(&mut machine, plain), 0x100);
}

const LOAD: DataAccess = DataAccess {
    address: 0x1234_5678,
    is_store: false,
    by: ServedBy::Memory,
    latency_cycles: 230,
    tlb_cycles: 30,
    walks: true,
    is_locked: false,
    physical: 0x678,
    bytes: 8,
    stores_too: false,
};

fn sampled(profile: &str, of: RetiredOp) -> [u64; 7] {
    let mut machine = Machine::new(profile, 6);
    machine.write(OP_CTL, OP_COUNTS_OPS | OP_ENABLE | 1);
    run_to_sample(&mut machine, |_| of);
    std::array::from_fn(|index| value(&mut machine, [0, 1, 2, 3, 4, 5, 7][index] + 0xc001_1034))
}

#[test]
fn a_load_has_its_address_latency_and_source() {
    let of = |by| RetiredOp { data: Some(DataAccess { by, ..LOAD }), ..plain(0) };
    let [ip, times, source, data3, lin, phys, _] = sampled("zen4", of(ServedBy::Memory));
    assert_eq!((ip, lin, phys), (16, 0x1234_5678, 0x678));
    assert_eq!((times & 0xffff, times >> 16 & 0xffff), (1, 234), "to completion, to retirement");
    assert_eq!(source, 3);
    // Load, misses of both TLBs, of the L1 and of the L2, both addresses, eight bytes.
    assert_eq!(data3 & 0xffff_ffff, 1 | 0b1100 | 1 << 7 | 0b11 << 17 | 1 << 20 | 4 << 22);
    assert_eq!((data3 >> 32 & 0xffff, data3 >> 48), (200, 30));
    assert_eq!(sampled("zen4", of(ServedBy::Llc))[2], 1);
    assert_eq!(sampled("zen3", of(ServedBy::Llc))[2], 2);
    assert_eq!(sampled("zen4", of(ServedBy::L2))[3] >> 20 & 1, 0);
    assert_eq!(sampled("zen4", of(ServedBy::L1))[3] >> 32 & 0xffff, 0, "no miss, no latency");
}

#[test]
fn a_store_has_its_address_and_no_latency() {
    let store = DataAccess { is_store: true, is_locked: true, ..LOAD };
    let [_, _, source, data3, lin, ..] =
        sampled("zen4", RetiredOp { data: Some(store), ..plain(0) });
    assert_eq!((source, data3 & 0b11, data3 >> 15 & 1, lin), (0, 0b10, 1, 0x1234_5678));
    assert_eq!(data3 >> 32 & 0xffff, 0);
    let both = DataAccess { stores_too: true, ..LOAD };
    assert_eq!(sampled("zen4", RetiredOp { data: Some(both), ..plain(0) })[3] & 0b11, 0b11);
}

/// The sixteenth instruction, which is tagged, shares its op with the branch after it.
#[test]
fn a_fused_pair_is_one_op_at_the_address_of_its_first_instruction() {
    let branch = RetiredBranch { is_taken: true, is_wrong: true, is_return: false, target: 0x7000 };
    let mut machine = Machine::new("zen4", 6);
    machine.write(OP_CTL, OP_COUNTS_OPS | OP_ENABLE | 1);
    let last = run_to_sample(&mut machine, |ip| match ip {
        17 => RetiredOp { branch: Some(branch), ..RetiredOp::default() },
        _ => RetiredOp { fuses: ip == 16, ..plain(ip) },
    });
    assert_eq!((last, value(&mut machine, 0xc001_1034)), (17, 16));
    let flags = value(&mut machine, 0xc001_1035) >> 32;
    assert_eq!(flags, 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7, "taken, wrong, retired, fused");
    assert_eq!(value(&mut machine, 0xc001_103b), 0x7000);
}

#[test]
fn the_filter_drops_ops_that_memory_does_not_serve() {
    let mut machine = Machine::new("zen4", 6);
    machine.write(OP_CTL, OP_L3_MISS | OP_COUNTS_OPS | OP_ENABLE | 0x10);
    let last = run_to_sample(&mut machine, |ip| RetiredOp {
        data: Some(DataAccess {
            by: if ip > 5_000 { ServedBy::Memory } else { ServedBy::Llc },
            ..LOAD
        }),
        ..plain(ip)
    });
    assert!((5_001..5_300).contains(&last), "{last}");
}

const FETCH_CTL: u32 = 0xc001_1030;
const FETCH_ENABLE: u64 = 1 << 48;
const FETCH_VALID: u64 = 1 << 49;

/// Runs blocks of one line of code each, the address of each 64 times its number, from 1 on, until
/// a fetch is sampled; returns the number of the last.
fn fetch_to_sample(machine: &mut Machine, make: impl Fn(u64) -> FetchedLine) -> u64 {
    for number in 1..=100_000 {
        let insns = [Insn { uops: 1, pc: number << 6, length: 1, ..Insn::default() }];
        let width = machine.core.geometry().width;
        let block = Block::new(Privilege::User, width, (number, number), Branch::default(), &insns);
        machine.core.fetch(&block);
        machine.core.retire(&block, 0);
        let op = RetiredOp { fetched: Some(make(number)), ..plain(number) };
        machine.pmu.retire_insn(
            machine.core.counts(),
            (&RetiredInsn::default(), &op),
            &mut NoMemory,
        );
        if machine.pmu.take_sampler_interrupt() {
            return number;
        }
    }
    panic!("no sample");
}

const LINE: FetchedLine = FetchedLine {
    address: 0,
    physical: 0x1_2340,
    missed_to: Some(ServedBy::Llc),
    translation: (30, true),
    latency_cycles: 76,
};

#[test]
fn the_fetch_at_which_the_count_reaches_the_maximum_is_sampled() {
    let mut machine = Machine::new("zen4", 6);
    machine.write(FETCH_CTL, FETCH_ENABLE | 3);
    let of = |number| FetchedLine { address: number << 6, ..LINE };
    assert_eq!(fetch_to_sample(&mut machine, of), 48);
    let control = value(&mut machine, FETCH_CTL);
    // The latency, and: complete, misses of the L1, of both TLBs and of the L2, physical address.
    let fields = 76 << 32 | 1 << 50 | 1 << 51 | 1 << 52 | 1 << 55 | 1 << 56 | 1 << 58;
    assert_eq!(control, FETCH_ENABLE | FETCH_VALID | 3 | fields, "{control:#x}");
    let registers = [0xc001_1031, 0xc001_1032, 0xc001_103c].map(|msr| value(&mut machine, msr));
    assert_eq!(registers, [48 << 6, 0x1_2340, 30]);
    assert!(machine.pmu.slots_to_record(machine.core.counts()).is_none(), "until it is cleared");
    // From a current count of 16.
    machine.write(FETCH_CTL, FETCH_ENABLE | 1 << 16 | 3);
    assert_eq!(fetch_to_sample(&mut machine, of), 32);
}

#[test]
fn the_filter_of_fetches_drops_those_that_memory_does_not_serve() {
    let mut machine = Machine::new("zen4", 6);
    machine.write(FETCH_CTL, 1 << 59 | FETCH_ENABLE | 1);
    let of = |number| {
        let missed_to = if number > 1_000 { Some(ServedBy::Memory) } else { None };
        FetchedLine { missed_to, ..LINE }
    };
    assert!((1_001..1_020).contains(&fetch_to_sample(&mut machine, of)));
    assert_eq!(Machine::new("zen3", 6).write(FETCH_CTL, 1 << 59), AccessResult::Fault);
}

#[test]
fn a_count_of_fetches_can_start_at_random() {
    let mut machine = Machine::new("zen3", 6);
    let mut lasts = std::collections::BTreeSet::new();
    for _ in 0..32 {
        machine.write(FETCH_CTL, 1 << 57 | FETCH_ENABLE | 2);
        lasts.insert(fetch_to_sample(&mut machine, |_| LINE));
    }
    assert!(lasts.len() > 4 && lasts.iter().all(|last| (17..=32).contains(last)), "{lasts:?}");
}
