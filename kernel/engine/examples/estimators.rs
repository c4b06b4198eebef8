//! Comparison of both estimators and both kinds of shares on synthetic streams: `cargo xtask study
//! estimators`.
//!
//! `estimators RUNS [FIRST]`, with the seed of the first run, prints one JSON object: for each
//! stream the median and the 99th percentile of the relative error of the total, the
//! Kullback-Leibler distance of the rounds' distribution (Azimi, Stumm and Wisniewski, "Online
//! performance analysis by statistical sampling of microprocessor performance counters", ICS 2005,
//! section 6.2), each by linear scaling and by the ratio, and how often the 95 % interval holds the
//! truth; the same errors with adaptive shares, at the same number of switches; and of the largest
//! relative error of each run the median with either shares.
//!
//! The real session and multiplexer run on a simulated PMU, ten groups to a round as in the paper.

#[path = "../tests/fake/mod.rs"]
mod fake;
#[path = "../tests/simulation/mod.rs"]
mod simulation;

use fake::{NoSink, Records};
use simulation::{
    Design, Random, Step,
    streams::{CHOSEN_BY, GROUPS, SLICES, STREAMS, program},
    traced,
};
use tally_abi::{Shares, Value, trace::SliceRecord};
use tally_engine::{
    estimate::{self, Sample},
    plan::CounterAssignment,
};

fn main() {
    let number = |nth, default| {
        std::env::args().nth(nth).and_then(|word| word.parse().ok()).unwrap_or(default)
    };
    let (runs, first): (u64, u64) = (number(1, 200), number(2, 0));
    let mut outcomes: Vec<Outcome> = STREAMS.iter().map(|_| Outcome::default()).collect();
    let mut largest = [Vec::new(), Vec::new()];
    for run in first..first + runs {
        let steps = program(&mut Random::new(run));
        let mut records = Records::default();
        let (planned, assignments) = traced(Design::of(GROUPS), run, &steps, &mut records);
        let adaptive = Design { shares: Shares::Adaptive, ..Design::of(GROUPS) };
        let (adaptive, _) = traced(adaptive, run, &steps, &mut NoSink);
        let mut worst = [0.0_f64; 2];
        for (event, outcome) in outcomes.iter_mut().enumerate() {
            let errors = outcome.add(&planned[event], &adaptive[event]);
            worst = [worst[0].max(errors[0]), worst[1].max(errors[1])];
            let distances = distances(event, &steps, &records.0, assignments[event]);
            outcome.linear.distances.push(distances[0]);
            outcome.ratio.distances.push(distances[1]);
        }
        largest.iter_mut().zip(worst).for_each(|(all, one)| all.push(one));
    }
    let mut lines: Vec<String> =
        STREAMS.iter().zip(&mut outcomes).map(|(name, outcome)| outcome.json(name)).collect();
    let mut all = Outcome::default();
    outcomes[..CHOSEN_BY].iter().for_each(|outcome| all.join(outcome));
    lines.push(all.json("the first five"));
    let [planned, adaptive] = largest.map(|mut errors| percentile(&mut errors, 50));
    println!(
        r#"{{"runs":{runs},"groups":{GROUPS},"slices":{SLICES},"largest":{{"planned":{planned:.6},"adaptive":{adaptive:.6}}},"streams":[{}]}}"#,
        lines.join(",")
    );
}

/// Returns the Kullback-Leibler distances of the rounds' distribution by time and by ratio.
fn distances(
    event: usize,
    steps: &[Step],
    records: &[SliceRecord],
    place: CounterAssignment,
) -> [f64; 2] {
    let CounterAssignment::General { group, .. } = place else { panic!("{place:?}") };
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
    // A count of zero does not mean impossible: it is taken as half an event.
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

/// Results of many runs for one stream: by time, by the ratio, and by the ratio with adaptive
/// shares.
#[derive(Default)]
struct Outcome {
    linear: Errors,
    ratio: Errors,
    adaptive: Errors,
}

type Result = (u64, Sample, Value);

impl Outcome {
    /// Adds one run. Returns the relative errors of the ratio with both kinds of shares.
    fn add(&mut self, (truth, sample, value): &Result, adaptive: &Result) -> [f64; 2] {
        let truth = *truth as f64;
        let by_time = estimate::by_time(sample).expect("time has passed");
        self.linear.add(truth, by_time, f64::NAN);
        let add = |errors: &mut Errors, value: Value| {
            let Value::Estimated { estimate, half_width_95, .. } = value else {
                panic!("{value:?}")
            };
            errors.add(truth, estimate as f64, half_width_95)
        };
        [add(&mut self.ratio, *value), add(&mut self.adaptive, adaptive.2)]
    }

    fn join(&mut self, other: &Outcome) {
        self.linear.join(&other.linear);
        self.ratio.join(&other.ratio);
        self.adaptive.join(&other.adaptive);
    }

    fn json(&mut self, name: &str) -> String {
        let Outcome { linear, ratio, adaptive } = self;
        format!(
            r#"{{"name":"{name}","linear":{{{},{}}},"ratio":{{{},{},{}}},"adaptive":{{{},{}}}}}"#,
            linear.json(),
            linear.distance(),
            ratio.json(),
            ratio.distance(),
            ratio.coverage(),
            adaptive.json(),
            adaptive.coverage(),
        )
    }
}

/// Relative errors of many runs, and the distances of their rounds' distributions.
#[derive(Default)]
struct Errors {
    errors: Vec<f64>,
    distances: Vec<f64>,
    covered: usize,
}

impl Errors {
    fn add(&mut self, truth: f64, estimate: f64, half_width: f64) -> f64 {
        let error = (estimate - truth).abs();
        self.covered += usize::from(error <= half_width);
        self.errors.push(error / truth);
        error / truth
    }

    fn join(&mut self, other: &Errors) {
        self.errors.extend(&other.errors);
        self.distances.extend(&other.distances);
        self.covered += other.covered;
    }

    fn json(&mut self) -> String {
        let (median, p99) = (percentile(&mut self.errors, 50), percentile(&mut self.errors, 99));
        format!(r#""median":{median:.6},"p99":{p99:.6}"#)
    }

    fn distance(&mut self) -> String {
        format!(r#""kl":{:.6}"#, percentile(&mut self.distances, 50))
    }

    fn coverage(&self) -> String {
        format!(r#""coverage":{:.4}"#, self.covered as f64 / self.errors.len() as f64)
    }
}

fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() * percent / 100]
}
