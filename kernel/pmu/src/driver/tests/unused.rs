//! Counters that a group does not use.

use super::*;

/// Returns the group reduced to its first event.
fn first_of(group: &Group) -> Group {
    let mut one = Group { used: 1 << group.used.trailing_zeros(), ..Group::default() };
    let first = one.used.trailing_zeros() as usize;
    one.selectors[first] = group.selectors[first];
    one
}

/// Returns the event selects of the counters available to groups, except the first.
fn others(pmu: &mut Driver<Model>) -> Vec<u64> {
    let model = model(pmu);
    let select = |counter| match model.vendor {
        Vendor::Intel { .. } => model.msrs[&(0x186 + counter)],
        Vendor::Amd { .. } => model.msrs[&(0xc001_0204 + 2 * counter)],
    };
    (1_u32..4).map(select).collect()
}

#[test]
fn a_program_does_not_see_what_another_s_events_would_count() {
    for vendor in ALL {
        let mut pmu = driver(vendor);
        let theirs = group(vendor, [1, 2, 3, 4], Mode::Full);
        let ours = first_of(&group(vendor, [5, 0, 0, 0], Mode::User));
        pmu.program(&theirs, &setup(Mode::Full), SLICE);
        pmu.enable();
        happen(&mut pmu, true, 10);
        pmu.stop();
        pmu.scrub();
        pmu.program(&ours, &setup(Mode::User), SLICE);
        pmu.enable();
        happen(&mut pmu, true, 10);
        happen(&mut pmu, false, 10);
        let shown = read(&mut pmu, theirs.used);
        assert_eq!(general(&shown, &theirs), [50, 0, 0, 0], "{vendor:?}");
    }
}

#[test]
fn an_event_that_is_to_be_alone_is_and_no_other_switch_takes_longer() {
    for vendor in ALL {
        let all = group(vendor, [1, 2, 3, 4], Mode::User);
        let held: Vec<u64> = all.selectors.iter().map(|s| s.0).filter(|s| *s != 0).collect();
        let one = first_of(&all);
        for alone in [false, true] {
            let mut pmu = driver(vendor);
            pmu.program(&all, &setup(Mode::User), SLICE);
            pmu.enable();
            let mut before = all;
            let mut step = |next: &Group| {
                happen(&mut pmu, false, SLICE + 1);
                assert!(switch(&mut pmu, [&before, next], &mut Counts::default()));
                before = *next;
                pmu.ack_and_resume();
                others(&mut pmu)
            };
            let expected = if alone { [0; 3].to_vec() } else { held[1..].to_vec() };
            assert_eq!(step(&Group { alone, ..one }), expected, "{vendor:?}");
            // Selects of unused counters are restored when a group uses them again.
            assert_eq!(step(&one), expected, "{vendor:?}");
            assert_eq!(step(&all), held[1..], "{vendor:?}");
        }
    }
}
