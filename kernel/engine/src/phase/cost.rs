//! The cost of each kind of event: the model of paper 004, section V (Figure 3).
//!
//! With f = IPC + 1, events that stop fetch cost their number times a penalty; events during which
//! other instructions execute cost that divided by f. The cost of full queues is the number of
//! cycles for which they were full, minus the costs of the execution events, which fill them.

use Bottleneck::{
    DirectMisprediction, Dl1Miss, Dl2Miss, DtlbMiss, ExpensiveInstructions, Il1Miss, Il2Miss,
    IndirectMisprediction, ItlbMiss, QueueFull, ResourceContention,
};
use tally_abi::phase::{Bottleneck, COSTS};

use super::fixed::{MOST_BAR, MOST_COST};

/// Maximum number of events of a model: some costs are sums of several.
pub const MAX_TERMS: usize = 21;
/// A penalty of one cycle: penalties are in sixteenths.
pub const CYCLE: u32 = 16;

/// Formula of a cost from the number N of its events (Figure 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// N · P: fetch stops.
    Stops,
    /// N · P / f: other instructions execute meanwhile.
    Overlaps,
    /// N · P minus all costs of execution, at least 0.
    Remains,
}

/// The formula for costs of this kind; [`Bottleneck::None`] has no costs.
pub const fn formula(kind: Bottleneck) -> Formula {
    match kind {
        ItlbMiss
        | Il1Miss
        | Il2Miss
        | DirectMisprediction
        | IndirectMisprediction
        | Bottleneck::None => Formula::Stops,
        ResourceContention | ExpensiveInstructions | DtlbMiss | Dl1Miss | Dl2Miss => {
            Formula::Overlaps
        }
        QueueFull => Formula::Remains,
    }
}

/// A count of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Events.
    pub count: u64,
    /// Half the width of its 95 % interval, in events.
    pub half_width: u64,
}

/// Counts of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Core cycles, exactly.
    pub cycles: u64,
    /// Instructions, exactly.
    pub instructions: u64,
    /// The events, in the order of the model's terms.
    pub events: [Estimate; MAX_TERMS],
}

/// A processor's cost model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Instructions that it can dispatch in a cycle, at least 1.
    pub width: u32,
    /// Events: the kind of cost, and the penalty of one event in units of 1 / [`CYCLE`] of a cycle.
    pub terms: [Option<(Bottleneck, u32)>; MAX_TERMS],
}

/// A cost in cycles per 1,000 instructions, or in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Cycles.
    pub cycles: u64,
    /// Half the width of the 95 % interval.
    pub half_width: u64,
}

/// The costs of an interval, in the order of [`Bottleneck::ALL`]. Values are bounded, so that
/// sums of differences and of squares fit 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vector {
    /// Costs in cycles per 1,000 instructions.
    pub costs: [Cost; COSTS],
    /// Core cycles per 1,000 instructions, exactly.
    pub cpi: u64,
}

impl Vector {
    /// The largest cost.
    pub fn dominant(&self) -> Bottleneck {
        let costs = self.costs.iter().zip(0_u64..);
        // The index is in the bits below the cost, so that one comparison suffices.
        let largest = costs.fold(0, |most, (cost, place)| most.max(cost.cycles << 8 | place));
        if largest >> 8 == 0 {
            return Bottleneck::None;
        }
        Bottleneck::ALL.get(largest as usize & 0xff).copied().unwrap_or(Bottleneck::None)
    }

    /// Sum of the costs.
    pub fn total(&self) -> u64 {
        self.costs.iter().fold(0, |sum, cost| sum + cost.cycles)
    }

    /// Sum of the squares of the half widths.
    pub fn squared_bars(&self) -> u64 {
        self.costs.iter().fold(0, |sum, cost| sum + cost.half_width * cost.half_width)
    }
}

impl Model {
    /// The costs of an interval, in cycles (paper 004, Figure 3).
    pub fn cycles(&self, counted: &Counted) -> [Cost; COSTS] {
        let mut costs = [Cost::default(); COSTS];
        let mut squares = [0_u64; COSTS];
        for (term, event) in self.terms.iter().zip(&counted.events) {
            let Some((kind, penalty)) = *term else { continue };
            let (Some(cost), Some(square)) =
                (costs.get_mut(kind as usize), squares.get_mut(kind as usize))
            else {
                continue;
            };
            let priced = |count: u64| count.saturating_mul(penalty.into()) / u64::from(CYCLE);
            let bar = priced(event.half_width);
            cost.cycles = cost.cycles.saturating_add(priced(event.count));
            *square = square.saturating_add(bar.saturating_mul(bar));
        }
        // 1 / f = cycles / (instructions + cycles), for the sum of each kind.
        let whole = counted.instructions.saturating_add(counted.cycles);
        for kind in Bottleneck::ALL {
            let (cost, square) = (&mut costs[kind as usize], &mut squares[kind as usize]);
            if *square > 0 {
                cost.half_width = square.isqrt();
            }
            if formula(kind) == Formula::Overlaps {
                cost.cycles = ratio(cost.cycles, counted.cycles, whole);
                cost.half_width = ratio(cost.half_width, counted.cycles, whole);
                *square = cost.half_width.saturating_mul(cost.half_width);
            }
        }
        // Execution events fill the queues: their cost is subtracted, not counted twice.
        let (mut execution, mut square) = (0_u64, squares[QueueFull as usize]);
        for kind in Bottleneck::ALL.into_iter().filter(|kind| formula(*kind) == Formula::Overlaps) {
            execution = execution.saturating_add(costs[kind as usize].cycles);
            square = square.saturating_add(squares[kind as usize]);
        }
        let queue = &mut costs[QueueFull as usize];
        if queue.cycles > 0 {
            queue.cycles = queue.cycles.saturating_sub(execution);
            queue.half_width = square.isqrt();
        }
        costs
    }

