//! The truth over time of a session, from the series of the virtual PMU.

use std::{collections::BTreeMap, path::Path};

use tally_abi::ExitStatus;

use crate::{Failure, Result};

/// Ring-3 counts of a session over time: rows of the series, summed up.
pub struct Series {
    /// By row: the clock, a column such as instructions or cycles, up to its end.
    clock: Vec<u64>,
    /// By column and row: its count up to the row's end.
    counts: BTreeMap<String, Vec<u64>>,
}

impl Series {
    /// Reads the rows of a session in ring 3 from the file of `--vpmu series=FILE`; `clock` is the
    /// column by which times are given.
    ///
    /// # Errors
    /// The file cannot be read, or is no series with this column.
    pub fn read(path: &Path, session: u32, clock: &str) -> Result<Series> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::io("read the series", path, &error))?;
        Series::parse(&text, session, clock).ok_or_else(|| {
            let why = format!("{}: no series with {clock}", path.display());
            Failure::new(ExitStatus::HostError, why)
        })
    }

    /// As [`Self::read`], from the file's text; none if it is no such series.
    fn parse(text: &str, session: u32, clock: &str) -> Option<Series> {
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next()?.split(',').collect();
        let column = |name: &str| names.iter().position(|column| *column == name);
        let (sessions, ring) = (column("sessions")?, column("ring")?);
        let own = column(clock).filter(|own| *own > ring)? - ring - 1;
        let tag = session.to_string();
        let names = &names[ring + 1..];
        let (mut sums, mut counts) = (vec![0_u64; names.len()], vec![Vec::new(); names.len()]);
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            let is_own = cells.get(sessions)?.split(' ').any(|session| session == tag);
            if !is_own || cells.get(ring) != Some(&"user") {
                continue;
            }
            for (index, (sum, column)) in sums.iter_mut().zip(&mut counts).enumerate() {
                *sum += cells.get(ring + 1 + index)?.parse::<u64>().ok()?;
                column.push(*sum);
            }
        }
        let clock = counts[own].clone();
        let names = names.iter().map(|name| (*name).to_owned());
        Some(Series { clock, counts: names.zip(counts).collect() })
    }

    /// The clock at the session's end.
    pub fn end(&self) -> u64 {
        self.clock.last().copied().unwrap_or_default()
    }

    /// A column's count up to a time, between two rows in proportion.
    fn up_to(&self, counts: &[u64], time: u64) -> f64 {
        let row = self.clock.partition_point(|end| *end < time);
        let Some(&last) = counts.last() else { return 0.0 };
        let (Some(&end), Some(&to)) = (self.clock.get(row), counts.get(row)) else {
            return last as f64;
        };
        let before = row.checked_sub(1).map_or((0, 0), |row| (self.clock[row], counts[row]));
        let part = (time - before.0) as f64 / (end - before.0).max(1) as f64;
        before.1 as f64 + part * (to - before.1) as f64
    }

    /// A column's count between two times; none if the series does not have it.
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
        let text = "interval,vcpu,address_space,regions,sessions,ring,I,E\n\
                    0,0,1,,1,user,100,10\n0,0,1,,1,kernel,50,9\n1,0,1,,1 2,user,300,0\n\
                    2,0,1,,2,user,70,5\n3,0,1,,1,user,100,40\n";
        let series = Series::parse(text, 1, "I").unwrap();
        assert_eq!(series.between("E", 0, 100), Some(10));
        assert_eq!(series.between("E", 50, 400), Some(5));
        assert_eq!(series.between("E", 425, 500), Some(30));
        assert_eq!(series.between("F", 0, 1), None);
        assert_eq!(series.end(), 500);
        assert!(Series::parse(text, 1, "J").is_none());
        assert!(Series::parse(text, 1, "vcpu").is_none());
    }
}
