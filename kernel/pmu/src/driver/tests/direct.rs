//! Programs that control the counters themselves.

use super::*;

#[test]
fn a_program_that_looks_after_its_counters_finds_them_as_it_left_them() {
    for vendor in [INTEL, Vendor::Amd { global: true }, Vendor::Amd { global: false }] {
        let mut pmu = driver(vendor);
        assert!(pmu.can_restore());
        let group = group(vendor, [1, 2, 3, 4], Mode::User);
        let mut values = Counts::default();
        values[Pinned::Instructions] = 1 << 47;
        values[Pinned::Cycles] = (1 << 40) + 5;
        values.general = [1 << 45; tally_engine::MAX_GENERAL];
        for turn in 1..=3 {
            let interrupts = model(&mut pmu).interrupts;
            pmu.restore(&group, Mode::User, &values);
            // A counter that the program does not own must not reveal counts of others.
            let others =
                counters(0x3f & !group.used).filter(|index| !is_intel(vendor) || *index < 4);
            for index in others.filter(|index| is_intel(vendor) || *index > 1) {
                assert_eq!(model(&mut pmu).rdpmc(index.into()), 0);
            }
            happen(&mut pmu, false, 100);
            happen(&mut pmu, true, 1_000_000);
            pmu.stop();
            happen(&mut pmu, false, 1_000_000);
            values = read(&mut pmu, group.used);
            assert_eq!(values[Pinned::Instructions], (1 << 47) + turn * 200);
            assert_eq!(values[Pinned::Cycles], (1 << 40) + 5 + turn * 100);
            let expected: Vec<u64> = (1..=4).map(|code| (1 << 45) + turn * code * 10).collect();
            assert_eq!(general(&values, &group), expected, "{vendor:?}");
            assert_eq!(model(&mut pmu).interrupts, interrupts);
            // Another session runs in between, and counters hold counts of a stranger.
            let mut raw = Counts::default();
            pmu.program(&group, &setup(Mode::Full), SLICE);
            pmu.enable();
            happen(&mut pmu, false, 2 * SLICE);
            assert!(switch(&mut pmu, [&group; 2], &mut raw));
            pmu.ack_and_resume();
            pmu.stop();
            pmu.scrub();
        }
    }
    assert!(!driver(OLD_INTEL).can_restore());
}
