//! Pairs of AMD's counters that the event Merge joins. An event of code 3 happens 30 times a step,
//! of which a single counter adds 15; the model refuses such an event without Merge above it.

use super::*;

/// Merge on an odd counter, as processor programming references and Linux have it.
const MERGE: u64 = 0xf_0040_00ff;
const FLOPS: u8 = 3;
const AMD: [Vendor; 2] = [Vendor::Amd { global: true }, Vendor::Amd { global: false }];

/// A group with these events on counters 2, 4 and 5; counter 3 is joined to an event of code 3.
fn with_pair(codes: [u8; 3], mode: Mode) -> Group {
    let [first, second, third] = codes;
    let mut group = group(AMD[0], [first, 0, second, third], mode);
    if first == FLOPS {
        group.selectors[2].0 |= 0x0f00;
    }
    group.selectors[3] = Selector(if first == FLOPS { MERGE } else { 0 });
    Group { used: group.used & !(1 << 3), seconds: 1 << 3, ..group }
}

fn with_pairs(mode: Mode) -> Setup {
    Setup { pairs: true, ..setup(mode) }
}

#[test]
fn groups_with_and_without_a_pair_count_what_happened() {
    for vendor in AMD {
        for mode in [Mode::User, Mode::Kernel, Mode::Full] {
            let mut pmu = driver(vendor);
            let groups = [with_pair([FLOPS, 5, 6], mode), with_pair([4, 7, 6], mode)];
            let mut base = read(&mut pmu, 0x34);
            // What other sessions have left in the upper part is of no account.
            model(&mut pmu).msrs.insert(0xc001_0207, 0x1234_5678_9abc);
            pmu.program(&groups[0], &with_pairs(mode), SLICE);
            pmu.enable();
            for turn in 0..6 {
                let (now, next) = (&groups[turn % 2], &groups[(turn + 1) % 2]);
                happen(&mut pmu, mode == Mode::Kernel, SLICE);
                let mut raw = Counts::default();
                assert!(switch(&mut pmu, [now, next], &mut raw));
                // The handler's own events belong to no group.
                happen(&mut pmu, true, 1000);
                let slice = since(&raw, &base, now.used, pmu.widths());
                let expected = [[30, 50, 60], [40, 70, 60]][turn % 2];
                assert_eq!(general(&slice, now), expected, "{vendor:?} {mode:?} {turn}");
                base = read(&mut pmu, next.used);
                pmu.ack_and_resume();
            }
            pmu.stop();
            assert!(!pmu.is_counting());
        }
    }
}

#[test]
fn a_preloaded_pair_interrupts_once_at_its_count() {
    for vendor in AMD {
        let mut pmu = driver(vendor);
        let group = with_pair([FLOPS, 5, 6], Mode::User);
        pmu.program(&group, &with_pairs(Mode::User), SLICE);
        let shown = pmu.preload(2, 90);
        pmu.enable();
        for (step, expected) in [(1, 0), (2, 0), (3, 1), (4, 1)] {
            happen(&mut pmu, false, 1);
            assert_eq!(model(&mut pmu).interrupts, expected, "{vendor:?} {step}");
            if expected == 1 {
                assert!(!switch(&mut pmu, [&group; 2], &mut Counts::default()));
                pmu.ack_and_resume();
            }
        }
        let count = read(&mut pmu, group.used).general[2];
        assert_eq!(count.wrapping_sub(shown) & WIDTH, 120);
        pmu.disarm();
        model(&mut pmu).msrs.insert(0xc001_0205, WIDTH);
        happen(&mut pmu, false, 1);
        assert_eq!(model(&mut pmu).interrupts, 1, "a carry is no overflow");
    }
}

#[test]
fn direct_mode_restores_a_pair() {
    for vendor in AMD {
        let mut pmu = driver(vendor);
        let group = with_pair([FLOPS, 5, 6], Mode::User);
        let mut values = Counts::default();
        // The bits above 48 are those of an earlier carry.
        values.general[2] = 7 << 48 | 1 << 47;
        values.general[4] = 1 << 45;
        pmu.restore(&group, Mode::User, &values);
        happen(&mut pmu, false, 100);
        pmu.stop();
        values = read(&mut pmu, group.used);
        assert_eq!(values.general[4], (1 << 45) + 50);
        assert_eq!(values.general[2], (1 << 47) + 30, "{vendor:?}");
    }
}
