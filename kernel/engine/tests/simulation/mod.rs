//! Synthetic programs, and studies of the engine's estimates of their events.

#![allow(dead_code, reason = "each test, and the study of estimators, uses its own part of this")]

#[path = "../random/mod.rs"]
mod random;
pub mod streams;

use tally_abi::{SessionConfig, Shares, Slice, Value, trace::End};
use tally_engine::{
    Demand, Layout, Multiplexer, Selector, Session, Sink, Widths, estimate, plan::CounterAssignment,
};

pub use self::random::Random;
use crate::fake::{NoClock, NoSink, Simulated};

pub const SLICE_CYCLES: u64 = 200_000;

/// Behaviour of an event over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A steady rate per cycle, with noise.
    Steady,
    /// A share of the instructions, with noise.
    Mix,
    /// A different rate in every phase of the program.
    Phases,
    /// No events for long, then many for a few slices.
    Bursts,
    /// An event in one of a hundred slices.
    Rare,
    /// An event in one of a dozen slices.
    Few,
    /// A slow drift with slow noise.
    Drift,
    /// A period of eight slices.
    Periodic,
}

impl Kind {
    pub const ALL: [Kind; 8] = [
        Kind::Steady,
        Kind::Mix,
        Kind::Phases,
        Kind::Bursts,
        Kind::Rare,
        Kind::Few,
        Kind::Drift,
        Kind::Periodic,
    ];
}

impl Random {
    /// Knuth's method, for small means.
    pub fn poisson(&mut self, mean: f64) -> f64 {
        let (limit, mut product, mut events) = ((-mean).exp(), self.uniform(), 0.0);
        while product > limit {
            product *= self.uniform();
            events += 1.0;
        }
        events
    }
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

/// Slice of a program: its instructions, and each kind's events.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub instructions: u64,
    pub events: [u64; 8],
}

/// Makes a program with a number of slices.
pub fn program(slices: usize, random: &mut Random) -> Vec<Step> {
    let (mut ipc, mut rate, mut left) = (1.0, 1.0, 0);
    let (mut burst, mut slow) = (0, 0.0);
    (0..slices)
        .map(|t| {
            if left == 0 {
                left = 20 + (random.uniform() * 150.0) as usize;
                ipc = 0.5 + 2.5 * random.uniform();
                rate = random.uniform().powi(2);
            }
            left -= 1;
            if burst == 0 && random.uniform() < 0.02 {
                burst = 1 + (random.uniform() * 5.0) as usize;
            }
            slow = 0.97 * slow + 0.1 * random.normal();
            let instructions = SLICE_CYCLES as f64 * ipc * (1.0 + 0.05 * random.normal());
            let noise = |random: &mut Random, share: f64| (1.0 + share * random.normal()).max(0.0);
            let events = [
                1000.0 * noise(random, 0.1),
                instructions * 0.2 * noise(random, 0.05),
                5000.0 * rate * noise(random, 0.2),
                if burst > 0 { 4000.0 * noise(random, 0.3) } else { 20.0 * noise(random, 0.5) },
                f64::from(random.uniform() < 0.01),
                f64::from(random.uniform() < 0.08),
                (3000.0 + 2000.0 * t as f64 / slices as f64)
                    * (1.0 + 0.5 * slow).max(0.1)
                    * noise(random, 0.02),
                2000.0
                    * (1.0 + 0.8 * (t as f64 * std::f64::consts::TAU / 8.0).sin())
                    * noise(random, 0.05),
            ];
            burst = burst.saturating_sub(1);
            Step { instructions: instructions as u64, events: events.map(|e| e as u64) }
        })
        .collect()
}

/// Results of many runs, for one kind of event.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub kind: Kind,
    pub groups: usize,
    pub slices: usize,
    /// Share of the runs whose interval contained the truth.
    pub coverage: f64,
    /// Mean error in its own standard errors.
    pub bias_z: f64,
    /// Root mean square error, relative to the mean truth.
    pub relative_error: f64,
    /// Root mean square error of paper 000's estimate.
    pub relative_error_by_time: f64,
}

/// Runs many programs with `groups` groups, over which the eight kinds are spread.
pub fn study(groups: usize, slices: usize, runs: u64) -> Vec<Outcome> {
    let mut sums = [Sums::default(); 8];
    for run in 0..runs {
        let mut random = Random::new(run * 1000 + slices as u64 + groups as u64);
        let steps = program(slices, &mut random);
        for (sums, (truth, sample, value)) in sums.iter_mut().zip(once(groups, run, &steps)) {
            let by_time = estimate::by_time(&sample).expect("time has passed");
            sums.add(truth as f64, by_time, value);
        }
    }
    let kinds = Kind::ALL.into_iter().zip(sums);
    kinds.map(|(kind, sums)| sums.outcome(kind, groups, slices, runs as f64)).collect()
}

