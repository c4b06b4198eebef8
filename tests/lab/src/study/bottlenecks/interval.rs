//! Intervals of a program's run, and their counts.

use tally_engine::phase::{Counted, Estimate};
use xtask::report::Series;

use super::terms::{CAUSES, Term};

/// Counts of an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Interval {
    /// Core cycles.
    pub(super) cycles: u64,
    /// Instructions.
    pub(super) instructions: u64,
    /// The events, in the order of the terms.
    pub(super) events: Vec<u64>,
    /// The cycles that the interval would save without each cause, in the order of [`CAUSES`]; 0 if
    /// it would take more.
    pub(super) saved: [u64; CAUSES.len()],
}

impl Interval {
    /// The intervals of `length` instructions of a series of signals, from its start, without a
    /// partial one at the end. `beside` has the series of the shadow core for each cause. `None` if
    /// a series lacks a column.
    pub(super) fn read(
        series: &Series,
        beside: &[Series],
        terms: &[Term],
        width: u32,
        length: u64,
    ) -> Option<Vec<Interval>> {
        (0..series.end() / length)
            .map(|number| {
                let from = number * length;
                let sum = |columns: &[String]| -> Option<u64> {
                    columns.iter().map(|column| series.between(column, from, from + length)).sum()
                };
                let cycles = |series: &Series| {
                    Some(series.between("Slots", from, from + length)? / u64::from(width))
                };
                let own = cycles(series)?;
                let mut saved = [0; CAUSES.len()];
                for (saved, without) in saved.iter_mut().zip(beside) {
                    *saved = own.saturating_sub(cycles(without)?);
                }
                Some(Interval {
                    cycles: own,
                    instructions: length,
                    events: terms.iter().map(|term| sum(&term.columns)).collect::<Option<_>>()?,
                    saved,
                })
            })
            .collect()
    }

    /// Merges each `number` intervals into one, without a partial one at the end.
    pub(super) fn together(intervals: &[Interval], number: usize) -> Vec<Interval> {
        intervals.chunks_exact(number.max(1)).map(Interval::sum).collect()
    }

    fn sum(intervals: &[Interval]) -> Interval {
        let mut sum = Interval::default();
        for interval in intervals {
            sum.cycles += interval.cycles;
            sum.instructions += interval.instructions;
            sum.events.resize(interval.events.len(), 0);
            sum.events.iter_mut().zip(&interval.events).for_each(|(sum, count)| *sum += count);
            sum.saved.iter_mut().zip(&interval.saved).for_each(|(sum, count)| *sum += count);
        }
        sum
    }

    /// The counts in the form of the engine's model, without errors.
    pub(super) fn counted(&self) -> Counted {
        let (cycles, instructions) = (self.cycles, self.instructions);
        let mut counted = Counted { cycles, instructions, ..Counted::default() };
        for (slot, count) in counted.events.iter_mut().zip(&self.events) {
            *slot = Estimate { count: *count, half_width: 0 };
        }
        counted
    }

    /// IPC + 1, the paper's f.
    pub(super) fn parallelism(&self) -> f64 {
        1.0 + self.instructions as f64 / self.cycles.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_add_up() {
        let of = |cycles, event| Interval {
            cycles,
            instructions: 100,
            events: vec![event, 1],
            saved: [2; CAUSES.len()],
        };
        let sum = Interval::together(&[of(100, 3), of(300, 4), of(9, 9)], 2);
        let expected = Interval {
            cycles: 400,
            instructions: 200,
            events: vec![7, 2],
            saved: [4; CAUSES.len()],
        };
        assert_eq!((sum.as_slice(), sum[0].parallelism()), (&[expected][..], 1.5));
        assert_eq!(sum[0].counted().events[0].count, 7);
    }
}
