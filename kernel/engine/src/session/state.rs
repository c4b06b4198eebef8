//! A session's state: what it holds, and how it is opened.

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
    moments::{GroupMoments, Turn},
    order::{Draw, Order},
    plan::plan,
    setup::{first_multiplier, longest},
    strata::Strata,
    switch::DrawnSlice,
};

/// A slice: its group, by number, and when it was switched in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceStart {
    pub(super) group: u16,
    pub(super) start_tsc: u64,
}

/// When and where a publication happens.
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
    pub(super) config: SessionConfig,
    pub(super) plan: Plan,
    pub(super) order: Order,
    /// Slices in a round.
    pub(super) round: u64,
    /// The current slice, which may be switched out, or the first one.
    pub(super) current: CurrentSlice,
    pub(super) live: Live,
    /// The length of the longest slices, in the slice timer's unit.
    pub(super) longest: u64,
    /// The general counters that groups use, as a mask.
    pub(super) counters: u8,
    pub(super) lengths: Lengths,
    pub(super) setup: Setup,
    pub(super) moments: Box<[GroupMoments]>,
    /// The slices by their instructions a cycle; none where rows are folded in the overflow
    /// interrupt, or shares adapt.
    pub(super) strata: Option<Box<Strata>>,
    /// If shares adapt.
    pub(super) adaptive: Option<Adaptive>,
    /// By event: the last estimate that [`Self::readings`] returned. It is in no estimate.
    pub(super) last_readings: Box<[u64]>,
    /// What interrupts add to the counts.
    pub(super) skew: Skew,
    /// Which events are never more than others.
    pub(super) bounds: Vec<Bound>,
    /// Of the pinned events, for as long as the session ran.
    pub(super) total: Counts,
    /// Slices that have ended, however many pieces they came in.
    pub(super) finished: u64,
    pub(super) budget: Budget,
    /// [`Self::finished`] when the budget was last looked at.
    pub(super) budgeted: u64,
    /// The end of a slice at which core cycles were last read, since the session was last switched
    /// in.
    pub(super) mark: Option<CycleMark>,
    pub(super) last_choice: LastChoice,
    pub(super) stats: SessionStats,
    /// What the program reads without a system call, if it mapped it.
    pub(super) bank: Option<Bank>,
    /// If samples are taken.
    pub(super) sampling: Option<Box<Sampling>>,
    /// If phases are tracked.
    pub(super) phases: Option<Box<Tracked>>,
    /// TSC up to which [`SessionStats::session_ticks`] is summed.
    pub(super) ticks_until: u64,
    /// What other sessions of its program change for it.
    pub(super) beside: Beside,
}

/// A session beside others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    pub(super) neighbours: Neighbours,
    /// Whether time passed in which another session of its program was on the counters.
    pub(super) was_passed: bool,
    /// See [`Session::turns_left`].
    pub(super) turns_left: Option<u64>,
    /// The slices of a cycle for which all sums are stated; those of a round while it is alone.
    pub(super) cycle: u64,
    /// Of the pinned events: what a bank subtracted that is no more.
    pub(super) deducted: Counts,
}

impl Beside {
    /// A session of so many slices in a round, without others.
    fn alone(round: u64) -> Beside {
        let neighbours = Neighbours::default();
        let deducted = Counts::default();
        Beside { neighbours, was_passed: false, turns_left: None, cycle: round, deducted }
    }
}

/// What a session has to know of the other sessions of its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// Whether there are any that are started: the session that is on the counters changes at the
    /// end of a slice.
    pub take_turns: bool,
    /// Slices of a cycle of turns if there are any: a round of each session that is started, this
    /// one with them.
    pub cycle: u64,
    /// Whether one of them counts reference cycles, which are counted in every slice.
    pub reference: bool,
    /// Whether the program may use RDPMC because of one of them.
    pub exposed: bool,
}

