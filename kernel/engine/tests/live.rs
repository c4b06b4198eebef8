//! Readings of a bank while its program runs, compared with the truth at the same moments.

mod fake;
#[expect(dead_code, reason = "it is for several tests")]
mod program;

use program::{Bench, SLICE};

/// Reads a steady program with some noise at random moments: the truth lies within the stated half
/// width, and the difference of two readings within the sum of both.
#[test]
fn live_readings_are_within_their_half_widths() {
    let (mut judged, mut held, mut differences, mut held_differences) = (0, 0, 0, 0);
    for seed in 0..20 {
        let mut bench = Bench::new(2, seed, 0);
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        bench.resume();
        let (mut truth, mut last) = ([0; 8], [None; 8]);
        for step in 0..3_000_u64 {
            let cycles = 500 + draw(3_000);
            let events: [u64; 8] =
                core::array::from_fn(|event| cycles * (event as u64 + 1) / 4 + draw(cycles / 4));
            bench.run(cycles, &events);
            truth.iter_mut().zip(events).for_each(|(truth, events)| *truth += events);
            if step % 40 == 0 {
                bench.publish_errors(8);
            }
            for event in 0..8 {
                let (value, half_width) = (bench.read(event).0 as f64, bench.half_width(event));
                if draw(20) > 0 || half_width.is_nan() {
                    continue;
                }
                let truth = truth[event] as f64;
                judged += 1;
                held += u32::from((value - truth).abs() <= half_width);
                if let Some((before, truth_before, half_width_before)) = last[event] {
                    differences += 1;
                    let off: f64 = value - before - (truth - truth_before);
                    held_differences += u32::from(off.abs() <= half_width + half_width_before);
                }
                last[event] = Some((value, truth, half_width));
            }
        }
    }
    assert!(judged > 10_000, "{judged}");
    assert!(held * 100 >= judged * 94, "{held} of {judged}");
    assert!(held_differences * 100 >= differences * 94, "{held_differences} of {differences}");
}

/// Half widths are computed at intervals. The interval nevertheless includes events since the last
/// computation.
#[test]
fn a_value_that_a_slice_has_moved_far_has_as_wide_an_interval() {
    const EVENT: usize = 3;
    let mut bench = Bench::new(2, 1, 0);
    bench.resume();
    let none = core::array::from_fn(|event| if event == EVENT { 0 } else { SLICE / 4 });
    for slice in 0..200 {
        if slice % 40 == 0 {
            bench.publish_errors(8);
        }
        bench.run(SLICE, &none);
    }
    let mut truth = 0;
    while bench.read(EVENT).0 == 0 {
        bench.run(SLICE, &[SLICE / 4; 8]);
        truth += SLICE / 4;
    }
    let (value, half_width) = (bench.read(EVENT).0, bench.half_width(EVENT));
    // Of eleven slices of the event, in groups of four, one had any events.
    assert!(half_width >= value as f64 / 4.0, "{value} ± {half_width}, {truth}");
    assert!(value.abs_diff(truth) as f64 <= half_width, "{value} ± {half_width}, {truth}");
}
