//! A session: the HPC context of one address space (paper 000, section 2).
//!
//! It holds the plan, the logical counters, the random order and the statistics, all that has to
//! outlive a switch of context; what belongs to a CPU is in [`crate::Multiplexer`]. A slice that is
//! cut short by such a switch stays open here and goes on with what is left of it, so that groups
//! get equal shares of the program's time however often it is interrupted.
//!
//! [`Session::open`] allocates and is called once. The `pub(crate)` methods run in the overflow
//! path and do not. [`Session::reading`] uses floating point: never in the overflow path.

mod adaptive;
pub(crate) mod exposed;
mod readings;
mod sampling;

use alloc::{boxed::Box, vec::Vec};

use tally_abi::{
    SessionConfig, SessionStats,
    trace::{End, SliceRecord},
};

use self::{adaptive::Adaptive, sampling::Sampling};
use crate::{
    CounterMask, Counts, Demand, Group, Layout, Pinned, Plan, PlanError, Setup, Sink,
    bank::Bank,
    bounds::Bound,
    budget::Budget,
    for_each_counter,
    moments::{GroupMoments, Turn},
    order::{Draw, Order},
    plan::{CounterAssignment, plan},
};

/// The logical counters of one address space.
#[derive(Debug)]
pub struct Session {
    id: u32,
    address_space: u64,
    config: SessionConfig,
    plan: Plan,
    order: Order,
    /// Slices in a round.
    round: u64,
    /// The slice under way, which may be off the CPU, or the one to come.
    current: CurrentSlice,
    /// The one after it: drawn beforehand, so that the overflow path finds it.
    next: Draw,
    setup: Setup,
    /// The general counters that the two groups use, as masks: looked up once.
    used: u8,
    next_used: u8,
    /// The counters of the slice under way and the next one.
    turn: CounterMask,
    moments: Box<[GroupMoments]>,
    /// Where shares follow what is uncertain.
    adaptive: Option<Adaptive>,
    /// The highest estimate of each event that the program may have seen, by [`Self::read`] or in its
    /// bank.
    told: Box<[u64]>,
    /// What [`Self::readings`] told last, where bounds hold: it can be less.
    settled: Box<[u64]>,
    /// Which events are never more than others.
    bounds: Vec<Bound>,
    /// Of the always-counted events, for as long as the session ran.
    total: Counts,
    /// Slices that have ended, however many pieces they came in.
    finished: u64,
    budget: Budget,
    stats: SessionStats,
    running: bool,
    /// What the program sees of it without a system call, if it asked for that.
    bank: Option<Bank>,
    /// If any samples are taken.
    sampling: Option<Box<Sampling>>,
    /// TSC up to which [`SessionStats::session_ticks`] is summed.
    ticks_until: u64,
}

/// A slice that has begun and not ended.
#[derive(Clone, Copy, Debug, Default)]
struct CurrentSlice {
    draw: Draw,
    /// Its length, in units of the session's slices.
    slice_multiplier: u32,
    /// Whether anything is in the two sums: only where a slice is cut or looked at in the middle.
    credited: bool,
    /// GroupCounts in this slice so far.
    slice: Counts,
    /// GroupCounts since the slice was last put on a CPU: what its next record will say.
    piece: Counts,
    piece_start_tsc: u64,
}

/// A slice: its group, by number, and when it was put on its CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceStart {
    group: u16,
    start_tsc: u64,
}

