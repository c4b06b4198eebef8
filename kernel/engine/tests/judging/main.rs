//! Judging streams: programs that judge the engine and that it is never tuned on. Streams by which
//! constants were chosen are in `../simulation`, and stay there.

#[path = "../fake/mod.rs"]
mod fake;
#[path = "../simulation/mod.rs"]
mod simulation;

use fake::NoSink;
use simulation::{Design, Random, SLICE_CYCLES, Step, traced};
use tally_abi::Value;

/// Number of programs of each length.
const PROGRAMS: u64 = 300;

/// Makes a start-up whose rates decay to those of a loop that does the same in every slice, except
/// for some noise. Most of the last two events happen in the start-up.
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

/// Makes a few long phases, in each of which the rates are nearly constant. All the error is that
/// of the rounds in which a phase ends.
fn long_phases(slices: usize, random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::with_capacity(slices);
    while steps.len() < slices {
        let ipc = 0.3 + 3.0 * random.uniform();
        let rates: [f64; 8] = core::array::from_fn(|_| 0.2 * random.uniform());
        let length = 3.0 + random.uniform() * slices as f64 / 4.0;
        for _ in 0..length as usize {
            let mut vary = |value: f64| value * (1.0 + 0.001 * random.normal()).max(0.0);
            let instructions = vary(SLICE_CYCLES as f64 * ipc);
            let events = rates.map(|rate| vary(instructions * rate) as u64);
            steps.push(Step { instructions: instructions as u64, events });
        }
    }
    steps.truncate(slices);
    steps
}

/// Makes events that come in batches of constant size, one batch in some dozen slices.
fn batches(slices: usize, random: &mut Random) -> Vec<Step> {
    let sizes: [f64; 8] = core::array::from_fn(|_| 5.0 * (60.0_f64).powf(random.uniform()));
    let often: [f64; 8] = core::array::from_fn(|_| 0.01 + 0.05 * random.uniform());
    let step = |_| {
        let mut met = |event: usize| random.uniform() < often[event];
        let events = core::array::from_fn(|event| if met(event) { sizes[event] as u64 } else { 0 });
        Step { instructions: SLICE_CYCLES, events }
    };
    (0..slices).map(step).collect()
}

/// Makes the steps of a program with a number of slices.
type Stream = fn(usize, &mut Random) -> Vec<Step>;

/// Returns, by event, the number of intervals that contained the truth, and of all; and the sums of
/// half widths and of errors as shares of the truth.
fn judge(stream: Stream, slices: usize) -> [[f64; 4]; 8] {
    let mut sums = [[0.0; 4]; 8];
    for seed in 0..PROGRAMS {
        let mut random = Random::new(0x5eed_0000 + 131 * seed + slices as u64);
        let steps = stream(slices, &mut random);
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

/// Returns, by event, the share of the intervals that contained the truth, over some lengths;
/// prints them.
fn held<const LENGTHS: usize>(stream: Stream, lengths: [usize; LENGTHS]) -> [f64; 8] {
    let mut sums = [[0.0; 2]; 8];
    for slices in lengths {
        for (event, [held, of, width, error]) in judge(stream, slices).into_iter().enumerate() {
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
    sums.map(|[held, of]| held / of)
}

#[test]
fn a_start_up_that_decays_to_a_steady_loop_is_within_its_bars() {
    for (event, held) in held(decaying_start_up, [30, 100, 300, 1000, 3000]).iter().enumerate() {
        assert!(*held >= 0.95, "event {event}: {held}");
    }
}

#[test]
fn a_few_long_phases_are_within_their_bars() {
    let held = held(long_phases, [30, 100, 300, 1000, 3000]);
    // All events have the same phases. 84 % before the far pairs' part in the ends of phases.
    let mean = held.iter().sum::<f64>() / 8.0;
    assert!(mean >= 0.94, "{mean}");
}

#[test]
fn batches_that_few_slices_have_met_are_within_their_bars() {
    let held = held(batches, [30, 60, 100, 300]);
    let mean = held.iter().sum::<f64>() / 8.0;
    assert!(mean >= 0.94, "{mean}");
}
