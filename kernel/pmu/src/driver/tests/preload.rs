//! Counters that are preloaded for thresholds.

use tally_abi::bank::PINNED_SLOT;

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "one scenario for each vendor and privilege")]
fn preloaded_counters_interrupt_once_at_their_count() {
    for vendor in ALL {
        for mode in [Mode::User, Mode::Kernel] {
            let (mut pmu, kernel) = (driver(vendor), mode == Mode::Kernel);
            let (a, b) = (group(vendor, [1, 2, 3, 4], mode), group(vendor, [5, 2, 3, 6], mode));
            let first = a.used.trailing_zeros() as usize;
            let interrupts = |pmu: &mut _| model(pmu).interrupts;
            pmu.program(&a, &setup(mode), SLICE);
            // Each step has ten events of each code and two instructions.
            let shown = pmu.preload(first, 30);
            pmu.preload(PINNED_SLOT, 10);
            pmu.enable();
            for (step, expected) in [(1, 0), (2, 0), (3, 1), (4, 1)] {
                happen(&mut pmu, kernel, 1);
                assert_eq!(interrupts(&mut pmu), expected, "{vendor:?} {mode:?} {step}");
                if expected == 1 {
                    // Not the timer's overflow; counters that it froze resume.
                    assert!(!switch(&mut pmu, [&a, &b], &mut Counts::default()));
                    pmu.ack_and_resume();
                }
            }
            let count = read(&mut pmu, a.used).general[first];
            assert_eq!(count, (shown + 40) & WIDTH);
            happen(&mut pmu, kernel, 1);
            assert_eq!(interrupts(&mut pmu), 2, "the instructions' {vendor:?} {mode:?}");
            pmu.stop();
            let status = if is_intel(vendor) { 0x38e } else { 0xc000_0300 };
            assert_eq!(model(&mut pmu).msrs.get(&status).copied().unwrap_or(0), 0);
            // A preload has no effect after a stop, a disarm or a switch.
            pmu.program(&a, &setup(mode), SLICE);
            pmu.preload(first, 5);
            pmu.preload(PINNED_SLOT, 5);
            pmu.disarm();
            pmu.enable();
            happen(&mut pmu, kernel, 10);
            pmu.preload(first, 15);
            pmu.ack_and_resume();
            pmu.stop();
            pmu.program(&a, &setup(mode), SLICE);
            pmu.enable();
            happen(&mut pmu, kernel, SLICE - 1);
            assert_eq!(interrupts(&mut pmu), 2, "{vendor:?} {mode:?}");
            happen(&mut pmu, kernel, 1);
            assert!(switch(&mut pmu, [&a, &b], &mut Counts::default()));
            pmu.preload(first + 1, 20);
            pmu.ack_and_resume();
            happen(&mut pmu, kernel, 1);
            assert_eq!(interrupts(&mut pmu), 4, "the timer's and one more {vendor:?} {mode:?}");
        }
    }
}