#[derive(Clone, Copy, Default)]
struct Sums {
    covered: f64,
    error: f64,
    squares: f64,
    squares_by_time: f64,
    truth: f64,
}

impl Sums {
    fn add(&mut self, truth: f64, by_time: f64, value: Value) {
        let Value::Estimated { estimate, half_width_95, .. } = value else { panic!("{value:?}") };
        let error = estimate as f64 - truth;
        self.covered += f64::from(error.abs() <= half_width_95);
        self.error += error;
        self.squares += error * error;
        self.squares_by_time += (by_time - truth) * (by_time - truth);
        self.truth += truth;
    }

    fn outcome(self, kind: Kind, groups: usize, slices: usize, runs: f64) -> Outcome {
        let mean = self.error / runs;
        let variance = (self.squares / runs - mean * mean).max(0.0);
        Outcome {
            kind,
            groups,
            slices,
            coverage: self.covered / runs,
            bias_z: mean / (variance / runs).sqrt(),
            relative_error: (self.squares / runs).sqrt() / (self.truth / runs),
            relative_error_by_time: (self.squares_by_time / runs).sqrt() / (self.truth / runs),
        }
    }
}

/// Executes a run. Returns, for each kind, the truth, the engine's sums, and its value.
fn once(groups: usize, seed: u64, steps: &[Step]) -> Vec<(u64, estimate::Sample, Value)> {
    traced(Design::of(groups), seed, steps, &mut NoSink).0
}

/// Groups that are examined at a tick.
const GROUPS_A_TICK: usize = 16;
/// Slices between two adjustments of the shares, as between two ticks of a kernel's timer.
const TICK: usize = 25;

/// Design of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Design {
    pub groups: usize,
    pub shares: Shares,
    /// Minimum slices of the first group in a round; the others get one.
    pub first: u16,
}

impl Design {
    /// Makes a design with a number of groups, one slice of a round each.
    pub fn of(groups: usize) -> Design {
        Design { groups, shares: Shares::Planned, first: 1 }
    }
}

/// Executes a run with any design, and sends every slice's record to `sink`; also returns each
/// event's place.
pub fn traced(
    Design { groups, shares, first }: Design,
    seed: u64,
    steps: &[Step],
    sink: &mut impl Sink,
) -> (Vec<(u64, estimate::Sample, Value)>, Vec<CounterAssignment>) {
    // One counter for each group: event e is counted in group e, so 8 + filler events make at least
    // 8 groups.
    let counters = 8_usize.div_ceil(groups);
    let layout =
        Layout { general: (1 << counters) - 1, reference: false, extra: 0, widths: Widths::of(48) };
    let count = (counters * groups).max(8);
    let mut demands: Vec<Demand> =
        (0..count as u64).map(|e| Demand::general(Selector(e), 0xff)).collect();
    demands[0].share = first;
    let slice = Slice::Cycles(SLICE_CYCLES);
    let config = SessionConfig { slice, shares, ..SessionConfig::default() };
    let mut session = Session::open(1, 0, config, seed, demands, &layout).unwrap();
    assert_eq!(session.plan().groups.len(), groups);
    let pmu = Simulated::default();
    let mut multiplexer = Multiplexer::new(pmu.clone(), 0, 0);
    multiplexer.resume(&mut session, &NoClock, sink);
    for (slice, step) in steps.iter().enumerate() {
        assert!(pmu.run(SLICE_CYCLES, step.instructions, &step.events));
        multiplexer.overflow(Some(&mut session), &NoClock, || &mut *sink);
        if slice % TICK == 0 {
            multiplexer.fold(&mut session, &NoClock, sink);
            session.adapt(GROUPS_A_TICK);
        }
    }
    multiplexer.suspend(&mut session, End::Stopped, &NoClock, sink);
    let results = (0..8)
        .map(|event| {
            let truth = steps.iter().map(|step| step.events[event]).sum();
            let CounterAssignment::General { group, counter } = session.plan().assignments[event]
            else {
                panic!()
            };
            (truth, session.sample(group, counter), session.reading(event).value)
        })
        .collect();
    (results, session.plan().assignments.clone())
}
