//! A session's readings: values with their errors. Uses floating point: never in the overflow path.

use alloc::{vec, vec::Vec};

use tally_abi::{Reading, Value, reading::Reason};

use super::{snapshot::Snapshot, state::Session};
use crate::{
    Counts, MAX_GENERAL,
    bounds::{self, Bound, Candidate, Whole},
    estimate::{Sample, Scaling},
    plan::CounterAssignment,
};

/// An event that counted nothing is considered uncountable if the sum of its parts is at least this
/// many times the upper end of its interval.
const SILENT: f64 = 4.0;

impl Session {
    /// The values of all events, in the order of the list, for a program that reads repeatedly: no
    /// estimate is below the one that the last call returned, and no event exceeds an event that it
    /// is a part of ([`Self::set_bounds`]). Half widths grow by the distance by which their
    /// estimates were moved. Equal events of the list have the same value.
    ///
    /// The values returned enter no later estimate: they only keep the next call's values from
    /// being lower.
    pub fn readings(&mut self) -> Vec<Reading> {
        let readings = self.all_readings();
        self.raised(readings, self.total)
    }

    /// The values of all events at the session's end: like [`Self::readings`], but independent of
    /// earlier readings.
    pub fn final_readings(&self) -> Vec<Reading> {
        self.complete_final(self.all_readings())
    }

    fn all_readings(&self) -> Vec<Reading> {
        (0..self.events()).map(|event| self.reading(event)).collect()
    }

    /// The values of all events by cycles alone, each independent of the others: they may be lower
    /// than those that [`Self::readings`] returned, and than those of their parts.
    pub fn readings_by_cycles(&self) -> Vec<Reading> {
        let reading = |event| self.scaled(event, Scaling::ByCycles);
        self.complete_by_cycles((0..self.events()).map(reading).collect())
    }

    /// Completes the result of [`Self::readings_by_cycles`] for a snapshot, whose readings by
    /// cycles of all events are `readings`.
    pub fn complete_by_cycles(&self, mut readings: Vec<Reading>) -> Vec<Reading> {
        self.skew.widen(&mut readings, &self.stats(), &self.plan.assignments);
        readings
    }

    /// Completes the result of [`Self::readings`] for the moment of `snapshot`, whose readings of
    /// all events are `readings`.
    pub fn complete(&mut self, snapshot: &Snapshot, readings: Vec<Reading>) -> Vec<Reading> {
        self.raised(readings, snapshot.totals.counts)
    }

    /// Completes the result of [`Self::final_readings`] for a session that no longer counts;
    /// `readings` are [`Self::reading`] of all events.
    pub fn complete_final(&self, readings: Vec<Reading>) -> Vec<Reading> {
        self.reconciled(readings, &vec![0; self.events()], &self.total)
    }

    /// Raises readings to at least the last ones.
    fn raised(&mut self, readings: Vec<Reading>, total: Counts) -> Vec<Reading> {
        let floors = core::mem::take(&mut self.last_readings);
        let readings = self.reconciled(readings, &floors, &total);
        self.last_readings = floors;
        for (reading, last) in readings.iter().zip(&mut self.last_readings) {
            if let Value::Estimated { estimate, .. } = reading.value {
                *last = estimate;
            }
        }
        readings
    }

    fn reconciled(
        &self,
        mut readings: Vec<Reading>,
        floors: &[u64],
        total: &Counts,
    ) -> Vec<Reading> {
        self.withhold_silent(&mut readings);
        let mut candidates: Vec<Candidate> = readings
            .iter()
            .zip(floors)
            .map(|(reading, floor)| candidate(reading, *floor))
            .collect();
        let firsts = self.firsts();
        for (event, first) in firsts.iter().enumerate() {
            candidates[*first].floor = candidates[*first].floor.max(candidates[event].floor);
        }
        let pinned = |event| total[event];
        let values = bounds::reconcile(&candidates, &self.bounds, &pinned);
        for (reading, first) in readings.iter_mut().zip(firsts) {
            if let Value::Estimated { estimate, half_width_95, .. } = &mut reading.value {
                *half_width_95 += values[first].abs_diff(*estimate) as f64;
                *estimate = values[first];
            }
        }
        self.skew.widen(&mut readings, &self.stats(), &self.plan.assignments);
        readings
    }

