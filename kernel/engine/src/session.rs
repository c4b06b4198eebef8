//! A session: the HPC context of one address space (paper 000, section 2).
//!
//! It holds the plan, the logical counters, the random order and the statistics, all that has to
//! outlive a switch of context; what belongs to a CPU is in [`crate::Multiplexer`]. A slice that is
//! cut short by such a switch stays open here and goes on with what is left of it, so that groups
//! get equal shares of the program's time however often it is interrupted.
//!
//! [`Session::open`] allocates and is called once. The `pub(crate)` methods run in the overflow
//! path and do not. [`Session::reading`] uses floating point: never in the overflow path.

use alloc::{boxed::Box, vec::Vec};

use tally_abi::{
    Reading, SessionConfig, SessionStats, Value,
    reading::Reason,
    trace::{End, SliceRecord},
};

use crate::{
    Always, Counts, Demand, Group, Layout, Plan, PlanError, Setup,
    estimate::{self, Sample},
    moments::GroupMoments,
    order::Order,
    plan::{Place, plan},
};

/// The logical counters of one address space.
#[derive(Debug)]
pub struct Session {
    id: u32,
    address_space: u64,
    config: SessionConfig,
    plan: Plan,
    order: Order,
    /// The group after the slice under way, where it had to be known before.
    next: Option<u16>,
    moments: Box<[GroupMoments]>,
    /// The slice under way, which may be off the CPU.
    open: Option<Open>,
    /// Of the always-counted events, for as long as the session ran.
    total: Counts,
    /// Slices that have ended, however many pieces they came in.
    finished: u64,
    stats: SessionStats,
    running: bool,
    /// TSC up to which [`SessionStats::session_ticks`] is summed.
    ticks_until: u64,
}

/// A slice that has begun and not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    group: u16,
    /// Counted in this slice so far.
    slice: Counts,
    /// Counted since the slice was last put on a CPU: what its next record will say.
    piece: Counts,
    piece_start_tsc: u64,
}

