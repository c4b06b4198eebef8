//! Processor structures that determine the frequency of an event, and the events that interrupts
//! are likely to add (decision 83).
//!
//! An interrupt does not add retirement events in ring 3. It evicts lines of caches and entries of
//! TLBs, and changes the history of branches; afterwards the program misses more often and takes
//! more time. The amount depends on the program: the values here are bounds measured for most
//! programs.

use alloc::{format, string::String, vec::Vec};

/// Words in names of events that happen after a miss of the L2 cache.
const BEHIND_L2: [&str; 9] =
    ["L2_MISS", "L2_LINES", "L3", "LLC", "LONGEST", "OFFCORE", "OCR", "DRAM", "CACHE_REQ_STAT"];

/// Smallest share of a count that is reported as added by interrupts.
const LEAST_TOLD: f64 = 0.005;

/// Columns of a line.
const COLUMNS: usize = 80;

/// Processor structure that determines how often an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Structure {
    /// TLBs of data and code.
    Tlbs,
    /// Branch predictors.
    BranchPredictors,
    /// No structure, but time: more misses of other structures take longer.
    Time,
    /// Caches of data and code.
    Caches,
    /// No structure: only the program determines the count.
    Program,
}

impl Structure {
    /// Structure of an event, by its vendor's or its general name.
    pub fn of(event: &str) -> Structure {
        let name = event.to_ascii_uppercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let time = [
            "CLK",
            "CYCLES",
            "STALL",
            "SLOTS",
            "TOPDOWN",
            "ACTIV",
            "NO_RETIRE",
            "EMPTY",
            "ISSUED",
            "NOT_DELIVERED",
        ];
        let caches = [
            "L1",
            "L2",
            "L3",
            "LLC",
            "CACHE",
            "FILL",
            "OFFCORE",
            "OCR",
            "REPLACEMENT",
            "IC_",
            "MAB",
        ];
        if name == "UOPS_RETIRED.SLOTS" {
            Structure::Program
        } else if has(&["TLB"]) {
            Structure::Tlbs
        } else if has(&["MISP", "BRANCH-MISSES", "CLEAR", "RECOVERY"]) {
            Structure::BranchPredictors
        } else if has(&time) {
            Structure::Time
        } else if has(&caches) {
            Structure::Caches
        } else {
            Structure::Program
        }
    }

    /// Name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Structure::Tlbs => "TLBs",
            Structure::BranchPredictors => "branch predictors",
            Structure::Time => "time",
            Structure::Caches => "caches",
            Structure::Program => "the program itself",
        }
    }

    /// Maximum of events that one interrupt added to a run, over twenty programs at slices of
    /// 20,000 and 80,000 cycles; `None` if unknown. `event` is in capitals. A cycle has six slots.
    fn most_of_one(self, event: &str) -> Option<f64> {
        match self {
            Structure::Tlbs => Some(3.0),
            Structure::BranchPredictors if event.contains("CYCLES") => None,
            Structure::BranchPredictors => Some(1.0),
            Structure::Time if is_of_slots(event) => Some(6.0 * 140.0),
            Structure::Time => Some(140.0),
            Structure::Caches if BEHIND_L2.iter().any(|word| event.contains(word)) => Some(3.0),
            Structure::Caches => Some(17.0),
            Structure::Program => event.contains("RETIRED").then_some(0.0),
        }
    }
}

/// Returns whether an event of time counts slots, of which a cycle has several.
fn is_of_slots(event: &str) -> bool {
    event.contains("SLOTS") || event.contains("NOT_DELIVERED") && !event.contains("CYCLES")
}

/// Upper bound of the events of ring 3 that this many interrupts are likely to have added; `None`
/// if unknown.
pub fn likely_added(event: &str, interrupts: u64) -> Option<f64> {
    let most = Structure::of(event).most_of_one(&event.to_ascii_uppercase())?;
    Some(most * interrupts as f64)
}

/// Added events as a share of a count, at most 1; `None` if the share is too small to report.
pub fn added_share(added: f64, count: f64) -> Option<f64> {
    let share = (count > 0.0).then(|| added / count)?;
    (share >= LEAST_TOLD).then_some(share.min(1.0))
}

/// Lines that report shares, each given as an event and its share; no lines for no shares.
pub fn added_lines(shares: &[String], indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let Some((last, others)) = shares.split_last() else { return lines };
    let mut line = format!("{indent}interrupts are likely to have added up to:");
    let words = others.iter().map(|share| format!(" {share},")).chain([format!(" {last}")]);
    for word in words {
        if line.chars().count() + word.chars().count() > COLUMNS {
            lines.push(line);
            line = format!("{indent} ");
        }
        line += &word;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_found_by_name() {
        for (event, expected) in [
            ("DTLB_LOAD_MISSES.STLB_HIT", Structure::Tlbs),
            ("dTLB-load-misses", Structure::Tlbs),
            ("MEM_LOAD_RETIRED.L1_MISS", Structure::Caches),
            ("L1-dcache-load-misses", Structure::Caches),
            ("LLC-load-misses", Structure::Caches),
            ("BR_MISP_RETIRED.COND", Structure::BranchPredictors),
            ("branch-misses", Structure::BranchPredictors),
            ("CYCLES_NO_RETIRE.EMPTY", Structure::Time),
            ("CYCLE_ACTIVITY.STALLS_L1D_MISS", Structure::Time),
            ("IDQ_UOPS_NOT_DELIVERED.CORE", Structure::Time),
            ("INST_RETIRED.ANY", Structure::Program),
            ("UOPS_RETIRED.SLOTS", Structure::Program),
            ("instructions", Structure::Program),
        ] {
            assert_eq!(Structure::of(event), expected, "{event}");
        }
    }

    #[test]
    fn small_parts_are_not_told_and_large_ones_are_at_most_all() {
        assert_eq!(likely_added("MEM_LOAD_RETIRED.L1_MISS", 10), Some(170.0));
        assert_eq!(likely_added("INST_RETIRED.ANY", 10), Some(0.0));
        assert_eq!(likely_added("INT_MISC.CLEAR_RESTEER_CYCLES", 10), None);
        assert_eq!(likely_added("IDQ_UOPS_NOT_DELIVERED.CORE", 1), Some(840.0));
        assert_eq!(likely_added("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 1), Some(140.0));
        // The case of names does not matter.
        assert_eq!(likely_added("slots", 1), Some(840.0));
        assert_eq!(likely_added("LLC-load-misses", 1), Some(3.0));
        assert_eq!(added_share(170.0, 1_000.0), Some(0.17));
        assert_eq!(added_share(170.0, 100.0), Some(1.0));
        assert_eq!(added_share(4.0, 1_000.0), None);
        assert_eq!(added_share(4.0, 0.0), None);
    }
}
