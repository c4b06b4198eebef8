//! Many thresholds, or many that are passed at once.

use super::*;

/// As a list can have a pinned event many times, so can an event have many thresholds.
#[test]
fn hundreds_of_thresholds_on_one_event_fire_each_at_its_count() {
    let mut bench = Bench::new(8, 1, fake::WIDTH - 100);
    bench.resume();
    let first = CYCLES + 1;
    let count = |index: usize| 1_000 + 37 * (index * 71 % MANY) as u64;
    for index in 0..MANY {
        bench.set(first + index, count(index));
    }
    bench.session.set_threshold(first, None).unwrap();
    for _ in 0..10_000 {
        bench.run(1, &[1; 8]);
    }
    let mut wanted: Vec<_> = (1..MANY).map(|index| (first + index, count(index))).collect();
    wanted.sort_by_key(|(_, count)| *count);
    assert_eq!(bench.counts(), wanted);
    assert!(!bench.pmu.is_armed());
}

/// No more than eight fire at one overflow, which bounds the interrupt; the next is one count on.
#[test]
fn thresholds_at_one_count_fire_at_the_next_overflows() {
    let mut bench = Bench::new(8, 1, fake::WIDTH - 100);
    bench.resume();
    let first = CYCLES + 1;
    (0..20).for_each(|index| bench.set(first + index, 5_000));
    for _ in 0..6_000 {
        bench.run(1, &[1; 8]);
    }
    let counts: Vec<u64> = bench.counts().into_iter().map(|(_, count)| count).collect();
    assert_eq!(counts, [vec![5_000; 8], vec![5_001; 8], vec![5_002; 4]].concat());
}

/// An overflow inside the overflow path is lost, and with it all that counters count that the
/// overflow froze: where ring 0 is counted, the next sample is never so near.
#[test]
fn samples_where_ring_0_is_counted_leave_room_for_the_overflow_path() {
    for period in [100, 1_000, 5_000] {
        let mut bench = Bench::counting(Mode::Full, 8, 1, 0);
        bench.resume();
        bench.sync();
        bench.session.set_period(INSTRUCTIONS, period).unwrap();
        bench.sync();
        (0..100_000).for_each(|_| bench.run(1, &[1; 8]));
        assert!(bench.fired.1.len() > 3, "{} samples", bench.fired.1.len());
        let nearest = bench.pmu.nearest_preload().unwrap();
        assert!(nearest >= 20_000, "{nearest} instructions to the next sample");
    }
}
