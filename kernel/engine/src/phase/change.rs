//! Finds the interval at which a program changed: a cumulative sum (Page, "Continuous Inspection
//! Schemes", Biometrika 41, 1954) of the cycles per instruction, which are exact, and of each cost.
//!
//! Each value has a mean of the intervals since the last change, and a mean deviation of all. What
//! a value deviates beyond one deviation is summed, above and below apart; the program changed
//! where a sum exceeds [`THRESHOLD`] deviations. One interval counts at most [`MOST`], so that a
//! single outlier is no change.

use tally_abi::phase::COSTS;

use super::cost::Vector;

/// Values: the costs and the cycles per instruction.
const VALUES: usize = COSTS + 1;
/// Deviations at which there is a change. Two intervals at [`MOST`] reach it.
const THRESHOLD: u64 = 6;
/// The most deviations of one interval.
const MOST: u64 = 4;
/// Deviations that are no sign of a change.
const SLACK: u64 = 1;
/// Bits after the point of means and deviations.
const BITS: u32 = 4;
/// A deviation is at least this part of the cycles per instruction: less is no phase of its own.
const LEAST_PART: u64 = 64;
/// And at least this part of its own mean: a cost varies more where it is larger.
const LEAST_PART_OF_MEAN: u64 = 20;
/// A mean deviation is over about 2 to this power intervals, a mean over at most as many.
const MEMORY: u32 = 4;

/// The sums of one value.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    mean: u64,
    deviation: u64,
    above: u64,
    below: u64,
}

impl Sums {
    /// Adds a value that is known to `half_width`, after `seen` others since the last change.
    /// `least` is the least deviation. Returns whether there was a change.
    fn add(&mut self, value: u64, half_width: u64, least: u64, seen: u32) -> bool {
        if seen <= 1 {
            // The first interval can be a mixture with the phase before: the second replaces it.
            (self.mean, self.above, self.below) = (value, 0, 0);
            return false;
        }
        let least = least.max(self.mean / LEAST_PART_OF_MEAN);
        let deviation = self.deviation.max(half_width / 2).max(least);
        let (up, down) = (value.saturating_sub(self.mean), self.mean.saturating_sub(value));
        let add =
            |sum: u64, by: u64| (sum + by.min(MOST * deviation)).saturating_sub(SLACK * deviation);
        (self.above, self.below) = (add(self.above, up), add(self.below, down));
        let off = (up + down).min(MOST * deviation);
        // The mean absolute deviation of a normal distribution is 0.8 standard deviations.
        let standard = off + off / 4;
        self.deviation = self.deviation + (standard >> MEMORY) - (self.deviation >> MEMORY);
        self.above.max(self.below) >= THRESHOLD * deviation
    }

    /// Moves the mean towards a value, of which an outlier counts as in the sums.
    fn follow(&mut self, value: u64, least: u64, seen: u32) {
        let most = MOST * self.deviation.max(least);
        let value = value.clamp(self.mean.saturating_sub(most), self.mean.saturating_add(most));
        let share = u64::from(seen.min(1 << MEMORY)) + 1;
        self.mean = self.mean - self.mean / share + value / share;
    }
}

/// Finds changes.
#[derive(Clone, Debug, Default)]
pub struct Detector {
    values: [Sums; VALUES],
    /// Intervals since the last change.
    seen: u32,
}

impl Detector {
    /// The next interval's vector. Returns whether the program has changed, in this interval or the
    /// few before it.
    pub fn observe(&mut self, vector: &Vector) -> bool {
        let scaled = |value: u64| value.min(u64::from(u32::MAX)) << BITS;
        let [cycles, ..] = &self.values;
        // Of the mean: one interval's own would change what its sums are compared with.
        let usual = if self.seen <= 1 { scaled(vector.cpi) } else { cycles.mean };
        let least = (usual / LEAST_PART).max(1 << BITS);
        let costs = vector.costs.iter().map(|cost| (scaled(cost.cycles), scaled(cost.half_width)));
        let all = [(scaled(vector.cpi), 0)].into_iter().chain(costs);
        let mut changed = false;
        for (sums, (value, half_width)) in self.values.iter_mut().zip(all.clone()) {
            changed |= sums.add(value, half_width, least, self.seen);
        }
        if changed {
            self.seen = 0;
        }
        for (sums, (value, _)) in self.values.iter_mut().zip(all) {
            if self.seen <= 1 {
                sums.add(value, 0, least, self.seen);
            } else {
                sums.follow(value, least, self.seen);
            }
        }
        self.seen = self.seen.saturating_add(1);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::Cost;

    fn vector(cpi: u64, cost: u64, half_width: u64) -> Vector {
        let mut vector = Vector { cpi, ..Vector::default() };
        vector.costs[8] = Cost { cycles: cost, half_width };
        vector
    }

    #[test]
    fn a_change_is_found_within_three_intervals_and_an_outlier_is_none() {
        let mut detector = Detector::default();
        let mut changes = alloc::vec::Vec::new();
        for index in 0..100_u64 {
            let noise = index * 7 % 11;
            let cpi = match index {
                30 => 3_000,
                60.. => 1_500,
                _ => 1_000,
            };
            if detector.observe(&vector(cpi + noise, 200, 20)) {
                changes.push(index);
            }
        }
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!((60..63).contains(&changes[0]), "{changes:?}");
    }

    #[test]
    fn a_cost_can_change_alone_and_its_bar_says_how_much_is_a_change() {
        let changes = |half_width| {
            let mut detector = Detector::default();
            (0..60)
                .filter(|index| {
                    let cost = if *index < 30 { 200 } else { 300 };
                    detector.observe(&vector(1_000, cost, half_width))
                })
                .count()
        };
        assert_eq!((changes(10), changes(400)), (1, 0));
    }
}
