//! A session's counts at one moment, and the readings of that moment.

use alloc::boxed::Box;

use tally_abi::{Reading, Value, reading::Reason};

use super::{publish::counts_of, state::Session};
use crate::{
    Counts, Pinned,
    estimate::{self, Sample, Scaling},
    metrics::Metrics,
    moments::{Base, GroupMoments},
    plan::CounterAssignment,
    strata::Strata,
};

/// A session's counts at one moment. Readings of that moment can be computed one by one while the
/// session continues: [`Self::reading`] of each event, and then [`Session::complete`] of all of
/// them. Uses floating point, except where it is made.
#[derive(Clone, Debug)]
pub struct Snapshot {
    assignments: Box<[CounterAssignment]>,
    /// Moments of the groups, the counts of the current slice included.
    groups: Box<[GroupMoments]>,
    /// The group of the current slice, if it has counts.
    current: Option<u16>,
    strata: Option<Box<Strata>>,
    pub(super) totals: Totals,
}

/// Counts of the whole session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    /// Counts of the pinned events.
    pub(super) counts: Counts,
    metrics: Metrics,
    /// Whether all events were counted all the time.
    pub(super) is_exact: bool,
    /// Whether counts of nothing are exact; see [`Session::count_idle`].
    pub(super) counts_idle: bool,
    /// Slices in a round.
    pub(super) round: u64,
    /// Slices that have ended.
    pub(super) finished: u64,
    /// Slices in the session's statistics.
    pub(super) slices: u64,
}

impl Snapshot {
    /// Number of events.
    pub fn events(&self) -> usize {
        self.assignments.len()
    }

    /// The value of an event's logical counter; see [`Session::reading`].
    pub fn reading(&self, event: usize) -> Reading {
        self.scaled(event, Scaling::Best(self.strata.as_deref()))
    }

    /// The value of an event by cycles alone; see [`Session::readings_by_cycles`].
    pub fn reading_by_cycles(&self, event: usize) -> Reading {
        self.scaled(event, Scaling::ByCycles)
    }

    fn scaled(&self, event: usize, scaling: Scaling) -> Reading {
        let assigned = self.assignments.get(event).copied();
        self.totals.reading(assigned, scaling, |group, counter| {
            let moments = self.groups.get(usize::from(group)).copied().unwrap_or_default();
            self.totals.sample(moments, counter, self.current == Some(group))
        })
    }
}

impl Totals {
    /// The reading of the event on the counter `assigned`; `sample` returns the estimate's input.
    pub(super) fn reading(
        &self,
        assigned: Option<CounterAssignment>,
        scaling: Scaling,
        sample: impl FnOnce(u16, u8) -> Sample,
    ) -> Reading {
        let total_cycles = self.counts[Pinned::Cycles];
        let (value, counted, counted_cycles, slices) = match assigned {
            Some(_) if self.counts == Counts::default() && self.counts_idle => {
                (Value::Exact { count: 0 }, 0, 0, 0)
            }
            _ if self.counts == Counts::default() => (not_started(), 0, 0, 0),
            None => (not_started(), 0, 0, 0),
            Some(CounterAssignment::Pinned(pinned)) => {
                let count = self.counts[pinned];
                (Value::Exact { count }, count, total_cycles, self.slices)
            }
            Some(CounterAssignment::Metric(metric)) => {
                let (value, least) = (self.metrics.value(metric), self.metrics.least(metric));
                (value, least, total_cycles, self.slices)
            }
            Some(CounterAssignment::General { group, counter }) => {
                let sample = sample(group, counter);
                let value = match scaling {
                    _ if self.is_exact => Value::Exact { count: sample.event.events },
                    Scaling::Best(strata) => {
                        let strata = strata.map(|strata| (strata, (group, counter)));
                        estimate::estimate(&sample, strata)
                    }
                    Scaling::ByCycles => estimate::by_cycles(&sample),
                };
                let counted = sample.event.counted();
                (value, counted, sample.group.counted_cycles(), sample.group.slices)
            }
        };
        Reading { value, counted, counted_cycles, total_cycles, slices }
    }

