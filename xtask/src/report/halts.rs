//! The halts of a run.

use std::fmt;

use serde::{Deserialize, Serialize};
use tally_abi::halt::{HaltTimer, Halts};

use crate::machine::Halted;

/// The machine's halts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HaltReport {
    /// The requested halts.
    #[serde(flatten)]
    pub halts: Halts,
    /// State of the scheduler's timer during halts.
    pub timer: HaltTimer,
    /// Number of halts of all CPUs.
    pub count: u64,
    /// Mean core cycles of a halt; `None` without a halt.
    pub mean_cycles: Option<f64>,
}

impl HaltReport {
    /// Makes the report from the kernel's message.
    pub fn of(halted: &Halted) -> HaltReport {
        let Halted { halts, timer, count, cycles } = *halted;
        let mean_cycles = (count > 0).then(|| cycles as f64 / count as f64);
        HaltReport { halts, timer, count, mean_cycles }
    }
}

impl fmt::Display for HaltReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "xtask: {} halts", self.count)?;
        self.mean_cycles.map_or(Ok(()), |mean| write!(f, " of {mean:.0} cycles on average"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_the_mean_of_the_halts() {
        let halts = Halts { length_cycles: 9, period_cycles: 5_000, footprint_bytes: 64 };
        let of = |count| {
            let halted = Halted { halts, timer: HaltTimer::Running, count, cycles: 21 };
            serde_json::to_value(HaltReport::of(&halted)).unwrap()
        };
        assert_eq!(of(2)["mean_cycles"], 10.5);
        assert_eq!(of(2)["length_cycles"], 9);
        assert_eq!(of(2)["timer"], "running");
        assert!(of(0)["mean_cycles"].is_null());
    }
}
