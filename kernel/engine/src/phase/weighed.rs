//! The costs of an interval from the weights of its events, in fixed point. Equals
//! [`Model::evaluate`](super::cost::Model::evaluate) of its counts, except for rounding.

use Bottleneck::{Dl1Miss, Dl2Miss, DtlbMiss, ExpensiveInstructions, ResourceContention};
use tally_abi::phase::{Bottleneck, COSTS};

use super::{
    cost::{Cost, Vector},
    fixed::{BITS, MOST_BAR, SHARE_BITS, root, scaled},
};

/// Cost of the events of one kind: cycles per 1,000 instructions with [`BITS`] fraction bits, and
/// the sum of the squares of the bars, with twice as many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    pub(super) cost: u64,
    pub(super) square: u64,
}

/// Kinds of cost with [`Formula::Overlaps`](super::cost::Formula::Overlaps).
const OVERLAPS: [Bottleneck; 5] =
    [ResourceContention, ExpensiveInstructions, DtlbMiss, Dl1Miss, Dl2Miss];

/// An interval's costs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weighed {
    pub(super) vector: Vector,
    /// The sum of all costs, in cycles per 1,000 instructions with [`BITS`] fraction bits.
    pub(super) sum: u64,
}

impl Weighed {
    /// Computes the costs from the events' costs without overlap. `execution` is 1 / f, with
    /// [`SHARE_BITS`] fraction bits.
    pub(super) fn of(mut costs: [Weight; COSTS], execution: u64, cpi: u64) -> Weighed {
        let squared = (execution * execution) >> SHARE_BITS;
        let mut all = Weight::default();
        for kind in OVERLAPS {
            let weight = &mut costs[kind as usize];
            if weight.cost == 0 {
                continue;
            }
            // A cost does not grow here: 1 / f is at most 1.
            weight.cost = (weight.cost * execution) >> SHARE_BITS;
            weight.square = scaled(weight.square, squared, SHARE_BITS, MOST_SQUARE);
            all.cost += weight.cost;
            all.square += weight.square / 8;
        }
        // Execution events fill the queues: their cost is subtracted, not counted twice.
        let queue = &mut costs[Bottleneck::QueueFull as usize];
        if queue.cost > 0 {
            queue.cost = queue.cost.saturating_sub(all.cost);
            queue.square = (queue.square / 8 + all.square).min(MOST_SQUARE / 8) * 8;
        }
        let mut weighed = Weighed { vector: Vector { cpi, ..Vector::default() }, sum: 0 };
        for (cost, weight) in weighed.vector.costs.iter_mut().zip(&costs) {
            if weight.cost | weight.square == 0 {
                continue;
            }
            weighed.sum += weight.cost;
            let half = 1 << (BITS - 1);
            // A root has as many fraction bits as its square, plus BITS.
            *cost = Cost {
                // Rounded down as in the model: less than a cycle is no bottleneck.
                cycles: weight.cost >> BITS,
                half_width: (root(weight.square) + (half << BITS)) >> (2 * BITS),
            };
        }
        weighed
    }
}

/// Maximum of a sum of squared bars: [`MOST_BAR`] of eight events.
const MOST_SQUARE: u64 = 8 * ((MOST_BAR << BITS) * (MOST_BAR << BITS));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::cost::{Formula, formula};

    #[test]
    fn what_overlaps_is_what_the_formula_says() {
        for kind in Bottleneck::ALL {
            assert_eq!(OVERLAPS.contains(&kind), formula(kind) == Formula::Overlaps, "{kind:?}");
        }
    }
}
