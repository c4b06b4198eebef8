//! Tests of hardware quirks that the manuals do not promise.

use tally_model::Privilege;

use super::{
    access::{AccessResult, select},
    tests::{Machine, USER_INSTRUCTIONS},
};
use crate::quirks::{Held, Left, Quirks};

/// Ice Lake with four general counters, and these quirks.
fn machine(quirks: &Quirks) -> Machine {
    let mut machine = Machine::new("icelake-server", 4);
    machine.pmu = machine.pmu.with_quirks(quirks);
    machine
}

#[test]
fn a_held_counter_keeps_what_is_written_and_counts_nothing() {
    let held = Some(Held { index: 1, from_instructions: 0 });
    let mut machine = machine(&Quirks { held, ..Quirks::default() });
    for (msr, value) in [(0x186, USER_INSTRUCTIONS), (0x187, USER_INSTRUCTIONS), (0xc2, 7)] {
        machine.write(msr, value);
    }
    machine.run(Privilege::User, 8);
    assert_eq!(machine.read(0xc1), AccessResult::Done(8));
    assert_eq!(machine.read(0x187), AccessResult::Done(USER_INSTRUCTIONS));
    assert_eq!(machine.read(0xc2), AccessResult::Done(7));
}

#[test]
fn a_counter_that_firmware_owns_is_turned_on_again_by_system_management_interrupts() {
    let quirks = Quirks { smi: Some(10_000), left: Some(Left::Owned), ..Quirks::default() };
    let mut machine = machine(&quirks);
    let on = machine.read(0x186);
    assert_ne!(on, AccessResult::Done(0));
    machine.write(0x186, 0);
    for _ in 0..199 {
        machine.run(Privilege::Kernel, 50);
    }
    assert_eq!(machine.read(0x186), AccessResult::Done(0));
    machine.run(Privilege::Kernel, 50);
    assert_eq!(machine.read(0x186), on);
}

#[test]
fn a_counter_is_held_from_an_instruction_on() {
    let held = Some(Held { index: 1, from_instructions: 20 });
    let mut machine = machine(&Quirks { held, ..Quirks::default() });
    machine.write(0x187, USER_INSTRUCTIONS);
    machine.run(Privilege::User, 12);
    assert_eq!(machine.read(0xc2), AccessResult::Done(12));
    machine.run(Privilege::Kernel, 12);
    assert_eq!(machine.read(0xc2), AccessResult::Done(12));
    machine.run(Privilege::User, 12);
    assert_eq!(machine.read(0xc2), AccessResult::Done(12));
}

#[test]
fn a_locked_counter_ignores_writes_and_reads_as_0() {
    let mut machine = machine(&Quirks { locked: Some(1), ..Quirks::default() });
    for (msr, value) in [(0x187, USER_INSTRUCTIONS), (0xc2, 7), (0x4c2, 7)] {
        assert_eq!(machine.write(msr, value), AccessResult::Done(0));
    }
    machine.run(Privilege::User, 8);
    for msr in [0x187, 0xc2, 0x4c2] {
        assert_eq!(machine.read(msr), AccessResult::Done(0));
    }
}

#[test]
fn a_missing_event_counts_nothing_and_cpuid_names_an_architectural_one() {
    for (name, select, ebx) in [
        ("BR_MISP_RETIRED.ALL_BRANCHES", 0xc5, 1 << 6),
        ("INST_RETIRED.ANY_P", 0xc0, 1 << 1),
        ("MEM_INST_RETIRED.ALL_LOADS", 0x81d0, 0),
    ] {
        let quirks = Quirks::parse(
            |option| (option == "missing").then_some(name),
            Machine::new("icelake-server", 4).pmu.profile(),
            4,
        );
        let mut machine = machine(&quirks.unwrap());
        assert_eq!(machine.pmu.cpuid(0xa, 0, [0; 4])[1], ebx, "{name}");
        machine.write(0x186, USER_INSTRUCTIONS);
        machine.write(0x187, USER_INSTRUCTIONS & !0xffff | select);
        machine.run(Privilege::User, 8);
        assert_eq!(machine.read(0xc2), AccessResult::Done(0));
        let others = if select == 0xc0 { 0 } else { 8 };
        assert_eq!(machine.read(0xc1), AccessResult::Done(others), "{name}");
        // The missing event is not reported as unmodelled.
        assert_eq!(machine.pmu.take_unmodelled(), []);
    }
}

#[test]
fn system_management_interrupts_count_in_ring_0_unless_they_are_frozen() {
    let [smi_count, debugctl] = [0x34, 0x1d9];
    for (freeze, added) in [(0, 2 * 2_000), (1 << 14, 0)] {
        let mut machine = machine(&Quirks { smi: Some(10_000), ..Quirks::default() });
        machine.write(debugctl, freeze);
        machine.write(0x186, USER_INSTRUCTIONS);
        machine.write(0x187, USER_INSTRUCTIONS & !select::USR | select::OS);
        for _ in 0..250 {
            machine.run(Privilege::User, 50);
            machine.run(Privilege::Kernel, 50);
        }
        assert_eq!(machine.read(smi_count), AccessResult::Done(2));
        assert_eq!(machine.read(0xc1), AccessResult::Done(12_500));
        assert_eq!(machine.read(0xc2), AccessResult::Done(12_500 + added), "{freeze:#x}");
    }
    assert_eq!(machine(&Quirks::default()).write(smi_count, 0), AccessResult::Fault);
}
