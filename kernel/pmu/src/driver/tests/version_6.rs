//! Intel's version 6: registers from 1900H, ten general counters, selects of 64 bits.

use super::*;

const USER: u64 = 1 << 22 | 1 << 16;

fn driver_6() -> Driver<Model> {
    let features = intel::Features {
        general: 0x3ff,
        reserved: 0,
        reference: true,
        metrics: false,
        records: intel::RecordSupport::None,
        branches: intel::BranchSupport::None,
        capabilities: true,
        extra: 7,
        widths: Widths { pinned: WIDTH, general: WIDTH },
        addresses: intel::Addresses::of_version(6),
    };
    Intel::new(Model::version_6(), features).map(Driver::Intel).unwrap()
}

/// Makes a group of these selects on the counters from 0 on.
fn of(selects: &[u64]) -> Group {
    let mut group = Group { used: (1 << selects.len()) - 1, ..Group::default() };
    group.selectors[..selects.len()]
        .copy_from_slice(&selects.iter().copied().map(Selector).collect::<Vec<_>>());
    group
}

#[test]
fn all_ten_counters_count_and_are_switched() {
    let mut pmu = driver_6();
    let codes = |from: u64| (from..from + 10).map(|code| USER | code).collect::<Vec<u64>>();
    let (first, second) = (of(&codes(1)), of(&codes(21)));
    pmu.program(&first, &setup(Mode::User), SLICE);
    pmu.enable();
    let mut before = read(&mut pmu, first.used);
    for (now, next, from) in [(&first, &second, 1), (&second, &first, 21), (&first, &first, 1)] {
        happen(&mut pmu, false, SLICE + 1);
        let mut raw = Counts::default();
        model(&mut pmu).written.clear();
        assert!(switch(&mut pmu, [now, next], &mut raw));
        pmu.ack_and_resume();
        let counted = since(&raw, &before, now.used, pmu.widths());
        let want: Vec<u64> = (from..from + 10).map(|code| 10 * code).collect();
        assert_eq!(counted.general[..], want[..]);
        let written: Vec<u32> = model(&mut pmu).written.iter().map(|(msr, _)| *msr).collect();
        let selects = if now == next { 0 } else { 10 };
        let wanted = (0..selects).map(|n| 0x1901 + 4 * n).chain([0x1984, 0x390]);
        assert_eq!(written, wanted.collect::<Vec<u32>>());
        before = raw;
    }
}

/// The model adds the second unit mask to the events.
#[test]
fn second_unit_masks_and_the_equal_flag_reach_the_registers() {
    const SECOND: u64 = 3 << 40;
    const EQUAL: u64 = 1 << 36;
    let mut pmu = driver_6();
    let plain = of(&[USER | 1, USER | 2]);
    let wide = of(&[USER | 1, USER | 2 | SECOND | EQUAL]);
    pmu.program(&plain, &setup(Mode::User), SLICE);
    pmu.enable();
    for (now, next, more) in [(&plain, &wide, 0), (&wide, &plain, 3), (&plain, &plain, 0)] {
        let before = read(&mut pmu, 3);
        happen(&mut pmu, false, SLICE + 1);
        let mut raw = Counts::default();
        assert!(switch(&mut pmu, [now, next], &mut raw));
        pmu.ack_and_resume();
        let counted = since(&raw, &before, 3, pmu.widths());
        assert_eq!(counted.general[..2], [10, 20 + more]);
    }
    pmu.program(&wide, &setup(Mode::User), SLICE);
    assert_eq!(model(&mut pmu).msrs[&0x187], USER | 2 | SECOND | EQUAL);
    assert_eq!(pmu.changed_by_others(), None);
}

#[test]
fn the_highest_counter_interrupts_and_is_restored() {
    let mut pmu = driver_6();
    let group = of(&[USER | 1; 10]);
    pmu.program(&group, &setup(Mode::User), SLICE);
    assert_eq!(pmu.preload(9, 15), WIDTH - 14);
    pmu.enable();
    happen(&mut pmu, false, 1);
    assert_eq!(model(&mut pmu).interrupts, 0);
    happen(&mut pmu, false, 1);
    assert_eq!((model(&mut pmu).interrupts, model(&mut pmu).msrs[&0x38e]), (1, 1 << 9));
    pmu.stop();
    assert_eq!(model(&mut pmu).msrs[&0x38e], 0);
    assert!(pmu.can_restore());
    let mut values = Counts::default();
    values.general = [1 << 45; tally_engine::MAX_GENERAL];
    pmu.restore(&group, Mode::User, &values);
    assert_eq!(read(&mut pmu, group.used).general, values.general);
}
