//! Sessions that count ring 0, including the overflow path itself.

use super::*;

/// If ring 0 is counted, the engine's own code is counted while counters run: all of it is
/// credited.
#[test]
fn nothing_is_lost_where_counters_are_set_while_ring_0_is_counted() {
    let mut bench = Bench::counting(Mode::Full, 2, 1, 0);
    let threshold = |bench: &mut Bench, event: usize, at| {
        bench.session.set_threshold(event, Some(at)).unwrap();
    };
    for step in 1..=2_000 {
        threshold(&mut bench, INSTRUCTIONS, 3_000 * step);
        threshold(&mut bench, step as usize % 8, 2_000 * step);
        bench.resume();
        bench.run(step * 37 % 4_000, &[1; 8]);
        bench.sync();
        // The slice may end in the kernel, whose interrupt is delayed.
        bench.pmu.run(step * 91 % 5_000, 5_000, &[1; 8]);
        bench.sync();
        bench.suspend(if step % 3 == 0 { End::Stopped } else { End::SwitchedOut });
        let stats = bench.session.stats();
        assert_eq!((stats.cycles, stats.instructions), bench.pmu.truth(), "step {step}");
    }
    assert!(bench.pmu.preloads() > 100);
}

/// An overflow inside the overflow path is lost, and with it the counts of all counters that the
/// overflow froze: if ring 0 is counted, the next sample is never that close.
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