    /// Removes the values of events that counted nothing although events that are a part of them
    /// were counted: bounds would lower the parts to 0.
    fn withhold_silent(&self, readings: &mut [Reading]) {
        for Bound { parts, whole } in &self.bounds {
            let Whole::Event(whole) = *whole else { continue };
            let known = parts.iter().filter_map(|part| readings.get(usize::from(*part)));
            let least: f64 = known.filter_map(Reading::interval_95).map(|(low, _)| low).sum();
            let Some(reading) = readings.get_mut(usize::from(whole)) else { continue };
            let most = reading.interval_95().map(|(_, high)| high);
            if reading.counted == 0 && most.is_some_and(|most| least > SILENT * most) {
                *reading = reading.without_value(Reason::CountsNothing);
            }
        }
    }

    /// Sets the maximum number of instructions that the processor counts in ring 3 for an interrupt
    /// or exception there: 0, the initial value, or mostly 1 (Weaver, Terpstra, Moore,
    /// "Non-Determinism and Overcount on Modern Hardware Performance Counter Implementations",
    /// ISPASS 2013, section 4).
    pub fn set_overcount(&mut self, overcount: u64) {
        self.skew.set_overcount(overcount);
    }

    /// Sets the bounds between events: parts that never exceed their wholes.
    pub fn set_bounds(&mut self, mut bounds: Vec<Bound>) {
        let firsts = self.firsts();
        let to_first = |event: &mut u16| {
            *event = firsts.get(usize::from(*event)).map_or(*event, |first| *first as u16);
        };
        for Bound { parts, whole } in &mut bounds {
            parts.iter_mut().for_each(to_first);
            if let Whole::Event(event) = whole {
                to_first(event);
            }
        }
        self.bounds = bounds;
    }

    /// For each event the first of the list on the same counter: bounds apply to these, and the
    /// other events get their values.
    fn firsts(&self) -> Vec<usize> {
        let mut first = vec![[None; MAX_GENERAL]; self.plan.groups.len()];
        let first_of = |(event, assigned): (usize, &CounterAssignment)| match *assigned {
            CounterAssignment::Pinned(_) | CounterAssignment::Metric(_) => event,
            CounterAssignment::General { group, counter } => {
                *first[usize::from(group)][usize::from(counter)].get_or_insert(event)
            }
        };
        self.plan.assignments.iter().enumerate().map(first_of).collect()
    }

    /// The value of an event's logical counter, up to the last overflow, suspend or
    /// [`crate::Multiplexer::sync`]. `event` is its index in the list of demands; an index out of
    /// range reads as not started.
    pub fn reading(&self, event: usize) -> Reading {
        self.scaled(event, Scaling::Best(self.strata.as_deref()))
    }

    fn scaled(&self, event: usize, scaling: Scaling) -> Reading {
        let assigned = self.plan.assignments.get(event).copied();
        self.totals().reading(assigned, scaling, |group, counter| self.sample(group, counter))
    }

    /// The estimate's input for the event on `counter` in `group`, the current slice included.
    pub fn sample(&self, group: u16, counter: u8) -> Sample {
        let mut moments = self.moments.get(usize::from(group)).copied().unwrap_or_default();
        let is_current = self.counted_group() == Some(group);
        if is_current {
            self.add_current(&mut moments);
        }
        self.totals().sample(moments, counter, is_current)
    }
}

fn candidate(reading: &Reading, floor: u64) -> Candidate {
    let candidate = |count, variance| Candidate { count, variance, floor, known: true };
    match reading.value {
        Value::Exact { count } => candidate(count, 0.0),
        // An estimate with a standard error of 0 is not an exact count.
        Value::Estimated { estimate, stderr, .. } => {
            candidate(estimate, (stderr * stderr).max(f64::MIN_POSITIVE))
        }
        Value::NotMeasured { .. } => Candidate::default(),
    }
}
