//! Tests of PEBS of format 6, by Linux's arch/x86/include/asm/perf_event.h and
//! arch/x86/events/intel/ds.c.

use super::{
    AccessResult, Unmodelled,
    access::select,
    sampled::{Memory, SLOW_LOAD, Sampled},
    tests::{Machine, USER_INSTRUCTIONS},
};
use crate::pebs::RetiredInsn;

fn lunar_lake() -> Sampled {
    Sampled::new("lunar-lake", Memory::with_store(1 << 16, 1 << 16, 1_000))
}

#[test]
fn registers_have_more_counters_and_groups() {
    let mut machine = Machine::new("lunar-lake", 10);
    let AccessResult::Done(value) = machine.read(0x345) else { panic!("capabilities") };
    assert_eq!(value & 0x2_4fff, 0x2_46ff, "format 6, baseline, timing, architectural branches");
    for (msr, valid, wrong) in [
        (0x3f1, 0xf_0000_03ff, 1 << 10),
        (0x3f2, 0x00ff_ffff_ff00_003f, 1 << 6),
        (0x1901, 1 << 34, 1 << 33),
    ] {
        assert_eq!(machine.write(msr, valid), AccessResult::Done(0), "{msr:#x}");
        assert_eq!(machine.write(msr, wrong), AccessResult::Fault, "{msr:#x}");
        assert_eq!(machine.read(msr), AccessResult::Done(valid), "{msr:#x}");
    }
    assert_eq!(machine.pmu.cpuid(7, 0, [0; 4])[3], 1 << 19 | 1 << 15, "branches, hybrid");
    assert_eq!(machine.pmu.cpuid(0x1c, 0, [0; 4])[0], 0b1011);
}

#[test]
fn a_record_has_its_retire_latency() {
    let mut sampled = lunar_lake();
    sampled.start(0, 1, 0);
    sampled.retire(RetiredInsn { ip: 5, tsc: 6, data: None, retire_cycles: 300 });
    assert_eq!(sampled.memory.words(), [32 << 48 | 300 << 32, 5, 1, 6]);
}

/// The auxiliary event of Golden Cove is not needed, and counters 0 and 1 do not have that of
/// loads.
#[test]
fn slow_loads_have_lion_cove_s_sources() {
    let mut sampled = lunar_lake();
    sampled.machine.write(0x3f2, 1);
    sampled.machine.write(0x3f6, 150);
    sampled.machine.write(0x1908, (1 << 48) - 1);
    sampled.machine.write(0x1909, 0x01cd | select::USR | select::EN | 1 << 34);
    sampled.machine.write(0x3f1, 1 << 2);
    sampled.machine.core.set_slow_loads(Some(150));
    for ip in [4, 5] {
        sampled.load(0x1000_0000 * ip);
        sampled.retire(RetiredInsn { ip, tsc: 6, data: Some(SLOW_LOAD), retire_cycles: 0 });
    }
    let words = sampled.memory.words();
    assert_eq!(words, [64 << 48 | 1, 5, 4, 6, 0x1234, 0x11 | 1 << 10, 200 << 32 | 200, 0]);
    sampled.machine.write(0x1905, 0x01cd | select::USR | select::EN);
    assert_eq!(sampled.machine.pmu.take_unmodelled().len(), 1, "not on counter 1");
}

#[test]
fn values_of_counters_follow_those_that_the_record_reloaded() {
    let mut sampled = lunar_lake();
    sampled.machine.write(0x3f2, 1 << 4 | 0b101 << 32 | 0b10 << 48);
    sampled.machine.write(0x1908, 70);
    sampled.machine.write(0x1909, USER_INSTRUCTIONS);
    sampled.machine.write(0x1984, 9);
    sampled.start(0, 3, 1 << 34);
    sampled.run(3);
    let reset = (1 << 48) - 1_000;
    let expected = [72 << 48 | 1 << 4, 3, 1, 0, 2 << 32 | 0b101, 0, reset, 73, 9];
    assert_eq!(sampled.memory.words(), expected);
    // PERF_METRICS beside them is not modelled.
    sampled.machine.write(0x3f2, 1 << 5);
    sampled.start(0, 3, 1 << 34);
    sampled.run(3);
    assert_eq!(sampled.machine.pmu.take_unmodelled(), [Unmodelled::Groups(1 << 5)]);
}
