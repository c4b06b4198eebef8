//! A session's state, and its opening.

use alloc::{boxed::Box, vec, vec::Vec};

use tally_abi::{SessionConfig, SessionStats, Shares};

use super::{
    adaptive::Adaptive, lengths::Lengths, sampling::Sampling, schedule::Schedule, skew::Skew,
    tracked::Tracked,
};
use crate::{
    CounterMask, Counts, Demand, Group, Layout, Pinned, Plan, PlanError, Setup,
    bank::Bank,
    bounds::Bound,
    budget::Budget,
    core_time::CoreReading,
    metrics::Metrics,
    moments::{GroupMoments, Turn},
    order::{Draw, Order},
    plan::plan,
    setup::{first_multiplier, longest},
    strata::Strata,
    switch::DrawnSlice,
};

/// A slice's group, and the time at which it was switched in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceStart {
    pub(super) group: u16,
    pub(super) start_tsc: u64,
}

/// Time and CPU of a publication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamp {
    pub(crate) cpu: u16,
    pub(crate) tsc: u64,
}

/// The logical counters of one address space.
#[derive(Debug)]
pub struct Session {
    pub(super) id: u32,
    pub(super) address_space: u64,
    /// The seed of what is random besides the order and the lengths of slices.
    pub(super) seed: u64,
    pub(super) config: SessionConfig,
    pub(super) plan: Plan,
    pub(super) order: Order,
    /// Slices in a round.
    pub(super) round: u64,
    /// The current slice, which may be switched out or not started yet.
    pub(super) current: CurrentSlice,
    pub(super) live: Live,
    /// The length of the longest slices, in the slice timer's unit.
    pub(super) longest: u64,
    /// The general counters that groups use, as a mask.
    pub(super) counters: u16,
    pub(super) lengths: Lengths,
    pub(super) setup: Setup,
    pub(super) moments: Box<[GroupMoments]>,
    /// Sums of slices by their IPC; `None` if rows are folded in the interrupt, or shares adapt.
    pub(super) strata: Option<Box<Strata>>,
    /// State of adaptive shares, if shares adapt.
    pub(super) adaptive: Option<Adaptive>,
    /// By event: the last estimate that [`Self::readings`] returned. No estimate contains it.
    pub(super) last_readings: Box<[u64]>,
    /// Effect of interrupts on the counts.
    pub(super) skew: Skew,
    /// Bounds between events: parts that never exceed their wholes.
    pub(super) bounds: Vec<Bound>,
    /// Counts of the pinned events and of the metrics over the whole session.
    pub(super) total: Counts,
    pub(super) metrics: Metrics,
    /// Slices that have ended; one that was cut into pieces counts once.
    pub(super) finished: u64,
    pub(super) budget: Budget,
    /// Value of [`Self::finished`] at the last update of the budget.
    pub(super) budgeted: u64,
    /// The last slice's end with a reading of core cycles since the session was switched in.
    pub(super) mark: Option<CycleMark>,
    pub(super) last_choice: LastChoice,
    pub(super) stats: SessionStats,
    /// The bank, which the program reads without a system call, if it mapped one.
    pub(super) bank: Option<Bank>,
    /// State of sampling, if samples are taken.
    pub(super) sampling: Option<Box<Sampling>>,
    /// State of phases, if they are tracked.
    pub(super) phases: Option<Box<Tracked>>,
    /// TSC up to which [`SessionStats::session_ticks`] is summed.
    pub(super) ticks_until: u64,
    /// How this session shares the counters with other sessions of the program.
    pub(super) beside: Beside,
    /// See [`Session::count_idle`].
    pub(super) counts_idle: bool,
}

/// A session's relation to the other sessions of its program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    pub(super) neighbours: Neighbours,
    /// Whether another session of the program had a turn since this one was opened.
    pub(super) was_passed: bool,
    /// See [`Session::turns_left`].
    pub(super) turns_left: Option<u64>,
    /// Slices of a cycle of turns, for which all sums are stated; the slices of a round if the
    /// session is the only one.
    pub(super) cycle: u64,
    /// Counts of the pinned events that an unmapped bank had subtracted.
    pub(super) deducted: Counts,
}

impl Beside {
    /// The relation of the only session, with `round` slices in a round.
    fn alone(round: u64) -> Beside {
        let neighbours = Neighbours::default();
        let deducted = Counts::default();
        Beside { neighbours, was_passed: false, turns_left: None, cycle: round, deducted }
    }
}

