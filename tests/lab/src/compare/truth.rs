//! The truth of the program under Linux: the virtual PMU's counts in ring 3 of its address space.
//!
//! Linux does not open a region for a program. But the virtual PMU's series has the counts of each
//! address space, and a process has its own address space from `execve` to its end. Perf enables
//! its counters in `execve` too, so both cover every instruction of the program in ring 3.

use std::{collections::BTreeMap, path::Path};

use tally_abi::ExitStatus;
use xtask::{Failure, Result, project};

/// Maximum ratio of the program's instructions on the two systems.
const MOST: f64 = 1.5;

/// Counts in ring 3 of one address space, by the vendor's names.
pub(super) type Counts = BTreeMap<String, u64>;

/// Reads the series in `path` and returns the counts of the address space whose `event` is nearest
/// to `count`, its number under Tally. The other address spaces that execute in ring 3 are perf's
/// and the shell's.
///
/// # Errors
/// The file cannot be read, or no address space is near.
pub(super) fn of_program(path: &Path, event: &str, count: u64) -> Result<Counts> {
    let text = String::from_utf8_lossy(&project::read(path)?).into_owned();
    let Some(spaces) = spaces(&text) else {
        let why = format!("{}: not a series of the virtual PMU", path.display());
        return Err(Failure::new(ExitStatus::MachineFailed, why));
    };
    let factor = |counts: &Counts| {
        let own = counts.get(event).copied().unwrap_or_default().max(1) as f64;
        let other = count.max(1) as f64;
        (own / other).max(other / own)
    };
    let nearest = spaces.into_values().min_by(|a, b| factor(a).total_cmp(&factor(b)));
    match nearest {
        Some(counts) if factor(&counts) <= MOST => Ok(counts),
        _ => {
            let why = format!(
                "the program executes {count} instructions under Tally and no process as many \
                 under Linux: compare a longer program, or one that does the same on both"
            );
            Err(Failure::new(ExitStatus::CheckFailed, why))
        }
    }
}

/// The counts in ring 3 of each address space; `None` if the text is no series.
fn spaces(text: &str) -> Option<BTreeMap<String, Counts>> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next()?.split(',').collect();
    let column = |name: &str| names.iter().position(|other| *other == name);
    let (space, ring) = (column("address_space")?, column("ring")?);
    let mut spaces: BTreeMap<String, Counts> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if cells.get(ring) != Some(&"user") {
            continue;
        }
        let counts = spaces.entry((*cells.get(space)?).to_owned()).or_default();
        for (name, cell) in names.iter().zip(&cells).skip(ring + 1) {
            *counts.entry((*name).to_owned()).or_default() += cell.parse::<u64>().ok()?;
        }
    }
    Some(spaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERIES: &str = "interval,vcpu,address_space,regions,sessions,ring,I,C\n\
                          0,0,4096,,,kernel,900,7\n0,0,4096,,,user,10,3\n0,0,8192,,,user,400,90\n\
                          1,0,8192,1 2,,user,600,10\n";

    /// The counts of the nearest address space in a file with this text.
    fn of(text: &str, name: &str, count: u64) -> Result<Counts> {
        let path = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let counts = of_program(&path, "I", count);
        std::fs::remove_file(&path).unwrap();
        counts
    }

    #[test]
    fn the_program_has_the_address_space_with_as_many_instructions() {
        let counts = of(SERIES, "near", 1001).unwrap();
        assert_eq!((counts["I"], counts["C"]), (1000, 100));
        assert_eq!(of(SERIES, "small", 9).unwrap()["C"], 3);
    }

    #[test]
    fn a_program_that_does_something_else_is_refused() {
        assert_eq!(of(SERIES, "far", 100).unwrap_err().status, ExitStatus::CheckFailed);
        assert_eq!(of("x\n", "bad", 100).unwrap_err().status, ExitStatus::MachineFailed);
    }
}
