//! Streams of `cargo xtask study estimators`: events that instructions cause, in programs whose
//! instructions per cycle change from phase to phase, which is the usual behaviour of events for
//! which multiplexing is used.

use super::{Random, SLICE_CYCLES, Step};

/// Number of groups that take turns: as in section 6.2 of the paper.
pub const GROUPS: usize = 10;
/// Slices of a program: 600 million cycles.
pub const SLICES: usize = 3000;

/// Behaviour of each event over time, per instruction. The last three were not used to choose the
/// methods of the estimator.
pub const STREAMS: [&str; 8] =
    ["steady", "phased", "bursty", "periodic", "heavy-tailed", "log-normal", "drifting", "sparse"];

/// Number of streams that were used for it.
pub const CHOSEN_BY: usize = 5;

/// Makes a program: phases of some hundred slices with different instructions per cycle.
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
        // Pareto with a tail of 2.5: it has a mean and a variance, but no higher moments.
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
            // One event in many instructions, anywhere.
            random.poisson(instructions * 1e-6) / instructions,
        ];
        burst = burst.saturating_sub(1);
        // Rounds down to whole events; the small addend corrects products that were whole numbers.
        let events = per_instruction.map(|rate| (instructions * rate + 1e-6) as u64);
        Step { instructions: instructions as u64, events }
    };
    (0..SLICES).map(step).collect()
}

/// Makes a micro-benchmark: a start-up of a few slices, then a loop that does the same in every
/// slice, except for some noise, with different rates in both. The constants for the deviation of
/// slices that no group has met were chosen by it.
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