/// Summary of the other sessions of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// Whether others are started: then the session on the counters changes at the end of a slice.
    pub take_turns: bool,
    /// Slices of a cycle of turns, if there are others: a round of each started session, this one
    /// included.
    pub cycle: u64,
    /// Whether one of them counts reference cycles; then every slice counts them.
    pub reference: bool,
    /// Whether one of them counts metrics; then every slice counts them.
    pub metrics: bool,
    /// Whether the program may use RDPMC because of one of them.
    pub exposed: bool,
}

/// State that the overflow interrupt reads and changes at the end of each slice.
///
/// [`Session::current`] is the first slice that is not folded. If all rows are folded, it is the
/// slice on the counters: everywhere except in the overflow interrupt.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Live {
    pub(super) schedule: Schedule,
    pub(super) running: bool,
    /// Whether the counter of reference cycles is read.
    pub(super) reference: bool,
    /// Whether rows are folded in the overflow interrupt, one by one: a bank shows each at once, a
    /// session that counts ring 0 must not count the folding, and sessions that take turns change
    /// at the end of a slice.
    folds_at_once: bool,
}

impl Live {
    fn new(setup: &Setup, reference: bool) -> Live {
        Live { schedule: Schedule::empty(), running: false, reference, folds_at_once: setup.kernel }
    }
}

fn budget(config: SessionConfig, setup: &Setup) -> Budget {
    let first = first_multiplier(config.slice);
    Budget::new(config.budget_ppm, longest(config), first, setup.max_slice)
}

/// Properties of a single session.
struct Identity {
    id: u32,
    address_space: u64,
    seed: u64,
}

/// Properties that the sessions of one list share.
struct Planned {
    plan: Plan,
    setup: Setup,
    skew: Skew,
    bounds: Vec<Bound>,
}

/// The end of a slice at which core cycles were read.
#[derive(Clone, Copy, Debug)]
pub(super) struct CycleMark {
    /// Value of [`Session::finished`] at that time.
    pub(super) finished: u64,
    pub(super) reading: CoreReading,
    /// The session's cycles.
    pub(super) counted: u64,
    /// Whether it is the second mark of its pair, one slice after the first.
    pub(super) is_second: bool,
}

/// The end of a slice at which the length of slices was last chosen by the cost of a switch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastChoice {
    /// Value of [`Session::finished`] at that time.
    pub(super) finished: u64,
    /// The session's cycles.
    pub(super) counted: u64,
    /// The processor's core cycles, in any ring.
    pub(super) core_cycles: u64,
    /// Whether later slices have the chosen length.
    pub(super) is_of_length: bool,
}

/// The first slice that is not folded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CurrentSlice {
    pub(super) drawn: DrawnSlice,
    /// Whether the two sums contain counts: only if a slice is cut or credited in its middle.
    pub(super) credited: bool,
    /// Whether it ends before ring 3 has counted its length ([`Session::deadline`]).
    pub(super) is_cut: bool,
    /// Counts of this slice so far.
    pub(super) slice: Counts,
    /// Counts since the slice was last switched in, for its next record.
    pub(super) piece: Counts,
    pub(super) piece_start_tsc: u64,
}

