//! Both estimators on synthetic streams, side by side: `cargo xtask study estimators`.
//!
//! `estimators RUNS` prints one JSON object: for each stream the median and the 99th percentile of
//! the relative error of the total, the Kullback-Leibler distance of the rounds' distribution (Azimi,
//! Stumm and Wisniewski, "Online performance analysis by statistical sampling of microprocessor
//! performance counters", ICS 2005, section 6.2), each by linear scaling and by the ratio, and how
//! often the 95 % interval holds the truth.
//!
//! Streams are what instructions cause, in programs whose instructions per cycle change from phase to
//! phase: that is what counts do that anybody multiplexes for. The real session and multiplexer run
//! on a simulated PMU, ten groups to a round as in the paper.

#[path = "../tests/fake/mod.rs"]
mod fake;
#[path = "../tests/simulation/mod.rs"]
mod simulation;

use fake::Records;
use simulation::{Random, SLICE_CYCLES, Step, traced};
use tally_abi::{Value, trace::SliceRecord};
use tally_engine::{estimate, plan::Place};

/// Groups, and so slices of a round.
const GROUPS: usize = 10;
/// Slices of a program: 600 million cycles.
const SLICES: usize = 3000;

/// What an event does over time, for each instruction.
const STREAMS: [&str; 5] = ["steady", "phased", "bursty", "periodic", "heavy-tailed"];

fn main() {
    let runs = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(200);
    let mut outcomes: Vec<Outcome> = STREAMS.iter().map(|_| Outcome::default()).collect();
    for run in 0..runs {
        let steps = program(&mut Random::new(run));
        let mut records = Records::default();
        let (results, places) = traced(GROUPS, run, &steps, &mut records);
        for (event, outcome) in outcomes.iter_mut().enumerate() {
            let (truth, sample, value) = &results[event];
            let by_time = estimate::by_time(sample).expect("time has passed");
            let Value::Estimated { estimate, half_width_95, .. } = *value else {
                panic!("{value:?}")
            };
            outcome.add(*truth as f64, by_time, estimate as f64, half_width_95);
            let distances = distances(event, &steps, &records.0, places[event]);
            outcome.distances.iter_mut().zip(distances).for_each(|(all, one)| all.push(one));
        }
    }
    let mut lines: Vec<String> =
        STREAMS.iter().zip(&mut outcomes).map(|(name, outcome)| outcome.json(name)).collect();
    let mut all = Outcome::default();
    outcomes.iter().for_each(|outcome| all.join(outcome));
    lines.push(all.json("all"));
    println!(
        r#"{{"runs":{runs},"groups":{GROUPS},"slices":{SLICES},"streams":[{}]}}"#,
        lines.join(",")
    );
}

/// A program: phases of some hundred slices with instructions per cycle of their own.
fn program(random: &mut Random) -> Vec<Step> {
    let (mut ipc, mut rate, mut left, mut burst) = (1.0, 1.0, 0_usize, 0_usize);
    (0..SLICES)
        .map(|slice| {
            if left == 0 {
                left = 20 + (random.uniform() * 300.0) as usize;
                ipc = 0.3 + 2.7 * random.uniform();
                rate = 0.5 + random.uniform();
            }
            left -= 1;
            if burst == 0 && random.uniform() < 0.01 {
                burst = 1 + (random.uniform() * 20.0) as usize;
            }
            let noise = |random: &mut Random, share: f64| (1.0 + share * random.normal()).max(0.0);
            let instructions = SLICE_CYCLES as f64 * ipc * noise(random, 0.2);
            let turn = slice as f64 * std::f64::consts::TAU / GROUPS as f64;
            // Pareto with a tail of 2.5: a mean and a spread, and little more.
            let pareto = (1.0 - random.uniform()).powf(-1.0 / 2.5) * 0.6;
            let per_instruction = [
                0.2 * noise(random, 0.05),
                0.05 * rate * noise(random, 0.05),
                if burst > 0 { 0.02 } else { 0.004 } * noise(random, 0.1),
                0.03 * (1.0 + 0.5 * turn.sin()),
                0.01 * pareto,
            ];
            burst = burst.saturating_sub(1);
            let mut events = [0; 8];
            for (event, rate) in events.iter_mut().zip(per_instruction) {
                *event = (instructions * rate) as u64;
            }
            Step { instructions: instructions as u64, events }
        })
        .collect()
}

/// The Kullback-Leibler distances of the rounds' distribution by time and by ratio.
fn distances(event: usize, steps: &[Step], records: &[SliceRecord], place: Place) -> [f64; 2] {
    let Place::General { group, .. } = place else { panic!("{place:?}") };
    let rounds = steps.chunks_exact(GROUPS).zip(records.chunks_exact(GROUPS));
    let mut series: Vec<[f64; 3]> = rounds
        .map(|(steps, records)| {
            let truth: u64 = steps.iter().map(|step| step.events[event]).sum();
            let instructions: u64 = steps.iter().map(|step| step.instructions).sum();
            let slice = records.iter().find(|r| r.group == group).expect("it had its turn");
            let count = slice.counts[0] as f64;
            let by_ratio = count * instructions as f64 / slice.instructions as f64;
            [truth as f64, count * GROUPS as f64, by_ratio]
        })
        .collect();
    // Nothing seen is not impossible: half an event.
    series.iter_mut().flatten().for_each(|count| *count = count.max(0.5));
    let sums = [0, 1, 2].map(|i| series.iter().map(|round| round[i]).sum::<f64>());
    [1, 2].map(|which| {
        let term = |round: &[f64; 3]| {
            let (p, q) = (round[0] / sums[0], round[which] / sums[which]);
            p * (p / q).ln()
        };
        series.iter().map(term).sum()
    })
}

/// Relative errors of many runs, by time and by ratio.
#[derive(Default)]
struct Outcome {
    errors: [Vec<f64>; 2],
    distances: [Vec<f64>; 2],
    covered: usize,
}

impl Outcome {
    fn add(&mut self, truth: f64, by_time: f64, by_ratio: f64, half_width: f64) {
        self.covered += usize::from((by_ratio - truth).abs() <= half_width);
        for (errors, estimate) in self.errors.iter_mut().zip([by_time, by_ratio]) {
            errors.push((estimate - truth).abs() / truth);
        }
    }

    fn join(&mut self, other: &Outcome) {
        self.covered += other.covered;
        for i in [0, 1] {
            self.errors[i].extend(&other.errors[i]);
            self.distances[i].extend(&other.distances[i]);
        }
    }

    fn json(&mut self, name: &str) -> String {
        let runs = self.errors[0].len();
        let mut sides = Vec::new();
        for (side, i) in [("linear", 0), ("ratio", 1)] {
            let (errors, distances) = (&mut self.errors[i], &mut self.distances[i]);
            errors.sort_by(f64::total_cmp);
            distances.sort_by(f64::total_cmp);
            sides.push(format!(
                r#""{side}":{{"median":{:.6},"p99":{:.6},"kl":{:.6}}}"#,
                errors[runs / 2],
                errors[runs * 99 / 100],
                distances[runs / 2]
            ));
        }
        let coverage = self.covered as f64 / runs as f64;
        format!(r#"{{"name":"{name}",{},"coverage":{coverage:.4}}}"#, sides.join(","))
    }
}
