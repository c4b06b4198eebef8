//! The true vectors of a session's intervals, from the series of the virtual PMU, and the
//! comparison with the intervals.

use tally_abi::phase::COSTS;
use tally_engine::phase::{
    Calibration, Cost, Counted, Estimate, MAX_TERMS, Model, Vector, classify::classes,
};

use super::{super::series::Series, PhaseInterval, PhaseReport};

impl Series {
    /// The true counts of consecutive intervals from the session's start, from a series by
    /// instructions; `None` if the series does not have an event.
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

/// Comparison of a session's intervals with the truth.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judged {
    /// Number of intervals.
    pub intervals: usize,
    /// Intervals whose class is sure.
    pub sure: usize,
    /// Sure intervals whose true vector has the same class.
    pub same: usize,
    /// Costs with a bar.
    pub bars: usize,
    /// Costs with a bar whose interval contains the truth.
    pub held: usize,
    /// Intervals whose largest cost is that of the true counts, by the same penalties.
    pub bottleneck: usize,
    /// Intervals to which the same classes and penalties on the host give another phase or another
    /// largest cost than the kernel's; must be 0.
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

    /// The costs by the factors of the intervals before, which then learn this one, as in the
    /// kernel.
    pub fn calibrate(&self, calibration: &mut Calibration) -> Vector {
        let vector = self.vector();
        let calibrated = calibration.apply(&vector);
        calibration.learn(&vector, self.cycles, self.model_cycles, self.instructions);
        calibrated
    }
}

impl PhaseReport {
    /// Returns whether there are too few intervals for phases: nothing changes from one to none.
    pub fn is_too_short(&self) -> bool {
        self.intervals.len() < 2
    }

    /// Compares the intervals with their true counts, which are in the order of the model's terms.
    /// The classes are assigned again on the host, and at each step the true vector is looked up in
    /// the same classes.
    pub fn judge(&self, model: &Model, truth: &[Counted]) -> Judged {
        let mut known = classes(self.classes, self.unit);
        let mut calibration = Calibration::default();
        let mut judged = Judged { intervals: self.intervals.len(), ..Judged::default() };
        for (interval, counted) in self.intervals.iter().zip(truth) {
            let (vector, of_truth) = (interval.vector(), model.vector(counted));
            let class = known.classify(&vector);
            let of_truth_largest = calibration.apply(&of_truth).dominant();
            let largest = interval.calibrate(&mut calibration).dominant();
            judged.replayed_otherwise += usize::from(
                (class.phase, class.sure, largest)
                    != (interval.phase, interval.sure, interval.bottleneck),
            );
            judged.bottleneck += usize::from(of_truth_largest == interval.bottleneck);
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
