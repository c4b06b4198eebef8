//! The data that a view shows of a run: sums, and the last slices of each session, from the trace's
//! records.
//!
//! Rates are those of the moving window, the last [`WINDOW`] slices of a session, estimated like an
//! interval of `run --intervals`. The engine's own estimates of the whole run, which the final
//! table shows, come with the session's end.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use tally_abi::trace::{End, PhaseRecord, SliceRecord};
use tally_engine::Plan;

use crate::{
    report::{Interval, Rings, Stack, intervals},
    trace_file::Records,
};

/// Slices of the moving window.
pub const WINDOW: usize = 1_000;
/// The last phases that are kept.
const PHASES: usize = 256;
/// Number of bytes of the programs' last output that are kept.
const OUTPUT: usize = 8 << 10;

/// A list of events and its plan.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The names in the order of the plan.
    pub names: Vec<String>,
    /// The plan.
    pub plan: Plan,
}

/// Facts about a run that are known before it starts.
#[derive(Clone)]
pub struct Known {
    /// The programs, in words.
    pub programs: String,
    /// The limit of the engine's share, in millionths.
    pub budget_ppm: u32,
    /// The events, if the list is known.
    pub planned: Option<Planned>,
    /// The stack that divides the cycles, if a breakdown is requested.
    pub stack: Option<&'static Stack>,
    /// The rings whose cycles are divided.
    pub rings: Rings,
    /// Whether phases are tracked.
    pub has_phases: bool,
    /// Whether the processor and its clocks are a model.
    pub is_modelled: bool,
}

/// A run up to now.
pub struct State {
    /// Facts known before the run.
    pub known: Known,
    /// The PMU that the kernel detected.
    pub pmu: Option<String>,
    /// The seed of every random order.
    pub seed: Option<u64>,
    /// Whether the kernel has started the first program.
    pub is_ready: bool,
    /// Frequency of the TSC, in Hz, if it is known and not a model's.
    pub tsc_hz: Option<u64>,
    /// Time since the start.
    pub running: Duration,
    /// Sessions by number.
    pub sessions: BTreeMap<u32, Session>,
    /// Records that were lost.
    pub lost: u64,
    /// Reason why the rest of the trace cannot be read, if so.
    pub bad: Option<String>,
    /// The index of the session that is shown.
    pub shown: usize,
    /// Number of lines of the event list that are scrolled away.
    pub scrolled: usize,
    /// The end of the programs' output.
    pub output: Vec<u8>,
}

/// A session up to now.
#[derive(Debug, Default)]
pub struct Session {
    /// The last slices.
    pub window: VecDeque<SliceRecord>,
    /// Number of slices.
    pub slices: u64,
    /// Number of core cycles.
    pub cycles: u64,
    /// Number of instructions.
    pub instructions: u64,
    /// The last phases.
    pub phases: VecDeque<PhaseRecord>,
    /// Number of intervals whose phases are known.
    pub intervals: u64,
    /// Number of changes of the program that the detector found.
    pub changes: u64,
}

impl State {
    /// Makes the state of a run before its start.
    pub fn new(known: Known) -> State {
        State {
            known,
            pmu: None,
            seed: None,
            is_ready: false,
            tsc_hz: None,
            running: Duration::ZERO,
            sessions: BTreeMap::new(),
            lost: 0,
            bad: None,
            shown: 0,
            scrolled: 0,
            output: Vec::new(),
        }
    }

    /// Adds new records; those of one CPU are in the order of time.
    pub fn add(&mut self, records: &Records) {
        for slice in &records.slices {
            self.sessions.entry(slice.session).or_default().add(slice);
        }
        for phase in &records.phases {
            self.sessions.entry(phase.session).or_default().add_phase(phase);
        }
        let losses = records.losses.iter();
        self.lost = losses.fold(self.lost, |sum, loss| sum.saturating_add(loss.records));
    }

    /// Adds output of a program.
    pub fn write(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
        let old = self.output.len().saturating_sub(OUTPUT);
        self.output.drain(..old);
    }

    /// The session that is shown, with its number.
    pub fn session(&self) -> Option<(u32, &Session)> {
        let index = self.shown % self.sessions.len().max(1);
        self.sessions.iter().nth(index).map(|(number, session)| (*number, session))
    }

    /// The window of the shown session as an interval, if its events are known.
    pub fn interval(&self) -> Option<Interval> {
        let (_, session) = self.session()?;
        let Planned { names, plan } = self.known.planned.as_ref()?;
        let records: Vec<SliceRecord> = session.window.iter().copied().collect();
        if !records.iter().all(|record| is_of(record, plan)) {
            return None;
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let stack = self.known.stack.map(|stack| (stack, self.known.rings));
        intervals(&records, plan, &names, stack, 1).pop()
    }
}

/// Returns whether the slice matches this plan: a program may have another list.
fn is_of(record: &SliceRecord, plan: &Plan) -> bool {
    let group = plan.groups.get(usize::from(record.group));
    group.is_some_and(|group| group.used.count_ones() == u32::from(record.events))
}

impl Session {
    fn add(&mut self, slice: &SliceRecord) {
        self.slices = self.slices.max(slice.sequence.saturating_add(1));
        self.cycles = self.cycles.saturating_add(slice.cycles);
        self.instructions = self.instructions.saturating_add(slice.instructions);
        self.window.push_back(*slice);
        if self.window.len() > WINDOW {
            self.window.pop_front();
        }
    }

    fn add_phase(&mut self, phase: &PhaseRecord) {
        self.intervals += 1;
        self.changes += u64::from(phase.changed);
        self.phases.push_back(*phase);
        if self.phases.len() > PHASES {
            self.phases.pop_front();
        }
    }

    /// Sums a number over the slices of the window.
    fn sum(&self, of: fn(&SliceRecord) -> u64) -> u64 {
        self.window.iter().map(of).fold(0, u64::saturating_add)
    }

    /// TSC ticks of the window's slices.
    pub fn window_ticks(&self) -> u64 {
        self.sum(|slice| slice.end_tsc.saturating_sub(slice.start_tsc))
    }

    /// Core cycles of the window's slices.
    pub fn window_cycles(&self) -> u64 {
        self.sum(|slice| slice.cycles)
    }

    /// The share of the time between a slice that its overflow ended and the session's next slice,
    /// 0 to 1: that of group switches, without the interrupt's delivery and the folding of slices.
    pub fn switching(&self) -> Option<f64> {
        let pairs = self.window.iter().zip(self.window.iter().skip(1));
        let follow = |(one, next): &(&SliceRecord, &SliceRecord)| {
            one.end == End::Overflow
                && one.cpu == next.cpu
                && one.sequence.checked_add(1) == Some(next.sequence)
        };
        let of = |(one, next): (&SliceRecord, &SliceRecord)| {
            let between = next.start_tsc.saturating_sub(one.end_tsc);
            [between, between.saturating_add(next.end_tsc.saturating_sub(next.start_tsc))]
        };
        let add = |sum: [u64; 2], of: [u64; 2]| [0, 1].map(|at| sum[at].saturating_add(of[at]));
        let [between, all] = pairs.filter(follow).map(of).fold([0, 0], add);
        (all > 0).then(|| between as f64 / all as f64)
    }
}