impl Session {
    /// Plans `demands` and makes the session. Its number `id` is no other's, and not 0, which stands for none;
    /// with `seed` it decides the random order.
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
        let setup = Setup::try_from(config)?;
        let plan = plan(&demands, layout)?;
        let groups = plan.groups.len();
        let adaptive = Adaptive::new(config.shares, &plan);
        let round = adaptive.as_ref().map_or(plan.round(), Adaptive::round);
        let shares = match &adaptive {
            Some(adaptive) => adaptive.first_shares(),
            None => plan.groups.iter().map(|group| group.share).collect(),
        };
        let moments = shares.iter().map(|share| GroupMoments::of(*share)).collect();
        let mut order = Order::new(shares.into(), seed, id);
        let kernel = setup.kernel || demands.iter().any(|demand| demand.kernel);
        let mut session = Session {
            id,
            address_space,
            config,
            current: CurrentSlice {
                draw: order.draw(),
                slice_multiplier: 1,
                ..CurrentSlice::default()
            },
            budget: Budget::new(config.budget_ppm, config.slice.length()),
            next: Draw::default(),
            used: 0,
            next_used: 0,
            order,
            adaptive,
            round,
            setup: Setup { kernel, ..setup },
            turn: CounterMask {
                reference: plan.assignments.contains(&CounterAssignment::Pinned(Pinned::Reference)),
                ..CounterMask::default()
            },
            moments,
            told: plan.assignments.iter().map(|_| 0).collect(),
            settled: plan.assignments.iter().map(|_| 0).collect(),
            bounds: Vec::new(),
            total: Counts::default(),
            finished: 0,
            stats: SessionStats { groups: groups as u64, ..SessionStats::default() },
            running: false,
            bank: None,
            sampling: None,
            ticks_until: 0,
            plan,
        };
        session.next_used = session.group().used;
        session.draw();
        Ok(session)
    }

    /// The session's number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The address space it belongs to.
    pub fn address_space(&self) -> u64 {
        self.address_space
    }

    /// How it counts.
    pub fn config(&self) -> SessionConfig {
        self.config
    }

    /// Its groups, and which event went where.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many events it has.
    pub fn events(&self) -> usize {
        self.plan.assignments.len()
    }

    /// Whether a CPU is counting for it.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Whether anything is counted in ring 0, and so in the engine too.
    pub fn counts_kernel(&self) -> bool {
        self.setup.kernel
    }

    /// What the engine did for it, up to the last suspend or [`crate::Multiplexer::sync`].
    pub fn stats(&self) -> SessionStats {
        SessionStats {
            rounds: self.finished / self.round.max(1),
            cycles: self.total[Pinned::Cycles],
            instructions: self.total[Pinned::Instructions],
            ..self.stats
        }
    }

    /// The slice under way.
    pub(crate) fn slice_start(&self) -> SliceStart {
        SliceStart { group: self.current.draw.group, start_tsc: self.current.piece_start_tsc }
    }

    pub(crate) fn setup(&self) -> Setup {
        self.setup
    }

    /// The length of the slice after the one under way.
    #[inline]
    pub(crate) fn next_length(&self) -> u64 {
        self.config.slice.length() * u64::from(self.budget.slice_multiplier())
    }

    /// The group of the slice under way.
    pub(crate) fn group(&self) -> &Group {
        self.group_at(self.current.draw.group)
    }

    fn group_at(&self, index: u16) -> &Group {
        self.plan.groups.get(usize::from(index)).unwrap_or(&NO_GROUP)
    }

    /// The counters to read for the slice under way.
    pub(crate) fn set(&self) -> CounterMask {
        CounterMask { general: self.used, ..self.turn }
    }

    /// When the slice under way has its turn.
    fn current_position(&self) -> Turn {
        let Draw { round, block, .. } = self.current.draw;
        Turn { number: self.finished, round, block }
    }

    /// The next group, and the counters to read where it takes over: where those of it begin and
    /// those of the slice under way end.
    #[inline]
    pub(crate) fn turn(&self) -> (CounterMask, &Group) {
        (self.turn, self.group_at(self.next.group))
    }

    /// Draws the next group. Beforehand, so that the overflow path finds it.
    fn draw(&mut self) {
        self.used = self.next_used;
        self.next = self.order.draw();
        self.next_used = self.group_at(self.next.group).used;
        self.turn.general = self.used | self.next_used;
    }

    /// Puts the slice under way on a CPU: what is left of it.
    pub(crate) fn enter(&mut self, tsc: u64) {
        self.current.piece = Counts::default();
        self.current.piece_start_tsc = tsc;
        self.running = true;
        self.ticks_until = tsc;
    }

    /// What is left of the slice under way, in its unit; 0 if its length was reached.
    pub(crate) fn left(&self) -> u64 {
        let length = self.config.slice.length() * u64::from(self.current.slice_multiplier);
        length.saturating_sub(self.current.slice[self.setup.timer])
    }

    /// Credits what was counted since the last credit, in the middle of the slice under way.
    pub(crate) fn credit(&mut self, counted: &Counts, tsc: u64) {
        self.take_in(counted, tsc);
        self.current.slice.add(counted, self.used);
        self.current.piece.add(counted, self.used);
        self.current.credited = true;
    }

    fn take_in(&mut self, counted: &Counts, tsc: u64) {
        self.stats.session_ticks += tsc.saturating_sub(self.ticks_until);
        self.ticks_until = tsc;
        self.total.add(counted, 0);
    }

    /// Ends the slice under way, which was put on a CPU, with what was counted since the last
    /// credit.
    #[inline(always)]
    pub(crate) fn turn_over(&mut self, cpu: u16, counted: &Counts, tsc: u64, sink: &mut impl Sink) {
        self.stats.pmis += 1;
        // The timer's own value told of the overflow; the others were read after it.
        self.stats.rdpmcs += self.turn.counters();
        if self.current.credited {
            self.credit(counted, tsc);
            let CurrentSlice { slice, piece, .. } = self.current;
            self.record(cpu, End::Overflow, &piece, tsc, sink);
            self.finish(&slice);
        } else {
            self.take_in(counted, tsc);
            self.record(cpu, End::Overflow, counted, tsc, sink);
            self.finish(counted);
        }
    }

    /// Takes the slice under way off its CPU, where all was credited.
    pub(crate) fn leave(&mut self, cpu: u16, end: End, tsc: u64, sink: &mut impl Sink) {
        let CurrentSlice { slice, piece, .. } = self.current;
        self.record(cpu, end, &piece, tsc, sink);
        // An overflow that was pending is forgotten by the PMU; its slice is over all the same.
        if end == End::Stopped || self.left() == 0 {
            self.finish(&slice);
        }
        self.running = false;
    }

    /// Ends the slice under way, in which `slice` was counted; the next is the one to come.
    fn finish(&mut self, slice: &Counts) {
        let turn = self.current_position();
        if let Some(moments) = self.moments.get_mut(usize::from(self.current.draw.group)) {
            moments.add(slice, self.used, turn, self.round);
        }
        self.finished += 1;
        self.stats.lengthened += u64::from(self.current.slice_multiplier > 1);
        if self.current.credited {
            self.current = CurrentSlice::default();
        }
        self.current.draw = self.next;
        self.current.slice_multiplier = self.budget.slice_multiplier();
        if self.finished.is_multiple_of(Budget::SLICES) {
            self.budget.update(self.stats.engine_ticks, self.stats.session_ticks);
        }
        self.current.piece_start_tsc = self.ticks_until;
        self.draw();
        if self.bank.is_none() {
            self.fit_share();
        }
    }

    /// States the sums of the group under way anew if its share is another than before: between two
    /// slices of it, when a program that sees it has been told of the one before. Whether it did.
    fn fit_share(&mut self) -> bool {
        let Draw { group, share, .. } = self.current.draw;
        let moments = self.moments.get_mut(usize::from(group));
        let Some(moments) = moments.filter(|moments| moments.share() != share) else {
            return false;
        };
        moments.restate(share, self.round);
        true
    }

    /// Gives away a record of what was counted since the slice under way was put on its CPU.
    #[inline(always)]
    fn record(&mut self, cpu: u16, end: End, piece: &Counts, tsc: u64, sink: &mut impl Sink) {
        let sequence = self.stats.slices;
        self.stats.slices += 1;
        let used = self.used;
        let stats = &mut self.stats;
        sink.record(|| {
            stats.records += 1;
            let mut record = SliceRecord {
                session: self.id,
                cpu,
                group: self.current.draw.group,
                mode: self.config.mode,
                end,
                events: used.count_ones() as u8,
                slice_multiplier: self.current.slice_multiplier,
                sequence,
                address_space: self.address_space,
                start_tsc: self.current.piece_start_tsc,
                end_tsc: tsc,
                cycles: piece[Pinned::Cycles],
                instructions: piece[Pinned::Instructions],
                counts: Counts::default().general,
            };
            let mut member = 0;
            for_each_counter(used, |counter| {
                if let Some(count) = record.counts.get_mut(member) {
                    *count = piece.general[counter];
                }
                member += 1;
            });
            record
        });
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SessionStats {
        &mut self.stats
    }
}

static NO_GROUP: Group = Group::NONE;
