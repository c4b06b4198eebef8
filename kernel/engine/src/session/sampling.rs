//! What a session keeps of its samples: where they fell, and how far apart they have to be.

use alloc::boxed::Box;

use tally_abi::SessionStats;

use crate::{budget::Budget, histogram::Histogram};

/// Samples from one look at their cost to the next.
const LOOK: u64 = 16;

/// A session's samples.
#[derive(Debug)]
pub(super) struct Sampling {
    pub(super) histogram: Histogram,
    /// The shortest period that was asked for.
    period: u64,
    /// Periods are longer than was asked for where the engine would take more than its budget.
    budget: Budget,
    taken: u64,
}

impl Sampling {
    /// None so far, of an event with this period.
    pub(super) fn new(budget_ppm: u32, period: u64) -> Box<Sampling> {
        let budget = Budget::new(budget_ppm, period);
        Box::new(Sampling { histogram: Histogram::default(), period, budget, taken: 0 })
    }

    /// Another event has this period.
    pub(super) fn also(&mut self, budget_ppm: u32, period: u64) {
        if period < self.period {
            self.period = period;
            self.budget = Budget::new(budget_ppm, period);
        }
    }

    /// How many times as long as was asked for periods are.
    pub(super) fn period_multiplier(&self) -> u32 {
        self.budget.slice_multiplier()
    }

    /// Takes in a sample. In the overflow path.
    pub(super) fn add(&mut self, address: u64) {
        self.histogram.add(address);
        self.taken += 1;
    }

    /// Looks at what samples cost, if it is time. In the overflow path: a few divisions.
    pub(super) fn update(&mut self, stats: &SessionStats) {
        if self.taken >= LOOK {
            self.taken = 0;
            self.budget.update(stats.engine_ticks, stats.session_ticks);
        }
    }
}
