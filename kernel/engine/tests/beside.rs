//! Sessions that take turns on the counters, compared with the truth of programs with long phases.
//! One is started from the first slice to the last, one starts later, and one stops earlier.

mod fake;
mod simulation;

use fake::{NoClock, NoSink, Simulated};
use simulation::{Random, SLICE_CYCLES, Step};
use tally_abi::{SessionConfig, Slice, Value, trace::End};
use tally_engine::{
    Clock, Counts, Demand, Layout, Multiplexer, Neighbours, Selector, Session, Turns, Widths,
};

const EVENTS: usize = 6;
/// Start and end of each session, as shares of the program.
const STARTED: [[f64; 2]; 3] = [[0.0, 1.0], [0.25, 1.0], [0.0, 0.5]];

/// Makes phases of three kinds in any order, each with events that the others hardly have. The last
/// third of the program is of one kind.
fn phases(slices: usize, random: &mut Random) -> Vec<Step> {
    let ipc: [f64; 3] = core::array::from_fn(|_| 0.3 + 3.0 * random.uniform());
    let mut steps = Vec::with_capacity(slices);
    while steps.len() < slices {
        let is_end = steps.len() > slices * 2 / 3;
        let kind = if is_end { 0 } else { (random.uniform() * 3.0) as usize };
        let length = 10.0 + 30.0 * random.uniform();
        for _ in 0..length as usize {
            let mut vary = |value: f64| value * (1.0 + 0.001 * random.normal()).max(0.0);
            let instructions = vary(SLICE_CYCLES as f64 * ipc[kind]);
            let events = core::array::from_fn(|event| {
                let rate = if event % 3 == kind { 0.2 } else { 0.000_1 };
                vary(instructions * rate) as u64
            });
            steps.push(Step { instructions: instructions as u64, events });
        }
    }
    steps.truncate(slices);
    steps
}

fn sessions(seed: u64) -> Vec<Session> {
    let (general, widths) = (0b11, Widths::of(48));
    let layout = Layout { general, reference: false, extra: 0, widths };
    let config = SessionConfig { slice: Slice::Cycles(SLICE_CYCLES), ..SessionConfig::default() };
    let open = |id| {
        let demands = (0..EVENTS as u64).map(|e| Demand::general(Selector(e), 0xff)).collect();
        Session::open(id, 0, config, seed, demands, &layout).unwrap()
    };
    (1..).take(STARTED.len()).map(open).collect()
}

/// Returns whether each session is started in slice `at` of `slices`.
fn started(at: usize, slices: usize) -> [bool; 3] {
    let at = at as f64 / slices as f64;
    STARTED.map(|[start, stop]| (start..stop).contains(&at))
}

/// Returns the values of all events for each session.
fn run(seed: u64, steps: &[Step]) -> Vec<Vec<Value>> {
    let mut sessions = sessions(seed);
    let mut turns = Turns::new(seed, 0);
    let pmu = Simulated::default();
    let mut multiplexer = Multiplexer::new(pmu.clone(), 0, 0);
    for (at, step) in steps.iter().enumerate() {
        let started = started(at, steps.len());
        let mut ours: Vec<&mut Session> =
            sessions.iter_mut().zip(started).filter_map(|(it, is)| is.then_some(it)).collect();
        let drawn =
            turns.draw(ours.iter().map(|session| &**session), |_| Counts::default()).unwrap();
        let cycle = ours.iter().map(|session| session.round()).sum();
        for (index, session) in ours.iter_mut().enumerate() {
            session.note_draw(drawn.begins_cycle, index == drawn.index);
        }
        let take_turns = ours.len() > 1;
        let session = &mut *ours[drawn.index];
        session.set_neighbours(Neighbours { take_turns, cycle, ..Neighbours::default() });
        let before = session.passed();
        multiplexer.resume(session, &NoClock, &mut NoSink);
        assert!(pmu.run(SLICE_CYCLES, step.instructions, &step.events));
        multiplexer.overflow(Some(&mut *session), &NoClock, || NoSink);
        multiplexer.suspend(session, End::SwitchedOut, &NoClock, &mut NoSink);
        let passed = session.passed().since(&before);
        for (_, session) in ours.iter_mut().enumerate().filter(|(index, _)| *index != drawn.index) {
            session.pass(&passed, 0, NoClock.tsc());
        }
    }
    let values = |session: &Session| (0..EVENTS).map(|it| session.reading(it).value).collect();
    sessions.iter().map(values).collect()
}

/// Returns the number of events while the session was started.
fn truth(session: usize, event: usize, steps: &[Step]) -> u64 {
    let of = |(at, step): (usize, &Step)| {
        if started(at, steps.len())[session] { step.events[event] } else { 0 }
    };
    steps.iter().enumerate().map(of).sum()
}

/// Results of many runs of programs with a number of slices.
#[derive(Debug, Default)]
struct Outcome {
    /// Values whose intervals contained the truth, and all values.
    held: u32,
    all: u32,
    /// Mean relative error by session, for events that are more frequent in the program's end than
    /// in the rest.
    bias: [f64; 3],
}

fn judge(slices: usize, programs: u32) -> Outcome {
    let mut outcome = Outcome::default();
    for seed in 0..programs.into() {
        let steps = phases(slices, &mut Random::new(0x7092 + seed));
        for (session, values) in run(seed, &steps).into_iter().enumerate() {
            for (event, value) in values.into_iter().enumerate() {
                let Value::Estimated { estimate, half_width_95, .. } = value else {
                    panic!("{value:?}")
                };
                let truth = truth(session, event, &steps) as f64;
                let error = estimate as f64 - truth;
                outcome.all += 1;
                outcome.held += u32::from(error.abs() <= half_width_95);
                if event % 3 == 0 {
                    outcome.bias[session] += error / truth / f64::from(2 * programs);
                }
            }
        }
    }
    outcome
}

#[test]
fn intervals_of_sessions_that_take_turns_hold_the_truth() {
    for slices in [1_500, 3_000, 8_000] {
        let outcome = judge(slices, 100);
        let Outcome { held, all, bias } = outcome;
        assert!(held * 100 >= all * 93, "{slices}: {outcome:?}");
        // Without sums restated for each number of sessions it is 3 to 5 %.
        assert!(bias.iter().all(|bias| bias.abs() < 0.01), "{slices}: {outcome:?}");
    }
}
