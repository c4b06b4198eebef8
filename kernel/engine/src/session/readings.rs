//! What a session tells of its events: values with their errors. Uses floating point: never in the
//! overflow path.

use alloc::{vec, vec::Vec};

use tally_abi::{Reading, Value, reading::Reason};

use super::Session;
use crate::{
    Counts, MAX_GENERAL, Pinned,
    bounds::{self, Bound, Item, Whole},
    estimate::{self, Sample},
    plan::CounterAssignment,
};

impl Session {
    /// [`Self::reading`] for a program that looks again and again: counts never run backwards. An
    /// estimate that has come out lower than one that was told before is told as that one, with an
    /// interval that holds its own.
    pub fn read(&mut self, event: usize) -> Reading {
        let mut reading = self.reading(event);
        if let (Value::Estimated { estimate, half_width_95, .. }, Some(told)) =
            (&mut reading.value, self.told.get_mut(event))
        {
            *half_width_95 += told.saturating_sub(*estimate) as f64;
            *estimate = (*estimate).max(*told);
            *told = *estimate;
        }
        reading
    }

    /// The values of all events, in the order of the list, for a program that looks again and again:
    /// counts never run backwards from one call to the next; and no event is told to be more than what
    /// it is a part of ([`Self::set_bounds`]), which [`Self::read`] and the bank know nothing of: only where they
    /// told such a value is it told as less here. Half widths grow by as much as their estimates were
    /// moved. What was asked for twice is told the same.
    pub fn readings(&mut self) -> Vec<Reading> {
        let mut readings: Vec<Reading> =
            (0..self.events()).map(|event| self.reading(event)).collect();
        let before = self.told.iter().zip(&self.settled);
        let mut items: Vec<Item> = readings.iter().zip(before).map(item).collect();
        let firsts = self.firsts();
        for (event, first) in firsts.iter().enumerate() {
            items[*first].told = items[*first].told.max(items[event].told);
        }
        let values = bounds::reconcile(&items, &self.bounds, &|always| self.total[always]);
        let values = firsts.into_iter().map(|first| values[first]);
        let before = self.told.iter_mut().zip(&mut self.settled);
        for ((reading, (told, settled)), value) in readings.iter_mut().zip(before).zip(values) {
            if let Value::Estimated { estimate, half_width_95, .. } = &mut reading.value {
                *half_width_95 += value.abs_diff(*estimate) as f64;
                (*estimate, *settled) = (value, value);
                *told = value.max(*told);
            }
        }
        readings
    }

    /// Which events are never more than others.
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

    /// For each event the first of the list that has its place: bounds are of these, and the others are
    /// told what they are.
    fn firsts(&self) -> Vec<usize> {
        let mut first = vec![[None; MAX_GENERAL]; self.plan.groups.len()];
        let of_place = |(event, place): (usize, &CounterAssignment)| match *place {
            CounterAssignment::Pinned(_) => event,
            CounterAssignment::General { group, counter } => {
                *first[usize::from(group)][usize::from(counter)].get_or_insert(event)
            }
        };
        self.plan.assignments.iter().enumerate().map(of_place).collect()
    }

    /// The value of an event's logical counter, up to the last overflow, suspend or
    /// [`crate::Multiplexer::sync`]. `event` is its index in the list of demands; one out of range
    /// was never started.
    pub fn reading(&self, event: usize) -> Reading {
        let total_cycles = self.total[Pinned::Cycles];
        let place = self.plan.assignments.get(event);
        let (value, counted_cycles, slices) = match place {
            _ if self.total == Counts::default() => (not_started(), 0, 0),
            None => (not_started(), 0, 0),
            Some(CounterAssignment::Pinned(always)) => {
                (Value::Exact { count: self.total[*always] }, total_cycles, self.stats.slices)
            }
            Some(CounterAssignment::General { group, counter }) => {
                let sample = self.sample(*group, *counter);
                let value = match self.plan.groups.len() {
                    1 => Value::Exact { count: sample.event.events },
                    _ => estimate::estimate(&sample),
                };
                (value, sample.group.counted_cycles(), sample.group.slices)
            }
        };
        Reading { value, counted_cycles, total_cycles, slices }
    }

    /// All that is known of the event on `counter` in `group`, the slice under way included.
    pub fn sample(&self, group: u16, counter: u8) -> Sample {
        let mut moments = self.moments.get(usize::from(group)).copied().unwrap_or_default();
        if self.current.credited && self.current.draw.group == group {
            moments.add(
                &self.current.slice,
                self.group().used,
                self.current_position(),
                self.round,
            );
        }
        let event = moments.events.get(usize::from(counter)).copied().unwrap_or_default();
        Sample {
            event,
            group: moments,
            round: self.round,
            slices: self.finished,
            totals: [self.total[Pinned::Cycles], self.total[Pinned::Instructions]],
        }
    }
}

fn item((reading, (told, settled)): (&Reading, (&u64, &u64))) -> Item {
    let (told, settled) = (*told, *settled);
    let item = |count, variance| Item { count, variance, told, settled, known: true };
    match reading.value {
        Value::Exact { count } => item(count, 0.0),
        // An estimate without an error is still no count.
        Value::Estimated { estimate, stderr, .. } => {
            item(estimate, (stderr * stderr).max(f64::MIN_POSITIVE))
        }
        Value::NotMeasured { .. } => Item::default(),
    }
}

fn not_started() -> Value {
    Value::NotMeasured { reason: Reason::NotStarted }
}