/// What the overflow interrupt reads and changes at the end of each slice.
///
/// [`Session::current`] is the first slice that is not folded, and so the one on the counters
/// wherever all rows are folded: everywhere but in the overflow interrupt.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Live {
    pub(super) schedule: Schedule,
    pub(super) running: bool,
    /// Whether the counter of reference cycles is read.
    pub(super) reference: bool,
    /// Whether rows are folded in the overflow interrupt, one by one: a bank shows each at once,
    /// a session that counts ring 0 must not count the folding, and sessions that take turns change
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

/// What only one session has.
struct Identity {
    id: u32,
    address_space: u64,
    seed: u64,
}

/// What sessions of one list share.
struct Planned {
    plan: Plan,
    setup: Setup,
    skew: Skew,
    bounds: Vec<Bound>,
}

/// The end of a slice at which core cycles were read.
#[derive(Clone, Copy, Debug)]
pub(super) struct CycleMark {
    /// [`Session::finished`] then.
    pub(super) finished: u64,
    pub(super) reading: CoreReading,
    /// The session's cycles.
    pub(super) counted: u64,
    /// Whether it is the second of its pair: it followed one slice after the last.
    pub(super) is_second: bool,
}

/// The end of a slice at which the length of slices was last chosen by what a switch costs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastChoice {
    /// [`Session::finished`] then.
    pub(super) finished: u64,
    /// The session's cycles.
    pub(super) counted: u64,
    /// Whether slices from there on are of the length that was chosen.
    pub(super) is_of_length: bool,
}

/// The first slice that is not folded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CurrentSlice {
    pub(super) drawn: DrawnSlice,
    /// Whether anything is in the two sums: only where a slice is cut or credited in the middle.
    pub(super) credited: bool,
    /// Counted in this slice so far.
    pub(super) slice: Counts,
    /// Counted since the slice was last switched in: the counts of its next record.
    pub(super) piece: Counts,
    pub(super) piece_start_tsc: u64,
}

impl Session {
    /// Plans `demands` and opens the session. Its number `id` is unique and not 0, which stands for
    /// none; with `seed` it decides the random order.
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

    /// A session with the same list, plan and configuration that has counted nothing yet, and with
    /// an order of its own: `id` and `seed` are as [`Self::open`] has them.
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

    fn of_plan(identity: Identity, config: SessionConfig, planned: Planned) -> Session {
        let Identity { id, address_space, seed } = identity;
        let Planned { plan, setup, skew, bounds } = planned;
        let adaptive = Adaptive::new(config.shares, &plan);
        let planned = || plan.groups.iter().map(|group| group.share).collect();
        let shares = adaptive.as_ref().map_or_else(planned, Adaptive::first_shares);
        let round = adaptive.as_ref().map_or(plan.round(), Adaptive::round);
        let mut session = Session {
            id,
            address_space,
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
            plan,
        };
        session.draw_first();
        session
    }

    /// The session's number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The address space that it counts.
    pub fn address_space(&self) -> u64 {
        self.address_space
    }

    /// Its configuration.
    pub fn config(&self) -> SessionConfig {
        self.config
    }

    /// Its groups, and the counter of each event.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The number of its events.
    pub fn events(&self) -> usize {
        self.plan.assignments.len()
    }

    /// Returns whether a CPU is counting for it.
    pub fn is_running(&self) -> bool {
        self.live.running
    }

    /// Returns whether anything is counted in ring 0, and so in the engine too.
    pub fn counts_kernel(&self) -> bool {
        self.setup.kernel
    }

    /// Slices that have ended and are folded.
    pub fn ended_slices(&self) -> u64 {
        self.finished
    }

    /// The engine's statistics of it, up to the last suspend or [`crate::Multiplexer::sync`].
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
        self.group_at(self.live.schedule.live().slice().draw.group)
    }

    pub(super) fn group_at(&self, index: u16) -> &Group {
        self.plan.groups.get(usize::from(index)).unwrap_or(&NO_GROUP)
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

    /// Notes when rows are folded. Slices that are folded in the interrupt are in no stratum, so
    /// there are none from then on.
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

static NO_GROUP: Group = Group::NONE;
