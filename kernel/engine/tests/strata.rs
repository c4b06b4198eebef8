//! Estimates by strata of instructions per cycle, compared with those of the same slices without
//! strata. These programs were not used to choose anything in the engine.

mod fake;
mod simulation;

use fake::NoSink;
use simulation::{Design, Random, SLICE_CYCLES, Step, traced};
use tally_abi::{Shares, Value};
use tally_engine::estimate;

/// Number of programs of each kind.
const PROGRAMS: u64 = 200;
const SLICES: usize = 1200;

/// Estimates of many programs, with strata and without.
#[derive(Default)]
struct Outcome {
    errors: [Vec<f64>; 2],
    held: [f64; 2],
    widths: [Vec<f64>; 2],
}

impl Outcome {
    fn add(&mut self, which: usize, truth: u64, value: Value) {
        let Value::Estimated { estimate, half_width_95, .. } = value else { panic!("{value:?}") };
        let error = (estimate as f64 - truth as f64).abs();
        self.errors[which].push(error / truth as f64);
        self.held[which] += f64::from(error <= half_width_95);
        self.widths[which].push(half_width_95 / truth as f64);
    }

    /// Returns the median error, the share of intervals with the truth, and the median half width.
    fn of(&mut self, which: usize) -> [f64; 3] {
        let median = |values: &mut Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let held = self.held[which] / self.errors[which].len() as f64;
        [median(&mut self.errors[which]), held, median(&mut self.widths[which])]
    }
}

fn study(program: impl Fn(&mut Random) -> Vec<Step>, shares: Shares) -> [[f64; 3]; 2] {
    let mut outcome = Outcome::default();
    for seed in 0..PROGRAMS {
        let steps = program(&mut Random::new(0x57a7_0000 + seed));
        let design = Design { shares, ..Design::of(4) };
        for (truth, sample, value) in traced(design, seed, &steps, &mut NoSink).0 {
            outcome.add(0, truth, value);
            outcome.add(1, truth, estimate::estimate(&sample, None));
        }
    }
    let both = [0, 1].map(|which| outcome.of(which));
    println!("with strata {:.4?}, without {:.4?}", both[0], both[1]);
    both
}

/// Makes parts that take turns at random within a round, each with its own instructions per cycle
/// and rates.
fn interleaved(random: &mut Random) -> Vec<Step> {
    let parts: Vec<(f64, [f64; 8])> = (0..5)
        .map(|_| {
            let ipc = 0.25 * 16.0_f64.powf(random.uniform());
            (ipc, core::array::from_fn(|_| 0.001 + 0.02 * random.uniform()))
        })
        .collect();
    let mut part = 0;
    let mut step = || {
        if random.uniform() < 0.4 {
            part = (random.uniform() * parts.len() as f64) as usize % parts.len();
        }
        let (ipc, rates) = parts[part];
        let mut vary = |value: f64| value * (1.0 + 0.03 * random.normal()).max(0.0);
        let instructions = vary(SLICE_CYCLES as f64 * ipc);
        let events = rates.map(|rate| vary(SLICE_CYCLES as f64 * rate) as u64);
        Step { instructions: instructions as u64, events }
    };
    (0..SLICES).map(|_| step()).collect()
}

/// Makes rates that change slowly, and are independent of the instructions per cycle.
fn unrelated(random: &mut Random) -> Vec<Step> {
    let periods: [f64; 8] = core::array::from_fn(|_| 50.0 + 500.0 * random.uniform());
    let step = |slice: usize| {
        let ipc = 0.5 + 2.0 * random.uniform();
        let events = periods.map(|period| {
            let slow = 1.0 + 0.5 * (slice as f64 * std::f64::consts::TAU / period).sin();
            (2000.0 * slow * (1.0 + 0.02 * random.normal())) as u64
        });
        Step { instructions: (SLICE_CYCLES as f64 * ipc) as u64, events }
    };
    (0..SLICES).map(step).collect()
}

#[test]
fn parts_of_a_program_within_a_round_are_told_apart_by_their_instructions_a_cycle() {
    let [with, without] = study(interleaved, Shares::Planned);
    assert!(with[0] < 0.8 * without[0], "median error {} {}", with[0], without[0]);
    assert!(with[2] < 0.8 * without[2], "half width {} {}", with[2], without[2]);
    assert!((0.93..=0.97).contains(&with[1]), "{}", with[1]);
}

#[test]
fn what_strata_do_not_explain_is_no_worse_with_them() {
    let [with, without] = study(unrelated, Shares::Planned);
    assert!(with[0] <= 1.05 * without[0], "median error {} {}", with[0], without[0]);
    assert!(with[1] >= without[1] - 0.01, "{} {}", with[1], without[1]);
}

/// If an estimate by strata contradicts the slices without them, the program changed within a
/// stratum: the estimate stays within the interval that it has without strata.
#[test]
fn estimates_by_strata_are_within_the_interval_without_them() {
    for program in [interleaved, unrelated] {
        for seed in 0..PROGRAMS {
            let steps = program(&mut Random::new(0x57a7_1000 + seed));
            for (_, sample, with) in traced(Design::of(4), seed, &steps, &mut NoSink).0 {
                let without = estimate::estimate(&sample, None);
                let (Some([low, high]), Value::Estimated { estimate, .. }) = (ends(without), with)
                else {
                    panic!("{with:?} {without:?}")
                };
                let estimate = estimate as f64;
                // Both values are rounded.
                assert!((low - 1.0..=high + 1.0).contains(&estimate), "{with:?} {without:?}");
            }
        }
    }
}

fn ends(value: Value) -> Option<[f64; 2]> {
    let Value::Estimated { estimate, half_width_95, .. } = value else { return None };
    Some([estimate as f64 - half_width_95, estimate as f64 + half_width_95])
}

#[test]
fn shares_that_adapt_have_no_strata() {
    let [with, without] = study(interleaved, Shares::Adaptive);
    assert!((with[0] - without[0]).abs() < 1e-9);
}
