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
    Accesses, Always, Counts, Demand, Group, Layout, Plan, PlanError, Set, Setup, Sink,
    estimate::{self, Sample},
    hardware::counters,
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
    /// The slice under way, which may be off the CPU, or the one to come.
    open: Open,
    /// The group after it: drawn beforehand, so that the overflow path finds it.
    next: u16,
    setup: Setup,
    /// Whether anybody wants reference cycles.
    reference: bool,
    moments: Box<[GroupMoments]>,
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
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    group: u16,
    /// Whether anything is in the two sums: only where a slice is cut or looked at in the middle.
    credited: bool,
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
        let mut order = Order::new(groups as u16, seed, id);
        Ok(Session {
            id,
            address_space,
            config,
            open: Open { group: order.draw(), ..Open::default() },
            next: order.draw(),
            order,
            setup: Setup::from(config),
            reference: plan.places.contains(&Place::Always(Always::Reference)),
            moments: (0..groups).map(|_| GroupMoments::default()).collect(),
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
        if self.open.credited && self.open.group == group {
            moments.add(&self.open.slice, self.group().used, self.finished, self.stats.groups);
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
        self.setup
    }

    pub(crate) fn slice_length(&self) -> u64 {
        self.config.slice.length()
    }

    /// The group of the slice under way.
    pub(crate) fn group(&self) -> &Group {
        self.groups().0
    }

    /// The group of the slice under way, and the one after it.
    pub(crate) fn groups(&self) -> (&Group, &Group) {
        let group = |index: u16| self.plan.groups.get(usize::from(index)).unwrap_or(&NO_GROUP);
        (group(self.open.group), group(self.next))
    }

    /// The counters to read for the groups whose counters are in the mask `general`.
    #[inline]
    pub(crate) fn set(&self, general: u8) -> Set {
        Set { general, reference: self.reference }
    }

    /// Puts the slice under way on a CPU: what is left of it, at least 1.
    pub(crate) fn enter(&mut self, tsc: u64) -> u64 {
        self.open.piece = Counts::default();
        self.open.piece_start_tsc = tsc;
        self.running = true;
        self.ticks_until = tsc;
        self.left().max(1)
    }

    /// What is left of the slice under way, in its unit; 0 if its length was reached.
    pub(crate) fn left(&self) -> u64 {
        self.slice_length().saturating_sub(self.open.slice.timer(self.setup.unit))
    }

    /// Credits what was counted since the last credit, in the middle of the slice under way.
    pub(crate) fn credit(&mut self, counted: &Counts, tsc: u64) {
        let used = self.group().used;
        self.count(counted, tsc);
        self.open.slice.add(counted, used);
        self.open.piece.add(counted, used);
        self.open.credited = true;
    }

    fn count(&mut self, counted: &Counts, tsc: u64) {
        self.stats.session_ticks += tsc.saturating_sub(self.ticks_until);
        self.ticks_until = tsc;
        self.total.add(counted, 0);
    }

    /// Ends the slice under way, which was put on a CPU, with what was counted since the last
    /// credit.
    #[inline]
    pub(crate) fn turn_over(&mut self, cpu: u16, counted: &Counts, tsc: u64, sink: &mut impl Sink) {
        if self.open.credited {
            self.credit(counted, tsc);
            let Open { slice, piece, .. } = self.open;
            self.record(cpu, End::Overflow, &piece, tsc, sink);
            self.finish(&slice);
        } else {
            self.count(counted, tsc);
            self.record(cpu, End::Overflow, counted, tsc, sink);
            self.finish(counted);
        }
    }

    /// Takes the slice under way off its CPU, where all was credited.
    pub(crate) fn leave(&mut self, cpu: u16, end: End, tsc: u64, sink: &mut impl Sink) {
        let Open { slice, piece, .. } = self.open;
        self.record(cpu, end, &piece, tsc, sink);
        // An overflow that was pending is forgotten by the PMU; its slice is over all the same.
        if end == End::Stopped || self.left() == 0 {
            self.finish(&slice);
        }
        self.running = false;
    }

    /// Ends the slice under way, in which `slice` was counted; the next is the one to come.
    fn finish(&mut self, slice: &Counts) {
        let used = self.group().used;
        if let Some(moments) = self.moments.get_mut(usize::from(self.open.group)) {
            moments.add(slice, used, self.finished, self.stats.groups);
        }
        self.finished += 1;
        self.open.group = self.next;
        if self.open.credited {
            self.open = Open { group: self.next, ..Open::default() };
        }
        self.next = self.order.draw();
    }

    /// Gives away a record of what was counted since the slice under way was put on its CPU.
    fn record(&mut self, cpu: u16, end: End, piece: &Counts, tsc: u64, sink: &mut impl Sink) {
        let sequence = self.stats.slices;
        self.stats.slices += 1;
        let used = self.group().used;
        let stats = &mut self.stats;
        sink.record(|| {
            stats.records += 1;
            let mut counts = Counts::default().general;
            for (count, counter) in counts.iter_mut().zip(counters(used)) {
                *count = piece.general[counter];
            }
            SliceRecord {
                session: self.id,
                cpu,
                group: self.open.group,
                mode: self.config.mode,
                end,
                events: used.count_ones() as u8,
                sequence,
                address_space: self.address_space,
                start_tsc: self.open.piece_start_tsc,
                end_tsc: tsc,
                cycles: piece.cycles,
                instructions: piece.instructions,
                counts,
            }
        });
    }

    /// The overflow path ends: what it cost, and when the program goes on.
    #[inline]
    pub(crate) fn charge(&mut self, overflowed: bool, accesses: Accesses, from_tsc: u64, tsc: u64) {
        let stats = &mut self.stats;
        stats.pmis += u64::from(overflowed);
        stats.spurious_pmis += u64::from(!overflowed);
        stats.msr_accesses += accesses.msr;
        stats.rdpmcs += accesses.rdpmc;
        stats.engine_ticks += tsc.saturating_sub(from_tsc);
        if overflowed {
            self.open.piece_start_tsc = tsc;
        }
    }
}

static NO_GROUP: Group = Group::NONE;

fn not_started() -> Value {
    Value::NotMeasured { reason: Reason::NotStarted }
}
