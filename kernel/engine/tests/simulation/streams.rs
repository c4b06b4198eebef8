//! The streams of `cargo xtask study estimators`: what instructions cause, in programs whose
//! instructions per cycle change from phase to phase: that is what counts do that anybody
//! multiplexes for.

use super::{Random, SLICE_CYCLES, Step};

/// Groups that take turns: as many as in the paper's section 6.2.
pub const GROUPS: usize = 10;
/// Slices of a program: 600 million cycles.
pub const SLICES: usize = 3000;

/// What an event does over time, for each instruction. The last three had no part in choosing what
/// the estimator is made of.
pub const STREAMS: [&str; 8] =
    ["steady", "phased", "bursty", "periodic", "heavy-tailed", "log-normal", "drifting", "sparse"];

/// How many of them had.
pub const CHOSEN_BY: usize = 5;

/// A program: phases of some hundred slices with instructions per cycle of their own.
pub fn program(random: &mut Random) -> Vec<Step> {
    let (mut ipc, mut rate, mut left, mut burst) = (1.0, 1.0, 0_usize, 0_usize);
    let noise = |random: &mut Random, share: f64| (1.0 + share * random.normal()).max(0.0);
    let step = |slice| {
        if left == 0 {
            left = 20 + (random.uniform() * 300.0) as usize;
            ipc = 0.3 + 2.7 * random.uniform();
            rate = 0.5 + random.uniform();
        }
        left -= 1;
        if burst == 0 && random.uniform() < 0.01 {
            burst = 1 + (random.uniform() * 20.0) as usize;
        }
        let instructions = SLICE_CYCLES as f64 * ipc * noise(random, 0.2);
        let turn = slice as f64 * std::f64::consts::TAU / GROUPS as f64;
        // Pareto with a tail of 2.5: a mean and a spread, and little more.
        let pareto = (1.0 - random.uniform()).powf(-1.0 / 2.5) * 0.6;
        let so_far = slice as f64 / SLICES as f64;
        let per_instruction = [
            0.2 * noise(random, 0.05),
            0.05 * rate * noise(random, 0.05),
            if burst > 0 { 0.02 } else { 0.004 } * noise(random, 0.1),
            0.03 * (1.0 + 0.5 * turn.sin()),
            0.01 * pareto,
            0.002 * random.normal().exp(),
            0.1 * (1.0 + 2.0 * so_far) * noise(random, 0.2),
            // One event in so many instructions, anywhere.
            random.poisson(instructions * 1e-6) / instructions,
        ];
        burst = burst.saturating_sub(1);
        // A fraction of an event is none, but for what was a whole number of them before.
        let events = per_instruction.map(|rate| (instructions * rate + 1e-6) as u64);
        Step { instructions: instructions as u64, events }
    };
    (0..SLICES).map(step).collect()
}

/// A start-up of a few slices, then a loop that does the same in every slice, but for some noise: a
/// micro-benchmark, with rates of their own in both. By it the constants of how far slices that no
/// group has met may stray were chosen.
pub fn micro_benchmark(slices: usize, random: &mut Random) -> Vec<Step> {
    let start_up = 1 + (random.uniform() * 6.0) as usize;
    let mut rates = || -> (f64, [f64; 8]) {
        let ipc = 0.3 + 2.5 * random.uniform();
        (ipc, core::array::from_fn(|_| 0.1 * random.uniform() * random.uniform()))
    };
    let (start, steady) = (rates(), rates());
    (0..slices)
        .map(|slice| {
            let ((ipc, rates), noise) =
                if slice < start_up { (start, 0.2) } else { (steady, 0.002) };
            let mut vary = |value: f64| value * (1.0 + noise * random.normal()).max(0.0);
            let instructions = vary(SLICE_CYCLES as f64 * ipc);
            let events = rates.map(|rate| vary(instructions * rate) as u64);
            Step { instructions: instructions as u64, events }
        })
        .collect()
}
