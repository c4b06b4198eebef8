//! The true vectors of a session's intervals, from the series of the virtual PMU, and how the
//! intervals compare with them.

use std::{collections::BTreeMap, path::Path};

use tally_abi::{ExitStatus, phase::COSTS};
use tally_engine::phase::{Cost, Counted, Estimate, MAX_TERMS, Model, Vector, classify::classes};

use super::{PhaseInterval, PhaseReport};
use crate::{Failure, Result};

/// Ring-3 counts of a session over time: rows of the series, summed up.
pub struct Series {
    /// By row: instructions up to its end.
    instructions: Vec<u64>,
    /// By event and row: events up to its end.
    events: BTreeMap<String, Vec<u64>>,
}

impl Series {
    /// Reads the rows of a session in ring 3 from the file of `--vpmu series=FILE`; `instructions`
    /// is the name of the event of instructions.
    ///
    /// # Errors
    /// The file cannot be read, or is no series with this event.
    pub fn read(path: &Path, session: u32, instructions: &str) -> Result<Series> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::io("read the series", path, &error))?;
        Series::parse(&text, session, instructions).ok_or_else(|| {
            let why = format!("{}: no series with {instructions}", path.display());
            Failure::new(ExitStatus::HostError, why)
        })
    }

    /// As [`Self::read`], from the file's text; none if it is no such series.
    fn parse(text: &str, session: u32, instructions: &str) -> Option<Series> {
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next()?.split(',').collect();
        let column = |name: &str| names.iter().position(|column| *column == name);
        let (sessions, ring, own) = (column("sessions")?, column("ring")?, column(instructions)?);
        let tag = session.to_string();
        let mut series = Series { instructions: Vec::new(), events: BTreeMap::new() };
        let mut sums = vec![0_u64; names.len()];
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            let is_own = cells.get(sessions)?.split(' ').any(|session| session == tag);
            if !is_own || cells.get(ring) != Some(&"user") {
                continue;
            }
            for (index, name) in names.iter().enumerate().skip(ring + 1) {
                sums[index] += cells.get(index)?.parse::<u64>().ok()?;
                series.events.entry((*name).to_owned()).or_default().push(sums[index]);
            }
            series.instructions.push(sums[own]);
        }
        Some(series)
    }

    /// Events up to this many instructions, between two rows in proportion.
    fn up_to(&self, event: &[u64], instructions: u64) -> f64 {
        let row = self.instructions.partition_point(|end| *end < instructions);
        let Some(&last) = event.last() else { return 0.0 };
        let (Some(&end), Some(&to)) = (self.instructions.get(row), event.get(row)) else {
            return last as f64;
        };
        let before = row.checked_sub(1).map_or((0, 0), |row| (self.instructions[row], event[row]));
        let part = (instructions - before.0) as f64 / (end - before.0).max(1) as f64;
        before.1 as f64 + part * (to - before.1) as f64
    }

    /// An event's count between two numbers of instructions.
    fn between(&self, event: &str, from: u64, to: u64) -> Option<u64> {
        let sums = self.events.get(event)?;
        Some((self.up_to(sums, to) - self.up_to(sums, from)).max(0.0).round() as u64)
    }

    /// The true counts of intervals that follow each other from the session's start; none for an
    /// event that the series does not have.
    pub fn counted(&self, intervals: &[PhaseInterval], events: &[&str]) -> Option<Vec<Counted>> {
        let mut start = 0;
        intervals
            .iter()
            .map(|interval| {
                let (cycles, instructions) = (interval.cycles, interval.instructions);
                let mut counted = Counted { cycles, instructions, ..Counted::default() };
                for (slot, event) in counted.events.iter_mut().zip(events) {
                    let count = self.between(event, start, start + instructions)?;
                    *slot = Estimate { count, half_width: 0 };
                }
                start += instructions;
                Some(counted)
            })
            .collect()
    }
}

/// How a session's intervals compare with the truth.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judged {
    /// Intervals.
    pub intervals: usize,
    /// Those whose class is sure, and of these those whose true vector has the same class.
    pub sure: usize,
    /// See [`Self::sure`].
    pub same: usize,
    /// Costs with a bar, and those whose interval contains the truth.
    pub bars: usize,
    /// See [`Self::bars`].
    pub held: usize,
    /// Intervals whose largest cost is the truth's.
    pub bottleneck: usize,
    /// Intervals to which the same classes on the host give another number than the kernel did: 0.
    pub replayed_otherwise: usize,
}

impl PhaseInterval {
    /// The vector, as the kernel computed it.
    pub fn vector(&self) -> Vector {
        let cost =
            |(cycles, bar): (u32, u32)| Cost { cycles: cycles.into(), half_width: bar.into() };
        let cpi = (u128::from(self.cycles) * 1000 / u128::from(self.instructions.max(1))) as u64;
        Vector { costs: self.costs.map(cost), cpi }
    }
}

impl PhaseReport {
    /// Compares the intervals with their true counts, in the order of the model's terms: classes
    /// are given once more, and at each step the true vector is looked up in the same classes.
    pub fn judge(&self, model: &Model, truth: &[Counted]) -> Judged {
        let mut known = classes(self.classes, self.unit);
        let mut judged = Judged { intervals: self.intervals.len(), ..Judged::default() };
        for (interval, counted) in self.intervals.iter().zip(truth) {
            let (vector, of_truth) = (interval.vector(), model.vector(counted));
            let class = known.classify(&vector);
            judged.replayed_otherwise +=
                usize::from((class.phase, class.sure) != (interval.phase, interval.sure));
            judged.bottleneck += usize::from(of_truth.dominant() == interval.bottleneck);
            if interval.sure {
                judged.sure += 1;
                judged.same += usize::from(known.lookup(&of_truth) == Some(interval.phase));
            }
            for index in 0..COSTS {
                let (cost, truth) = (vector.costs[index], of_truth.costs[index].cycles);
                if cost.half_width > 0 {
                    judged.bars += 1;
                    judged.held += usize::from(cost.cycles.abs_diff(truth) <= cost.half_width);
                }
            }
        }
        judged
    }
}

const _: () = assert!(MAX_TERMS >= COSTS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_between_rows_are_in_proportion() {
        let text = "interval,vcpu,address_space,regions,sessions,ring,I,E\n\
                    0,0,1,,1,user,100,10\n0,0,1,,1,kernel,50,9\n1,0,1,,1 2,user,300,0\n\
                    2,0,1,,2,user,70,5\n3,0,1,,1,user,100,40\n";
        let series = Series::parse(text, 1, "I").unwrap();
        assert_eq!(series.between("E", 0, 100), Some(10));
        assert_eq!(series.between("E", 50, 400), Some(5));
        assert_eq!(series.between("E", 425, 500), Some(30));
        assert_eq!(series.between("F", 0, 1), None);
        assert!(Series::parse(text, 1, "J").is_none());
    }
}
