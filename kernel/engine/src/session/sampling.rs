//! A session's samples: where they fell, and the shortest period that the budget allows.

use alloc::boxed::Box;

use tally_abi::{SessionStats, session::MAX_SLICE};

use crate::{budget::Budget, histogram::Histogram};

/// Samples from one update of the period multiplier to the next.
const SAMPLES: u64 = 16;

/// A session's samples.
#[derive(Debug)]
pub(super) struct Sampling {
    pub(super) histogram: Histogram,
    /// The shortest period asked for.
    period: u64,
    /// Lengthens periods where samples would take more than the budget.
    budget: Budget,
    taken: u64,
}

impl Sampling {
    /// The samples of an event with this period; none so far.
    pub(super) fn new(budget_ppm: u32, period: u64) -> Box<Sampling> {
        let budget = Budget::new(budget_ppm, period, 1, MAX_SLICE);
        Box::new(Sampling { histogram: Histogram::default(), period, budget, taken: 0 })
    }

    /// Samples another event too, with this period.
    pub(super) fn also(&mut self, budget_ppm: u32, period: u64) {
        if period < self.period {
            self.period = period;
            self.budget = Budget::new(budget_ppm, period, 1, MAX_SLICE);
        }
    }

    /// The factor by which periods are longer than asked for.
    pub(super) fn period_multiplier(&self) -> u32 {
        self.budget.slice_multiplier()
    }

    /// Adds a sample. In the overflow path.
    pub(super) fn add(&mut self, address: u64) {
        self.histogram.add(address);
        self.taken += 1;
    }

    /// Updates the period multiplier, each few samples. In the overflow path: a few divisions.
    pub(super) fn update(&mut self, stats: &SessionStats) {
        if self.taken >= SAMPLES {
            self.taken = 0;
            self.budget.update(stats.engine_ticks, stats.session_ticks);
        }
    }
}
