//! Counters that are preloaded for thresholds.

use tally_abi::bank::ALWAYS_SLOT;

use super::*;

/// Lets a counter overflow so many events from now on.
fn preload(pmu: &mut Driver<Model>, slot: usize, remaining: u64) -> u64 {
    let general = if is_intel(model(pmu).vendor) { 0xf } else { 0x3f };
    let counts = read(pmu, general);
    let now = match slot.checked_sub(ALWAYS_SLOT) {
        Some(event) => counts[Always::ALL[event]],
        None => counts.general[slot],
    };
    pmu.preload(slot, remaining, now)
}

#[test]
fn preloaded_counters_interrupt_once_at_their_count() {
    for vendor in ALL {
        for mode in [Mode::User, Mode::Kernel] {
            let (mut pmu, kernel) = (driver(vendor), mode == Mode::Kernel);
            let (a, b) = (group(vendor, [1, 2, 3, 4], mode), group(vendor, [5, 2, 3, 6], mode));
            let first = a.used.trailing_zeros() as usize;
            let interrupts = |pmu: &mut _| model(pmu).interrupts;
            pmu.start(&a, &setup(mode), SLICE);
            // Ten of its events come at each step, and two instructions.
            let shown = preload(&mut pmu, first, 30);
            preload(&mut pmu, ALWAYS_SLOT, 10);
            pmu.release();
            for (step, expected) in [(1, 0), (2, 0), (3, 1), (4, 1)] {
                happen(&mut pmu, kernel, 1);
                assert_eq!(interrupts(&mut pmu), expected, "{vendor:?} {mode:?} {step}");
                if expected == 1 {
                    // Not the timer's; what it froze goes on.
                    assert!(!switch(&mut pmu, &b, &mut Counts::default()));
                    pmu.release();
                }
            }
            let count = read(&mut pmu, a.used).general[first];
            assert_eq!(count, (shown + 40) & WIDTH);
            happen(&mut pmu, kernel, 1);
            assert_eq!(interrupts(&mut pmu), 2, "the instructions' {vendor:?} {mode:?}");
            pmu.stop();
            let status = if is_intel(vendor) { 0x38e } else { 0xc000_0300 };
            assert_eq!(model(&mut pmu).msrs.get(&status).copied().unwrap_or(0), 0);
            // Nothing is left of a preload: neither after a stop, nor a disarm, nor a switch.
            pmu.start(&a, &setup(mode), SLICE);
            preload(&mut pmu, first, 5);
            preload(&mut pmu, ALWAYS_SLOT, 5);
            pmu.disarm();
            pmu.release();
            happen(&mut pmu, kernel, 10);
            preload(&mut pmu, first, 15);
            pmu.release();
            pmu.stop();
            pmu.start(&a, &setup(mode), SLICE);
            happen(&mut pmu, kernel, SLICE - 1);
            assert_eq!(interrupts(&mut pmu), 2, "{vendor:?} {mode:?}");
            happen(&mut pmu, kernel, 1);
            assert!(switch(&mut pmu, &b, &mut Counts::default()));
            preload(&mut pmu, first + 1, 20);
            pmu.release();
            happen(&mut pmu, kernel, 1);
            assert_eq!(interrupts(&mut pmu), 4, "the timer's and one more {vendor:?} {mode:?}");
        }
    }
}

#[test]
fn what_is_counted_before_a_preload_is_not_lost() {
    for vendor in ALL {
        let (mut pmu, mode) = (driver(vendor), Mode::Kernel);
        let group = group(vendor, [1, 2, 3, 4], mode);
        let first = group.used.trailing_zeros() as usize;
        pmu.start(&group, &setup(mode), SLICE);
        let base = read(&mut pmu, group.used).general[first];
        // Ring 0 goes on between the reading and the preload: ten events of the first.
        happen(&mut pmu, true, 1);
        let base = pmu.preload(first, 30, base);
        pmu.release();
        let since = |pmu: &mut _| read(pmu, group.used).general[first].wrapping_sub(base) & WIDTH;
        assert_eq!(since(&mut pmu), 10, "{vendor:?}");
        let interrupts = model(&mut pmu).interrupts;
        happen(&mut pmu, true, 1);
        assert_eq!((since(&mut pmu), model(&mut pmu).interrupts), (20, interrupts));
        happen(&mut pmu, true, 1);
        assert_eq!((since(&mut pmu), model(&mut pmu).interrupts), (30, interrupts + 1));
    }
}