impl Session {
    /// Plans `demands` and makes the session. `id` and `seed` together decide the random order.
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
        let plan = plan(&demands, layout)?;
        let groups = plan.groups.len();
        Ok(Session {
            id,
            address_space,
            config,
            order: Order::new(groups as u16, seed, id),
            next: None,
            moments: (0..groups).map(|_| GroupMoments::default()).collect(),
            open: None,
            total: Counts::default(),
            finished: 0,
            stats: SessionStats { groups: groups as u64, ..SessionStats::default() },
            running: false,
            ticks_until: 0,
            plan,
        })
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
        self.plan.places.len()
    }

    /// Whether a CPU is counting for it.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// What the engine did for it so far.
    pub fn stats(&self) -> SessionStats {
        SessionStats {
            rounds: self.finished / self.stats.groups.max(1),
            cycles: self.total.cycles,
            instructions: self.total.instructions,
            ..self.stats
        }
    }

    /// The value of an event's logical counter, up to the last overflow, suspend or
    /// [`crate::Multiplexer::sync`]. `event` is its index in the list of demands; one out of range
    /// was never started.
    pub fn reading(&self, event: usize) -> Reading {
        let total_cycles = self.total.cycles;
        let place = self.plan.places.get(event);
        let (value, counted_cycles, slices) = match place {
            _ if self.total == Counts::default() => (not_started(), 0, 0),
            None => (not_started(), 0, 0),
            Some(Place::Always(always)) => {
                let count = match always {
                    Always::Cycles => self.total.cycles,
                    Always::Instructions => self.total.instructions,
                    Always::Reference => self.total.reference,
                };
                (Value::Exact { count }, total_cycles, self.stats.slices)
            }
            Some(Place::General { group, counter }) => {
                let sample = self.sample(*group, *counter);
                let value = match self.plan.groups.len() {
                    1 => Value::Exact { count: sample.event.events },
                    _ => estimate::estimate(&sample),
                };
                (value, sample.group.sums[0], sample.group.slices)
            }
        };
        Reading { value, counted_cycles, total_cycles, slices }
    }

    /// All that is known of the event on `counter` in `group`, the slice under way included.
    pub fn sample(&self, group: u16, counter: u8) -> Sample {
        let mut moments = self.moments.get(usize::from(group)).copied().unwrap_or_default();
        if let Some(open) = self.open.filter(|open| open.group == group) {
            moments.add(&open.slice, self.finished, self.stats.groups);
        }
        let event = moments.events.get(usize::from(counter)).copied().unwrap_or_default();
        Sample {
            event,
            group: moments,
            groups: self.stats.groups,
            totals: [self.total.cycles, self.total.instructions],
        }
    }

    pub(crate) fn setup(&self) -> Setup {
        Setup::from(self.config)
    }

    pub(crate) fn slice_length(&self) -> u64 {
        self.config.slice.length()
    }

    /// The group of the slice under way; an empty one if there is none.
    pub(crate) fn group(&self) -> Group {
        let group = self.open.and_then(|open| self.plan.groups.get(usize::from(open.group)));
        group.copied().unwrap_or_default()
    }

    /// Puts the slice under way, or else a new one, on a CPU: what is left of it, at least 1.
    pub(crate) fn enter(&mut self, tsc: u64) -> u64 {
        let mut open = self.open.unwrap_or_else(|| self.fresh());
        open.piece = Counts::default();
        open.piece_start_tsc = tsc;
        self.open = Some(open);
        if !self.running {
            self.running = true;
            self.ticks_until = tsc;
        }
        self.left().max(1)
    }

    /// What is left of the slice under way, in its unit; 0 if its length was reached.
    pub(crate) fn left(&self) -> u64 {
        let unit = self.setup().unit;
        let counted = self.open.map_or(0, |open| open.slice.timer(unit));
        self.slice_length().saturating_sub(counted)
    }

    /// Credits what was counted since the last credit.
    pub(crate) fn credit(&mut self, counted: &Counts, tsc: u64) {
        self.stats.session_ticks += tsc.saturating_sub(self.ticks_until);
        self.ticks_until = tsc;
        let used = self.group().used;
        let Some(open) = &mut self.open else { return };
        let mut counted = *counted;
        for (counter, count) in counted.general.iter_mut().enumerate() {
            if used >> counter & 1 == 0 {
                *count = 0;
            }
        }
        open.slice.add(&counted);
        open.piece.add(&counted);
        self.total.add(&Counts { general: Default::default(), ..counted });
    }

    /// Ends the slice under way.
    pub(crate) fn finish(&mut self) {
        let Some(open) = self.open.take() else { return };
        if let Some(moments) = self.moments.get_mut(usize::from(open.group)) {
            moments.add(&open.slice, self.finished, self.stats.groups);
        }
        self.finished += 1;
    }

    /// Takes the slice under way off its CPU.
    pub(crate) fn leave(&mut self) {
        self.running = false;
    }

    /// The record of what was counted since the slice under way was put on its CPU.
    pub(crate) fn record(&mut self, cpu: u16, end: End, tsc: u64) -> Option<SliceRecord> {
        let used = self.group().used;
        let open = self.open?;
        let sequence = self.stats.slices;
        self.stats.slices += 1;
        self.stats.records += 1;
        let mut counts = Counts::default().general;
        let members = open.piece.general.iter().enumerate().filter(|(c, _)| used >> c & 1 == 1);
        for (count, (_, value)) in counts.iter_mut().zip(members) {
            *count = *value;
        }
        Some(SliceRecord {
            session: self.id,
            cpu,
            group: open.group,
            mode: self.config.mode,
            end,
            events: used.count_ones() as u8,
            sequence,
            address_space: self.address_space,
            start_tsc: open.piece_start_tsc,
            end_tsc: tsc,
            cycles: open.piece.cycles,
            instructions: open.piece.instructions,
            counts,
        })
    }

    pub(crate) fn stats_mut(&mut self) -> &mut SessionStats {
        &mut self.stats
    }

    /// The group that comes after the slice under way.
    pub(crate) fn next_group(&mut self) -> Group {
        let next = *self.next.get_or_insert_with(|| self.order.draw());
        self.plan.groups.get(usize::from(next)).copied().unwrap_or_default()
    }

    fn fresh(&mut self) -> Open {
        Open {
            group: self.next.take().unwrap_or_else(|| self.order.draw()),
            slice: Counts::default(),
            piece: Counts::default(),
            piece_start_tsc: 0,
        }
    }
}

fn not_started() -> Value {
    Value::NotMeasured { reason: Reason::NotStarted }
}
