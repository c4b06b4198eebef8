//! Tests of the cycle registers.

use tally_model::Privilege;

use super::{
    access::{AccessResult, select},
    tests::{Machine, USER_INSTRUCTIONS},
};

/// Source: SDM volume 3, "Hardware Coordination Feedback".
#[test]
fn the_processors_cycles_count_in_every_ring_and_do_not_freeze() {
    let [mperf, aperf] = [0xe7, 0xe8];
    for profile in ["icelake-server", "zen4"] {
        let mut machine = Machine::new(profile, 4);
        assert_eq!(machine.pmu.cpuid(6, 0, [4, 0, 0, 0]), [4, 0, 1, 0]);
        machine.run(Privilege::User, 1_000);
        machine.run(Privilege::Kernel, 1_000);
        let width = u64::from(machine.core.geometry().width);
        let reference = u64::from(machine.core.geometry().ref_per_1000_cycles);
        let cycles = 2_000 / width;
        assert_eq!(machine.read(aperf), AccessResult::Done(cycles), "{profile}");
        assert_eq!(machine.read(mperf), AccessResult::Done(2_000 * reference / 1_000 / width));
        machine.write(aperf, 5);
        assert_eq!(machine.read(aperf), AccessResult::Done(5));
        // The PMU's counters, frozen at an interrupt, stop.
        let counters = match profile {
            "zen4" => [0xc001_0200, 0xc001_0201],
            _ => [0x186, 0xc1],
        };
        machine.write(0x1d9, 1 << 12);
        machine.write(counters[1], (1 << 48) - 10);
        machine.write(counters[0], USER_INSTRUCTIONS | select::INT);
        machine.run(Privilege::User, 10);
        assert_eq!(machine.read(counters[1]), AccessResult::Done(0));
        let before = machine.read(aperf);
        machine.run(Privilege::User, 10 * width as usize);
        assert_eq!(machine.read(counters[1]), AccessResult::Done(0));
        let AccessResult::Done(before) = before else { unreachable!() };
        assert_eq!(machine.read(aperf), AccessResult::Done(before + 10));
    }
}