impl Session {
    /// Plans `demands` and opens the session. Its number `id` is unique and not 0, which stands for
    /// no session; `id` and `seed` determine the random order.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn open(
        id: u32,
        address_space: u64,
        config: SessionConfig,
        seed: u64,
        demands: Vec<Demand>,
        layout: &Layout,
    ) -> Result<Session, PlanError> {
        let setup = Setup::new(config, layout, &demands)?;
        let plan = plan(&demands, layout)?;
        let skew = Skew::of(&demands, config.mode);
        let (bounds, identity) = (Vec::new(), Identity { id, address_space, seed });
        Ok(Session::of_plan(identity, config, Planned { plan, setup, skew, bounds }))
    }

    /// Makes a session with the same list, plan and configuration, without counts, and with its own
    /// random order; `id` and `seed` are as for [`Self::open`].
    #[must_use]
    pub fn fresh(&self, id: u32, seed: u64) -> Session {
        let planned = Planned {
            plan: self.plan.clone(),
            setup: self.setup,
            skew: self.skew.clone(),
            bounds: self.bounds.clone(),
        };
        let identity = Identity { id, address_space: self.address_space, seed };
        Session::of_plan(identity, self.config, planned)
    }

    fn of_plan(
        Identity { id, address_space, seed }: Identity,
        config: SessionConfig,
        Planned { plan, setup, skew, bounds }: Planned,
    ) -> Session {
        let adaptive = Adaptive::new(config.shares, &plan);
        let shares = adaptive.as_ref().map_or_else(|| plan.shares(), Adaptive::first_shares);
        let round = adaptive.as_ref().map_or(plan.round(), Adaptive::round);
        let mut session = Session {
            id,
            address_space,
            seed: seed ^ u64::from(id),
            config,
            round,
            moments: shares.iter().map(|share| GroupMoments::of(*share)).collect(),
            strata: strata(&setup, config, &plan),
            order: Order::new(shares.into(), seed, id),
            adaptive,
            current: CurrentSlice::default(),
            longest: longest(config),
            counters: plan.counters(),
            live: Live::new(&setup, plan.counts_reference()),
            lengths: Lengths::new(config, seed ^ u64::from(id)),
            setup,
            last_readings: vec![0; plan.assignments.len()].into(),
            skew,
            bounds,
            total: Counts::default(),
            metrics: Metrics::default(),
            finished: 0,
            budget: budget(config, &setup),
            budgeted: 0,
            mark: None,
            last_choice: LastChoice::default(),
            stats: SessionStats { groups: plan.groups.len() as u64, ..SessionStats::default() },
            bank: None,
            sampling: None,
            phases: None,
            ticks_until: 0,
            beside: Beside::alone(round),
            counts_idle: false,
            plan,
        };
        session.draw_first();
        session
    }

    /// The session's number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The address space that the session counts.
    pub fn address_space(&self) -> u64 {
        self.address_space
    }

    /// The session's configuration.
    pub fn config(&self) -> SessionConfig {
        self.config
    }

    /// The session's groups, and the counter of each event.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Number of the session's events.
    pub fn events(&self) -> usize {
        self.plan.assignments.len()
    }

    /// Returns whether the session is counting on a CPU.
    pub fn is_running(&self) -> bool {
        self.live.running
    }

    /// Returns whether ring 0 is counted, and so the engine too.
    pub fn counts_kernel(&self) -> bool {
        self.setup.kernel
    }

    /// Slices that have ended and are folded.
    pub fn ended_slices(&self) -> u64 {
        self.finished
    }

    /// The session's statistics, up to the last suspend or [`crate::Multiplexer::sync`].
    pub fn stats(&self) -> SessionStats {
        SessionStats {
            rounds: self.finished / self.round.max(1),
            cycles: self.total[Pinned::Cycles],
            instructions: self.total[Pinned::Instructions],
            switch_cycles: self.budget.switch_cycles(),
            stopped_cycles: self.deducted()[Pinned::Cycles],
            ..self.stats
        }
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SessionStats {
        &mut self.stats
    }

    pub(crate) fn setup(&self) -> Setup {
        self.setup
    }

    /// The group of the current slice.
    pub(crate) fn group(&self) -> &Group {
        self.plan.group(self.live.schedule.live().slice().draw.group)
    }

    /// The counters to read for the current slice.
    pub(crate) fn set(&self) -> CounterMask {
        CounterMask { general: self.group().used, reference: self.live.reference }
    }

    /// The position of the current slice in the order of slices.
    pub(super) fn current_turn(&self) -> Turn {
        let Draw { round, block, .. } = self.current.drawn.draw;
        Turn { number: self.finished, round, block }
    }

    /// Returns whether rows are folded in the overflow interrupt, one by one.
    #[inline]
    pub(crate) fn folds_at_once(&self) -> bool {
        self.live.folds_at_once
    }

    /// Determines where rows are folded. Slices folded in the interrupt are in no stratum, so the
    /// strata are dropped if they are.
    pub(super) fn note_folding(&mut self) {
        let others = self.bank.is_some() || self.beside.neighbours.take_turns;
        self.live.folds_at_once = self.setup.kernel || others;
        if self.live.folds_at_once {
            self.strata = None;
        }
    }
}

fn strata(setup: &Setup, config: SessionConfig, plan: &Plan) -> Option<Box<Strata>> {
    let is_kept = !setup.kernel && config.shares == Shares::Planned && plan.groups.len() > 1;
    is_kept.then(|| Box::new(Strata::of(plan)))
}
