//! Many thresholds, or many that are passed at once.

use super::*;

/// Number of additional entries of the cycles in the list.
const MANY: usize = 200;

fn bench() -> Bench {
    Bench::listing(MANY, Mode::User, 8, 1, fake::WIDTH - 100)
}

/// An event can have many thresholds, because a list can have a pinned event many times.
#[test]
fn hundreds_of_thresholds_on_one_event_fire_each_at_its_count() {
    let mut bench = bench();
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

/// At most eight thresholds fire at one overflow, which bounds the interrupt; the next one fires
/// one count later.
#[test]
fn thresholds_at_one_count_fire_at_the_next_overflows() {
    let mut bench = bench();
    bench.resume();
    let first = CYCLES + 1;
    (0..20).for_each(|index| bench.set(first + index, 5_000));
    for _ in 0..6_000 {
        bench.run(1, &[1; 8]);
    }
    let counts: Vec<u64> = bench.counts().into_iter().map(|(_, count)| count).collect();
    assert_eq!(counts, [vec![5_000; 8], vec![5_001; 8], vec![5_002; 4]].concat());
}
