//! Tests of the sums over slices.

use super::*;

fn slice(cycles: u64, events: u64) -> Counts {
    let mut counts = Counts::default();
    counts[Pinned::Cycles] = cycles;
    counts[Pinned::Instructions] = 2 * cycles;
    counts.general[0] = events;
    counts
}

#[test]
fn restating_there_and_back_changes_next_to_nothing() {
    let mut moments = GroupMoments::of(2);
    for (round, number) in (0..).zip(0..40) {
        let turn = Turn { number: 5 * number, round, block: 0 };
        moments.add(&slice(1000 + number, 100 * (1 + number % 3)), 1, turn, 20);
    }
    let before = moments;
    for share in [7, 1, 19, 2] {
        moments.restate(share, 20);
    }
    let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-4 * b.abs() + 1e-4, "{a} {b}");
    let (now, then) = (&moments.events[0], &before.events[0]);
    let events =
        |event: &EventMoments| event.events as f64 + f64::from(event.fraction) / 2_f64.powi(32);
    near(events(now), events(then));
    near(moments.weight() as f64, before.weight() as f64);
    for distance in [0, 1] {
        near(now.pairs[distance].squares as f64, then.pairs[distance].squares as f64);
        near(moments.pairs[distance].weight as f64, before.pairs[distance].weight as f64);
    }
    assert_eq!(moments.counted_cycles(), before.counted_cycles());
}

#[test]
fn a_share_twice_as_large_makes_twice_the_count_of_what_was() {
    let mut moments = GroupMoments::of(2);
    moments.add(&slice(1000, 10), 1, Turn::default(), 10);
    moments.restate(4, 10);
    moments.add(&slice(1000, 10), 1, Turn { number: 12, round: 1, block: 1 }, 10);
    assert_eq!((moments.sums, moments.events[0].events), ([3000, 6000], 30));
    // (4/2)² · (10 − 2)/(10 − 4) for the first slice, and one for the second.
    let expected = (4.0 * 8.0 / 6.0 + 1.0) * ONE as f64;
    assert!((moments.weight() as f64 - expected).abs() < 2.0);
    assert_eq!((moments.slices, moments.counted_cycles()), (2, 2000));
    assert_eq!(moments.events[0].counted(), 20);
}

#[test]
fn close_pairs_weigh_what_their_distances_have_of_a_round() {
    let (round, in_sixteenths) = (10, |distance| weight(distance, 10));
    assert_eq!([1, 2, 5, 9].map(in_sixteenths), [144, 64, 16, 1]);
    // Far pairs, and pairs within a round, weigh one.
    let mut moments = GroupMoments::of(1);
    for (number, round_number) in [(3, 0), (13, 1), (25, 2), (30, 3)] {
        let turn = Turn { number, round: round_number, block: 0 };
        moments.add(&slice(100, number), 1, turn, round);
    }
    let [near, far, _] = moments.pairs;
    assert_eq!((near.weight, near.squared_weight), (ONE, ONE));
    assert_eq!((far.weight, far.squared_weight), (2 * ONE, 2 * ONE));
    let squares = moments.events[0].pairs.map(|pairs| pairs.squares / i128::from(WEIGHT));
    assert_eq!(squares, [25, 100 + 144, 0]);
}

#[test]
fn whole_blocks_are_set_against_each_other() {
    let mut moments = GroupMoments::of(2);
    let rounds = block_rounds(10);
    let turn = |round: u64| Turn {
        number: 10 * round,
        round: round as u16,
        block: (round / rounds) as u16,
    };
    for round in 0..3 * rounds {
        // Each block has one event more in each of its slices; the last slice of the second block
        // is missing.
        for slice_of_round in 0..2 {
            if (round, slice_of_round) != (2 * rounds - 1, 1) {
                moments.add(&slice(100, 5 + round / rounds), 1, turn(round), 10);
            }
        }
    }
    moments.add(&slice(100, 0), 1, turn(3 * rounds), 10);
    assert_eq!(moments.pairs[BLOCKS], GroupPairs::default());
    for round in 3 * rounds..=5 * rounds {
        moments.add(&slice(100, 5 + round / rounds), 1, turn(round), 10);
    }
    assert_eq!(moments.pairs[BLOCKS], GroupPairs::default());
    let mut moments = GroupMoments::of(1);
    for round in 0..=2 * rounds {
        moments.add(&slice(100, 5 + round / rounds), 1, turn(round), 10);
    }
    let blocks = moments.pairs[BLOCKS];
    assert_eq!((blocks.weight, blocks.squared_weight), (rounds * ONE, rounds * rounds * ONE));
    let squares = moments.events[0].pairs[BLOCKS].squares / i128::from(WEIGHT);
    assert_eq!(squares, i128::from(rounds * rounds));
}

#[test]
fn the_largest_slices_are_kept_in_order() {
    let mut moments = GroupMoments::of(1);
    for (round, events) in (0..).zip([3, 9, 1, 4, 8, 8, 2]) {
        let turn = Turn { number: u64::from(round), round, block: 0 };
        moments.add(&slice(100, events), 1, turn, 2);
    }
    assert_eq!(moments.events[0].peaks.map(|peak| peak.events), [9, 8, 8, 4]);
}