    /// The estimate's input for the event on a counter of a group, which includes the current slice
    /// if `is_current`.
    pub(super) fn sample(&self, group: GroupMoments, counter: u8, is_current: bool) -> Sample {
        let slices = self.finished + u64::from(is_current);
        Sample {
            event: group.events.get(usize::from(counter)).copied().unwrap_or_default(),
            unseen: slices.saturating_sub(group.last_number()),
            group,
            round: self.round,
            slices: self.finished,
            totals: [self.counts[Pinned::Cycles], self.counts[Pinned::Instructions]],
        }
    }
}

fn not_started() -> Value {
    Value::NotMeasured { reason: Reason::NotStarted }
}

impl Session {
    /// Records that the session counts a CPU from now on, which may run no program: then nothing
    /// happens in ring 3, and the counts are 0 and exact.
    pub fn count_idle(&mut self) {
        self.counts_idle = true;
    }

    /// Bytes of a [`Snapshot`] and of its readings.
    pub fn snapshot_bytes(&self) -> usize {
        let event_bytes = size_of::<CounterAssignment>() + size_of::<Reading>();
        let strata = self.strata.as_ref().map_or(0, |strata| size_of::<Strata>() + strata.bytes());
        size_of_val(&*self.moments) + strata + self.events() * event_bytes
    }

    /// Takes a snapshot of the counts up to now, the moment of [`Self::reading`].
    pub fn snapshot(&self) -> Snapshot {
        let mut groups = self.moments.clone();
        let current = self.counted_group();
        if let Some(group) = current.and_then(|group| groups.get_mut(usize::from(group))) {
            self.add_current(group);
        }
        let assignments = self.plan.assignments.as_slice().into();
        Snapshot {
            assignments,
            groups,
            current,
            strata: self.strata.clone(),
            totals: self.totals(),
        }
    }

    /// An event's count up to the last overflow, suspend or [`crate::Multiplexer::sync`], not
    /// scaled, and the cycles and instructions for which it was on a counter. No floating point.
    /// With planned shares all only grow.
    pub fn counted(&self, event: usize) -> [u64; 3] {
        match self.plan.assignments.get(event) {
            None => [0; 3],
            Some(CounterAssignment::Pinned(pinned)) => {
                [self.total[*pinned], self.cycles(), self.instructions()]
            }
            Some(CounterAssignment::Metric(metric)) => {
                [self.metrics.count(*metric), self.cycles(), self.instructions()]
            }
            Some(&CounterAssignment::General { group, counter }) => {
                let counts = counts_of(&self.moments, &self.current, &self.total, group, 0);
                counts.map_or([0; 3], |counts| {
                    let [cycles, instructions] = Base::ALL.map(|base| counts.counted(base));
                    [counts.events(counter), cycles, instructions]
                })
            }
        }
    }

    /// The cycles of the whole session, up to the last overflow, suspend or
    /// [`crate::Multiplexer::sync`].
    pub fn cycles(&self) -> u64 {
        self.total[Pinned::Cycles]
    }

    /// The instructions of the whole session, as [`Self::cycles`].
    pub fn instructions(&self) -> u64 {
        self.total[Pinned::Instructions]
    }

    pub(super) fn totals(&self) -> Totals {
        Totals {
            counts: self.total,
            metrics: self.metrics,
            is_exact: self.plan.groups.len() == 1 && !self.beside.was_passed,
            counts_idle: self.counts_idle,
            round: self.round,
            finished: self.finished,
            slices: self.stats.slices,
        }
    }

    /// Adds the counts of the current slice to the moments of its group.
    pub(super) fn add_current(&self, moments: &mut GroupMoments) {
        let used = self.plan.group(self.current.drawn.draw.group).used;
        moments.add(&self.current.slice, used, self.current_turn(), self.round);
    }

    /// The group of the current slice, if it has counts.
    pub(super) fn counted_group(&self) -> Option<u16> {
        self.current.credited.then_some(self.current.drawn.draw.group)
    }
}
