//! The truth over time of a session, from the series of the virtual PMU.

use std::{collections::BTreeMap, path::Path};

use tally_abi::ExitStatus;

use super::rings::RING_0;
use crate::{Failure, Result};

/// Counts of a session over time: rows of the series, added up.
pub struct Series {
    /// By row: the value of the clock at its end. The clock is a column such as instructions or
    /// cycles in ring 3.
    clock: Vec<u64>,
    /// By column and row: the count up to the row's end. Columns of ring 0 have a suffix.
    counts: BTreeMap<String, Vec<u64>>,
}

impl Series {
    /// Reads the rows of a session from the file of `--vpmu series=FILE`. `clock` is the column, in
    /// ring 3, that is used as time. Names of ring 0 end in `:k`; its counts include the engine's
    /// interrupts.
    ///
    /// # Errors
    /// The file cannot be read, or is no series with this column.
    pub fn read(path: &Path, session: u32, clock: &str) -> Result<Series> {
        Series::of_core(path, session, clock, "")
    }

    /// Reads rows as [`Self::read`] does, of the shadow core of that name.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn of_core(path: &Path, session: u32, clock: &str, core: &str) -> Result<Series> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::io("read the series", path, &error))?;
        Series::parse(&text, session, clock, core).ok_or_else(|| {
            let why = format!("{}: no series with {clock}", path.display());
            Failure::new(ExitStatus::HostError, why)
        })
    }

    /// Reads rows as [`Self::read`] does, from the file's text; `None` if it is no such series.
    fn parse(text: &str, session: u32, clock: &str, of_core: &str) -> Option<Series> {
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next()?.split(',').collect();
        let column = |name: &str| names.iter().position(|column| *column == name);
        let (sessions, core, ring) = (column("sessions")?, column("core")?, column("ring")?);
        let own = column(clock).filter(|own| *own > ring)? - ring - 1;
        let tag = session.to_string();
        let names = &names[ring + 1..];
        // Columns of ring 3, followed by those of ring 0.
        let number = 2 * names.len();
        let (mut sums, mut counts) = (vec![0_u64; number], vec![Vec::new(); number]);
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            let is_in_session = cells.get(sessions)?.split(' ').any(|session| session == tag);
            if !is_in_session || *cells.get(core)? != of_core {
                continue;
            }
            let from = if cells.get(ring) == Some(&"user") { 0 } else { names.len() };
            for (index, sum) in sums[from..].iter_mut().take(names.len()).enumerate() {
                *sum += cells.get(ring + 1 + index)?.parse::<u64>().ok()?;
            }
            counts.iter_mut().zip(&sums).for_each(|(column, sum)| column.push(*sum));
        }
        let clock = counts[own].clone();
        let of_ring = |suffix| names.iter().map(move |name| format!("{name}{suffix}"));
        let names = of_ring("").chain(of_ring(RING_0));
        Some(Series { clock, counts: names.zip(counts).collect() })
    }

    /// The clock at the session's end.
    pub fn end(&self) -> u64 {
        self.clock.last().copied().unwrap_or_default()
    }

    /// A column's count up to a time, interpolated between two rows.
    fn up_to(&self, counts: &[u64], time: u64) -> f64 {
        let row = self.clock.partition_point(|end| *end < time);
        let Some(&last) = counts.last() else { return 0.0 };
        if time >= self.end() {
            return last as f64;
        }
        let (Some(&end), Some(&to)) = (self.clock.get(row), counts.get(row)) else {
            return last as f64;
        };
        let before = row.checked_sub(1).map_or((0, 0), |row| (self.clock[row], counts[row]));
        let part = (time - before.0) as f64 / (end - before.0).max(1) as f64;
        before.1 as f64 + part * (to - before.1) as f64
    }

    /// A column's count between two times; `None` if the series does not have the column.
    pub fn between(&self, column: &str, from: u64, to: u64) -> Option<u64> {
        let counts = self.counts.get(column)?;
        Some((self.up_to(counts, to) - self.up_to(counts, from)).max(0.0).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_between_rows_are_in_proportion() {
        let text = "interval,vcpu,address_space,regions,sessions,core,ring,I,E\n\
                    0,0,1,,1,,user,100,10\n0,0,1,,1,,kernel,50,9\n1,0,1,,1 2,,user,300,0\n\
                    2,0,1,,2,,user,70,5\n0,0,1,,1,l1d,user,100,3\n3,0,1,,1,,user,100,40\n";
        let series = Series::parse(text, 1, "I", "").unwrap();
        assert_eq!(series.between("E", 0, 100), Some(10));
        assert_eq!(series.between("E", 50, 400), Some(5));
        assert_eq!(series.between("E", 425, 500), Some(30));
        // Ring 0 at the time of ring 3: its 50 cycles were when ring 3 had 100.
        let in_ring_0 = [(0, 100), (0, 101), (100, 500), (101, 500)];
        let in_ring_0 = in_ring_0.map(|(from, to)| series.between("I:k", from, to));
        assert_eq!(in_ring_0, [0, 50, 50, 0].map(Some));
        assert_eq!(series.between("F", 0, 1), None);
        assert_eq!(series.end(), 500);
        let beside = Series::parse(text, 1, "I", "l1d").unwrap();
        assert_eq!(beside.between("E", 0, 100), Some(3));
        assert!(Series::parse(text, 1, "J", "").is_none());
        assert!(Series::parse(text, 1, "vcpu", "").is_none());
    }
}
