//! A session's side of adaptive shares. Uses floating point: never in the overflow path.

use alloc::vec::Vec;

use libm::sqrt;

use super::state::Session;
use crate::{estimate, hardware::for_each_counter};

impl Session {
    /// Computes the spreads of the next `groups` groups, if shares adapt and may change; after the
    /// last group, deals new shares. Uses floating point: never in the overflow path.
    pub fn adapt(&mut self, groups: usize) {
        let Some(mut adaptive) = self.adaptive.take() else { return };
        let rounds = self.order.rounds();
        if adaptive.is_due(rounds) {
            let next = adaptive.next_groups(groups);
            let spreads: Vec<f64> = next.map(|group| self.relative_spread(group)).collect();
            if let Some(shares) = adaptive.update(spreads, self.order.shares(), rounds) {
                self.order.deal(&shares);
            }
        }
        self.adaptive = Some(adaptive);
    }

    /// The spread of a group's slices, relative to the mean slice: the root of the sum of its
    /// events' squares. An event that was never counted adds 0: no number of slices would make its
    /// error small relative to 0.
    fn relative_spread(&self, group: usize) -> f64 {
        let used = self.plan.groups.get(group).map_or(0, |group| group.used);
        let mut squares = 0.0;
        for_each_counter(used, |counter| {
            let sample = self.sample(group as u16, counter as u8);
            squares += estimate::relative_spread(&sample).unwrap_or(0.0);
        });
        sqrt(squares)
    }
}
