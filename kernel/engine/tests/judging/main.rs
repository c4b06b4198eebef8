//! Judging streams: programs by which the engine is judged and to which nobody tunes it. Streams
//! that constants were chosen by are in `../simulation`, and stay there.

#[path = "../fake/mod.rs"]
mod fake;
#[path = "../simulation/mod.rs"]
mod simulation;

use fake::NoSink;
use simulation::{Design, Random, SLICE_CYCLES, Step, traced};
use tally_abi::Value;

/// Programs of each length.
const PROGRAMS: u64 = 300;

/// A start-up whose rates decay to those of a loop that does the same in every slice, but for some
/// noise. The last two events are most of them in the start-up.
fn decaying_start_up(slices: usize, random: &mut Random) -> Vec<Step> {
    let decay = 0.5 + 4.0 * random.uniform();
    let ipc = 0.5 + 2.0 * random.uniform();
    let slower = 0.2 + 0.7 * random.uniform();
    let rates: [f64; 8] = core::array::from_fn(|_| 0.001 + 0.1 * random.uniform());
    let excess: [f64; 8] = core::array::from_fn(|event| match event {
        6.. => 20.0,
        _ => 4.0 * random.uniform() - 1.0,
    });
    (0..slices)
        .map(|slice| {
            let left = (-(slice as f64) / decay).exp();
            let mut vary = |value: f64| value * (1.0 + 0.005 * random.normal()).max(0.0);
            let instructions = vary(SLICE_CYCLES as f64 * ipc * (1.0 - slower * left));
            let events = core::array::from_fn(|event| {
                vary(instructions * rates[event] * (1.0 + excess[event] * left)) as u64
            });
            Step { instructions: instructions as u64, events }
        })
        .collect()
}

/// By event: how often the interval held the truth, of how many; and half widths and errors as
/// shares of the truth, in sum.
fn judge(slices: usize) -> [[f64; 4]; 8] {
    let mut sums = [[0.0; 4]; 8];
    for seed in 0..PROGRAMS {
        let mut random = Random::new(0x5eed_0000 + 131 * seed + slices as u64);
        let steps = decaying_start_up(slices, &mut random);
        let (values, _) = traced(Design::of(3), seed, &steps, &mut NoSink);
        for (sums, (truth, _, value)) in sums.iter_mut().zip(values) {
            let Value::Estimated { estimate, half_width_95, .. } = value else { continue };
            let error = (estimate as f64 - truth as f64).abs();
            let scale = (truth as f64).max(1.0);
            let held = f64::from(error <= half_width_95);
            let more = [held, 1.0, half_width_95 / scale, error / scale];
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }
    sums
}

#[test]
fn a_start_up_that_decays_to_a_steady_loop_is_within_its_bars() {
    let mut sums = [[0.0; 2]; 8];
    for slices in [30, 100, 300, 1000, 3000] {
        for (event, [held, of, width, error]) in judge(slices).into_iter().enumerate() {
            println!(
                "{slices:>5} slices, event {event}: held {:.3}, half width {:.4}, error {:.4}",
                held / of,
                width / of,
                error / of
            );
            sums[event][0] += held;
            sums[event][1] += of;
        }
    }
    for (event, [held, of]) in sums.into_iter().enumerate() {
        assert!(held / of >= 0.95, "event {event}: {}", held / of);
    }
}
