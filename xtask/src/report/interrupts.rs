//! What a session's own interrupts are likely to have added to its counts (decision 83).
//!
//! An interrupt adds no event of those that a program retires in ring 3. It evicts lines of caches
//! and entries of TLBs, and changes the history of branches; the program then misses more often,
//! and takes time for that. How often, depends on the program: what is told here is what it was of
//! most programs.

use tally_abi::{Mode, SessionStats};

use super::{estimate::Estimate, event::EventReport};
use crate::machine::EventReading;

/// Words in names of events that happen behind a miss of the L2 cache.
const BEHIND_L2: [&str; 8] =
    ["L2_MISS", "L2_LINES", "L3", "LONGEST", "OFFCORE", "OCR", "DRAM", "CACHE_REQ_STAT"];

/// A structure of the processor that decides how often an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Structure {
    Tlbs,
    BranchPredictors,
    Time,
    Caches,
    /// None: the program alone decides.
    Program,
}

impl Structure {
    /// That of an event, by its vendor's name.
    pub fn of(event: &str) -> Structure {
        let has = |words: &[&str]| words.iter().any(|word| event.contains(word));
        let time =
            ["CLK", "CYCLES", "STALL", "SLOTS", "TOPDOWN", "ACTIV", "NO_RETIRE", "EMPTY", "ISSUED"];
        let caches =
            ["L1", "L2", "L3", "CACHE", "FILL", "OFFCORE", "OCR", "REPLACEMENT", "IC_", "MAB"];
        if event == "UOPS_RETIRED.SLOTS" {
            Structure::Program
        } else if has(&["TLB"]) {
            Structure::Tlbs
        } else if has(&["MISP", "MISPREDICTED", "CLEAR", "RECOVERY"]) {
            Structure::BranchPredictors
        } else if has(&time) {
            Structure::Time
        } else if has(&caches) {
            Structure::Caches
        } else {
            Structure::Program
        }
    }

    /// Its name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Structure::Tlbs => "TLBs",
            Structure::BranchPredictors => "branch predictors",
            Structure::Time => "time",
            Structure::Caches => "caches",
            Structure::Program => "the program itself",
        }
    }

    /// The most events that one interrupt added to a run, of twenty programs at slices of 20,000
    /// and 80,000 cycles; none where it is not known. Of slots, six a cycle.
    fn most_of_one(self, event: &str) -> Option<f64> {
        match self {
            Structure::Tlbs => Some(3.0),
            Structure::BranchPredictors if event.contains("CYCLES") => None,
            Structure::BranchPredictors => Some(1.0),
            Structure::Time if event.contains("SLOTS") => Some(6.0 * 140.0),
            Structure::Time => Some(140.0),
            Structure::Caches if BEHIND_L2.iter().any(|word| event.contains(word)) => Some(3.0),
            Structure::Caches => Some(17.0),
            Structure::Program => event.contains("RETIRED").then_some(0.0),
        }
    }
}

/// The most events that the interrupts of a session of ring 3 are likely to have added; none where
/// that is not known.
pub(super) fn likely_added(event: &EventReading, stats: &SessionStats) -> Option<f64> {
    let name = event.native.as_deref().unwrap_or(&event.name);
    let of_one = Structure::of(name).most_of_one(name).filter(|_| event.mode == Mode::User)?;
    Some(of_one * (stats.pmis + stats.spurious_pmis) as f64)
}

/// The least part of an estimate of which it is told that interrupts may have added it.
const LEAST_TOLD: f64 = 0.005;

impl EventReport {
    /// What interrupts are likely to have added at most, as a part of the estimate up to 1; none if
    /// that is not worth telling.
    pub(crate) fn added_share(&self) -> Option<f64> {
        let estimate = self.estimate.filter(|estimate| *estimate > 0)?;
        let share = self.likely_added? / estimate as f64;
        (share >= LEAST_TOLD).then_some(share.min(1.0))
    }

    /// The number without interrupts, from one that was extrapolated from slices of two lengths.
    /// Where interrupts add nothing it is the estimate itself. Otherwise its interval is not
    /// narrower than the estimate's, as the slices are the same, and it reaches down to what is
    /// left of the estimate if interrupts have added all that is likely: long slices can have more
    /// of it than short ones.
    pub(super) fn without_interrupts(&self, extrapolated: Estimate) -> Estimate {
        let (Some(estimate), Some(added)) = (self.estimate, self.likely_added) else {
            return extrapolated.at_least(self.half_width_95.unwrap_or_default());
        };
        let (estimate, half_width) = (estimate as f64, self.half_width_95.unwrap_or_default());
        if added == 0.0 {
            return Estimate::of(estimate, half_width);
        }
        extrapolated.at_least(half_width).down_to(estimate - added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_abi::{Reading, Value};

    #[test]
    fn structures_are_found_by_name() {
        for (event, expected) in [
            ("DTLB_LOAD_MISSES.STLB_HIT", Structure::Tlbs),
            ("MEM_LOAD_RETIRED.L1_MISS", Structure::Caches),
            ("BR_MISP_RETIRED.COND", Structure::BranchPredictors),
            ("CYCLES_NO_RETIRE.EMPTY", Structure::Time),
            ("CYCLE_ACTIVITY.STALLS_L1D_MISS", Structure::Time),
            ("INST_RETIRED.ANY", Structure::Program),
            ("UOPS_RETIRED.SLOTS", Structure::Program),
        ] {
            assert_eq!(Structure::of(event), expected, "{event}");
        }
    }

    /// An estimate of 1,000 ± 50 events, to which interrupts are likely to have added these.
    fn estimated(likely_added: Option<f64>) -> EventReport {
        let value = Value::Estimated { estimate: 1_000, stderr: 25.0, half_width_95: 50.0 };
        let reading = Reading { value, counted: 0, counted_cycles: 1, total_cycles: 4, slices: 9 };
        EventReport { likely_added, ..EventReport::of("E", &reading, None) }
    }

    #[test]
    fn a_number_without_interrupts_is_not_better_known_than_the_estimate() {
        let of = |added, estimate, half_width| {
            let value = estimated(added).without_interrupts(Estimate::of(estimate, half_width));
            [value.estimate, value.half_width_95, value.low_95, value.high_95]
        };
        assert_eq!(of(None, 900.0, 80.0), [900.0, 80.0, 820.0, 980.0]);
        assert_eq!(of(None, 900.0, 20.0), [900.0, 50.0, 850.0, 950.0]);
        assert_eq!(of(Some(0.0), 900.0, 80.0), [1_000.0, 50.0, 950.0, 1_050.0]);
        assert_eq!(of(Some(300.0), 900.0, 80.0), [900.0, 80.0, 700.0, 980.0]);
        assert_eq!(of(Some(100.0), 900.0, 80.0), [900.0, 80.0, 820.0, 980.0]);
        assert_eq!(of(Some(5_000.0), 900.0, 80.0)[2], 0.0);
    }
}