    /// The costs of an interval in cycles per 1,000 instructions (section VI).
    pub fn vector(&self, counted: &Counted) -> Vector {
        self.evaluate(counted).0
    }

    /// The model's time of an interval, T_model, in cycles: the time of an ideal pipeline plus all
    /// costs (section V, formula 1).
    pub fn time(&self, counted: &Counted) -> u64 {
        self.evaluate(counted).1
    }

    /// Vector and time from one computation of the costs.
    pub fn evaluate(&self, counted: &Counted) -> (Vector, u64) {
        let costs = self.cycles(counted);
        let ideal = counted.instructions / u64::from(self.width.max(1));
        let time = costs.iter().fold(ideal, |sum, cost| sum.saturating_add(cost.cycles));
        let per_1000 = |cycles| match cycles {
            0 => 0,
            cycles => ratio(cycles, 1000, counted.instructions),
        };
        let costs = costs.map(|cost| Cost {
            cycles: per_1000(cost.cycles).min(MOST_COST),
            half_width: per_1000(cost.half_width).min(MOST_BAR),
        });
        (Vector { costs, cpi: per_1000(counted.cycles).min(MOST_COST) }, time)
    }

    /// Returns whether an event counts towards this cost.
    pub fn has(&self, kind: Bottleneck) -> bool {
        self.terms.iter().flatten().any(|(term, _)| *term == kind)
    }
}

/// `value` · `numerator` / `denominator`; 0 if the denominator is 0.
fn ratio(value: u64, numerator: u64, denominator: u64) -> u64 {
    match value.checked_mul(numerator) {
        Some(product) => product.checked_div(denominator).unwrap_or_default(),
        None => {
            let product = u128::from(value) * u128::from(numerator);
            let quotient = product.checked_div(denominator.into()).unwrap_or_default();
            u64::try_from(quotient).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model with one event for each of these costs, with this penalty in cycles.
    fn model<const N: usize>(terms: [(Bottleneck, u32); N]) -> Model {
        let mut model = Model { width: 4, ..Model::default() };
        for (slot, (kind, penalty)) in model.terms.iter_mut().zip(terms) {
            *slot = Some((kind, penalty * CYCLE));
        }
        model
    }

    fn counted<const N: usize>(events: [(u64, u64); N]) -> Counted {
        let mut counted =
            Counted { cycles: 1_000_000, instructions: 1_000_000, ..Counted::default() };
        for (slot, (count, half_width)) in counted.events.iter_mut().zip(events) {
            *slot = Estimate { count, half_width };
        }
        counted
    }

    #[test]
    fn costs_are_those_of_the_papers_figure_3() {
        // IPC 1: f is 2.
        let model = model([(ItlbMiss, 30), (Dl2Miss, 120), (QueueFull, 1), (Dl2Miss, 60)]);
        let counted = counted([(1_000, 10), (2_000, 30), (500_000, 0), (1_000, 40)]);
        let costs = model.cycles(&counted);
        assert_eq!(costs[ItlbMiss as usize], Cost { cycles: 30_000, half_width: 300 });
        // 2,000 · 120 / 2 + 1,000 · 60 / 2; bars of 1,800 and 1,200 by their squares.
        assert_eq!(costs[Dl2Miss as usize], Cost { cycles: 150_000, half_width: 2_163 });
        assert_eq!(costs[QueueFull as usize], Cost { cycles: 350_000, half_width: 2_163 });
        assert_eq!(model.time(&counted), 250_000 + 30_000 + 150_000 + 350_000);
        let vector = model.vector(&counted);
        assert_eq!(vector.costs[Dl2Miss as usize].cycles, 150);
        assert_eq!((vector.cpi, vector.dominant()), (1000, QueueFull));
        assert!(model.has(QueueFull) && !model.has(Dl1Miss));
    }

    #[test]
    fn an_interval_without_anything_costs_nothing() {
        let model = model([(Il1Miss, 14), (QueueFull, 1)]);
        assert_eq!(model.vector(&Counted::default()), Vector::default());
        assert_eq!(model.vector(&Counted::default()).dominant(), Bottleneck::None);
        // The costs of execution alone leave 0 for a queue that was never full.
        let most = counted([(u64::MAX, u64::MAX), (0, 0)]);
        assert_eq!(model.cycles(&most)[QueueFull as usize], Cost::default());
    }
}
