//! The sums of an interval's slices, and estimates from them: each event by the rate per cycle in
//! the slices of its group (ratio estimator, Särndal, Swensson and Wretman 1992, section 5.6), as
//! `cargo xtask run --intervals` estimates on the host.

use tally_abi::phase::COSTS;

use super::{
    cost::{CYCLE, MAX_TERMS, Model},
    fixed::{BITS, MOST_BAR, MOST_COST, SHARE_BITS, root, scaled},
    weighed::{Weighed, Weight},
};
use crate::{Counts, Pinned};

/// Minimum slices of each group in an interval: fewer give no useful error.
pub(super) const LEAST_SLICES: u32 = 3;

/// Sums over the slices of one group.
#[derive(Clone, Copy, Debug, Default)]
struct GroupSums {
    slices: u32,
    /// Σ x, with x the cycles of a slice.
    cycles: u64,
    /// Σ x².
    squares: u128,
    /// Fixed-point scale from events of this group to estimated events of the interval; `spread` is
    /// the same for the standard deviation.
    weight: u64,
    spread: u64,
    /// 1 / Σ x, with [`RECIPROCAL_BITS`] fraction bits.
    reciprocal: u64,
}

/// Sums over the slices of one event.
#[derive(Clone, Copy, Debug, Default)]
struct EventSums {
    /// Σ y.
    events: u64,
    /// Σ y².
    squares: u128,
    /// Σ x·y.
    products: u128,
}

/// The group and counter that count an event of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The group, by its number in the plan.
    pub group: u16,
    /// The general counter.
    pub counter: u8,
}

/// The sums of one interval.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) cycles: u64,
    pub(super) instructions: u64,
    groups: [GroupSums; MAX_TERMS],
    events: [EventSums; MAX_TERMS],
}

/// The events' places, and the groups that count events.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// By event: the index of its group in `groups`, and its counter.
    events: [Option<(u8, u8)>; MAX_TERMS],
    groups: [u16; MAX_TERMS],
    number: usize,
}

impl Places {
    pub(super) fn new(places: &[Option<Place>; MAX_TERMS]) -> Places {
        let mut all = Places { events: [None; MAX_TERMS], groups: [0; MAX_TERMS], number: 0 };
        for (event, place) in places.iter().enumerate() {
            let Some(place) = place else { continue };
            let index = all.index(place.group).unwrap_or_else(|| {
                all.groups[all.number] = place.group;
                all.number += 1;
                all.number - 1
            });
            all.events[event] = Some((index as u8, place.counter));
        }
        all
    }

    fn index(&self, group: u16) -> Option<usize> {
        self.groups.iter().take(self.number).position(|known| *known == group)
    }
}

impl Sums {
    /// Adds a slice of a group.
    pub(super) fn add(&mut self, places: &Places, group: u16, counts: &Counts) {
        let cycles = counts[Pinned::Cycles];
        self.cycles += cycles;
        self.instructions += counts[Pinned::Instructions];
        let Some(index) = places.index(group) else { return };
        let Some(sums) = self.groups.get_mut(index) else { return };
        sums.slices += 1;
        sums.cycles += cycles;
        sums.squares += square(cycles);
        for (place, sums) in places.events.iter().zip(&mut self.events) {
            let Some((_, counter)) = place.filter(|(of, _)| usize::from(*of) == index) else {
                continue;
            };
            let events = counts.general.get(usize::from(counter)).copied().unwrap_or_default();
            sums.events += events;
            sums.squares += square(events);
            sums.products += u128::from(events) * u128::from(cycles);
        }
    }

    /// Returns whether each group has enough slices.
    pub(super) fn is_complete(&self, places: &Places) -> bool {
        self.groups.iter().take(places.number).all(|group| group.slices >= LEAST_SLICES)
    }

    /// The interval's costs by the model, whose terms are in the order of the places.
    // A function of its own: `bench switch` tells by its call that an interval was evaluated.
    #[inline(never)]
    pub(super) fn costs(&mut self, places: &Places, model: &Model) -> Weighed {
        let Some(per_1000) = (1000_u64 << PER_1000_BITS).checked_div(self.instructions) else {
            return Weighed::default();
        };
        // Divisors and shifted values must have at most 43 bits.
        let shift = (u64::BITS - self.cycles.leading_zeros()).saturating_sub(43);
        let all = self.cycles >> shift;
        for group in self.groups.iter_mut().take(places.number) {
            group.weigh(all, shift, per_1000);
        }
        let mut costs = [Weight::default(); COSTS];
        let terms = model.terms.iter().zip(&places.events).zip(&self.events);
        for ((term, place), sums) in terms {
            let (Some((kind, penalty)), Some((index, _)), 1..) = (*term, *place, sums.events)
            else {
                continue;
            };
            let group = self.groups.get(usize::from(index));
            let (Some(cost), Some(group)) = (costs.get_mut(kind as usize), group) else { continue };
            let priced = |value: u64| value.saturating_mul(penalty.into()).min(MOST_PRICED);
            let bits = WEIGHT_BITS + CYCLE.trailing_zeros();
            cost.cost += scaled(priced(sums.events), group.weight, bits - BITS, MOST_COST << BITS);
            let deviation = root(sums.residuals(group));
            let bar = scaled(priced(deviation), group.spread, bits, MOST_BAR << BITS);
            cost.square += bar * bar;
        }
        let whole = self.cycles.saturating_add(self.instructions) >> shift;
        let execution = ((all << SHARE_BITS).checked_div(whole)).unwrap_or_default();
        let cpi = scaled(self.cycles, per_1000, PER_1000_BITS, MOST_COST);
        Weighed::of(costs, execution, cpi)
    }
}

fn square(value: u64) -> u128 {
    u128::from(value) * u128::from(value)
}

/// Fraction bits of 1,000 / instructions.
const PER_1000_BITS: u32 = 53;
/// Fraction bits of a group's weight.
const WEIGHT_BITS: u32 = 48;
/// Maximum of a weight and of its multiplicand: together less than 2^107, of which at least 44 bits
/// are dropped.
const MOST_WEIGHT: u64 = 1 << 51;
const MOST_PRICED: u64 = 1 << 56;

impl GroupSums {
    /// Computes the weights of an event of the group and of its deviation, per 1,000 instructions
    /// of an interval of `all` cycles, of which `shift` bits were dropped.
    fn weigh(&mut self, all: u64, shift: u32, per_1000: u64) {
        let own = (self.cycles >> shift).clamp(1, all.max(1));
        let expansion = (all << SHARE_BITS) / own;
        let bits = SHARE_BITS + PER_1000_BITS - WEIGHT_BITS;
        let weight = (u128::from(expansion) * u128::from(per_1000)) >> bits;
        self.weight = u64::try_from(weight).unwrap_or(u64::MAX).min(MOST_WEIGHT);
        // Student's t, the root of n / (n - 1) and the finite-population correction.
        let rest = root(((all - own.min(all)) << SHARE_BITS) / all.max(1));
        let spread = (u64::from(spread(self.slices)) * rest) >> (SHARE_BITS / 2);
        self.spread = scaled(self.weight, spread, 2 * BITS, MOST_WEIGHT);
        self.reciprocal = (1 << RECIPROCAL_BITS) / self.cycles.max(1);
    }
}

impl EventSums {
    /// Σ (y − r·x)² with r = Σ y / Σ x.
    #[inline]
    fn residuals(&self, group: &GroupSums) -> u64 {
        let high = (self.squares | self.products | group.squares) >> u64::BITS;
        if high == 0 && self.events >> 32 == 0 {
            // The group's reciprocal is known, so a product replaces a division.
            let rate = scaled(self.events, group.reciprocal, RECIPROCAL_BITS - 32, u64::MAX);
            let sums = [self.squares, self.products, group.squares];
            return residuals(sums.map(|sum| sum as u64), rate);
        }
        self.long_residuals(group)
    }

    /// [`Self::residuals`] of longer sums: all are shifted down first.
    #[cold]
    fn long_residuals(&self, group: &GroupSums) -> u64 {
        let most = self.squares | self.products | group.squares;
        let shift = (u128::BITS - most.leading_zeros()).saturating_sub(u64::BITS - 2);
        let rate = (u128::from(self.events) << 32) / u128::from(group.cycles.max(1));
        let sums = [self.squares, self.products, group.squares];
        let residuals = residuals(
            sums.map(|sum| (sum >> shift) as u64),
            u64::try_from(rate).unwrap_or(u64::MAX),
        );
        u64::try_from(u128::from(residuals) << shift).unwrap_or(u64::MAX)
    }
}

/// Fraction bits of 1 / Σ x.
const RECIPROCAL_BITS: u32 = 63;

/// Bound of the negative value that roundings make of a residual of 0.
const ROUNDED: u64 = 1 << 40;

/// Σ y² − 2·r·Σ x·y + r²·Σ x², with 32 fraction bits of the rate r.
#[inline]
fn residuals([squares, products, cycles]: [u64; 3], rate: u64) -> u64 {
    let by_rate = |value: u64, bits: u32| ((u128::from(value) * u128::from(rate)) >> bits) as u64;
    // Computed modulo 2^64; the residuals are smaller.
    let residuals =
        squares.wrapping_add(by_rate(by_rate(cycles, 32), 32)).wrapping_sub(by_rate(products, 31));
    if residuals > u64::MAX - ROUNDED { 0 } else { residuals }
}

/// t · √(n / (n − 1)) for n slices, with [`BITS`] fraction bits.
fn spread(slices: u32) -> u16 {
    SPREADS.get(slices as usize).copied().unwrap_or(512)
}

/// Values of [`spread`] by slices; fewer than two slices have no known spread.
const SPREADS: [u16; 65] = {
    let mut spreads = [u16::MAX; 65];
    let mut slices = 2;
    while slices < spreads.len() {
        let slices_u64 = slices as u64;
        let spread = ((slices_u64 << 24) / (slices_u64 - 1)).isqrt();
        spreads[slices] = ((student_t_95(slices as u32 - 1) * spread) >> 8) as u16;
        slices += 1;
    }
    spreads
};

/// The 97.5 % point of Student's t distribution, in sixteenths, rounded up.
const fn student_t_95(freedom: u32) -> u64 {
    const SMALL: [u8; 16] = [204, 69, 51, 45, 42, 40, 38, 37, 37, 36, 36, 35, 35, 35, 35, 34];
    match freedom {
        ..=16 => SMALL[freedom.saturating_sub(1) as usize] as u64,
        17..=30 => 34,
        31..=60 => 33,
        _ => 32,
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use tally_abi::phase::Bottleneck;

    use super::*;
    use crate::{estimate, phase::Vector};

    #[test]
    fn quantiles_are_rounded_up() {
        for freedom in 1..200 {
            let exact = estimate::student_t_95(f64::from(freedom)) * 16.0;
            let rounded = student_t_95(freedom) as f64;
            assert!((exact - 0.1..exact + 1.5).contains(&rounded), "{freedom}: {exact} {rounded}");
        }
    }

    /// The costs of `slices` slices of four groups in fixed point and in floating point: an event
    /// of group 7 costs `penalty` cycles.
    fn both(slices: u64, cycles: u64, events: u64, penalty: u32) -> (Weighed, [f64; 2]) {
        let mut places = [None; MAX_TERMS];
        places[0] = Some(Place { group: 7, counter: 2 });
        places[3] = Some(Place { group: 5, counter: 0 });
        let places = Places::new(&places);
        let mut sums = Sums::default();
        let (mut own, mut all) = (std::vec::Vec::new(), 0.0);
        for slice in 0..slices {
            let mut counts = Counts::default();
            counts[Pinned::Cycles] = cycles + slice * 131 % 977;
            counts[Pinned::Instructions] = cycles + cycles / 2;
            counts.general[2] = events + slice * 37 % (1 + events / 10);
            counts.general[0] = 7;
            let group = [5, 6, 7, 8][slice as usize % 4];
            sums.add(&places, group, &counts);
            let cycles = counts[Pinned::Cycles] as f64;
            all += cycles;
            if group == 7 {
                own.push((cycles, counts.general[2] as f64));
            }
        }
        assert!(sums.is_complete(&places));
        let mut model = Model { width: 5, ..Model::default() };
        model.terms[0] = Some((Bottleneck::DirectMisprediction, penalty * CYCLE));
        model.terms[3] = Some((Bottleneck::Dl1Miss, CYCLE));
        let weighed = sums.costs(&places, &model);
        let cycles: f64 = own.iter().map(|(x, _)| x).sum();
        let rate = own.iter().map(|(_, y)| y).sum::<f64>() / cycles;
        let squares: f64 = own.iter().map(|(x, y)| (y - rate * x).powi(2)).sum();
        let n = own.len() as f64;
        let variance = squares * n / (n - 1.0) * (1.0 - cycles / all);
        let bar = estimate::student_t_95(n - 1.0) * variance.sqrt() * all / cycles;
        let per_1000 = f64::from(penalty) * 1000.0 / sums.instructions as f64;
        (weighed, [rate * all * per_1000, bar * per_1000])
    }

    #[test]
    fn an_interval_is_weighed_as_on_the_host() {
        // The shortest, the usual and the longest slices; few and many events.
        for (slices, cycles, events) in [
            (12, 5_000, 400),
            (40, 200_000, 1_000),
            (200, 20_000, 12_000),
            (4_000, 1 << 34, 1 << 31),
            (40, 1 << 40, 1 << 39),
        ] {
            let (weighed, [cost, bar]) = both(slices, cycles, events, 17);
            let got = weighed.vector.costs[Bottleneck::DirectMisprediction as usize];
            let what = format!("{slices} of {cycles}, {events}: {got:?}, not {cost} ± {bar}");
            assert!((got.cycles as f64 - cost).abs() <= 1.1 + cost / 2e4, "{what}");
            assert!((got.half_width as f64 - bar).abs() <= 0.6 + bar * 0.04, "{what}");
            assert!((666..=720).contains(&weighed.vector.cpi), "{what}");
        }
        let without = Sums::default().costs(&Places::new(&[None; MAX_TERMS]), &Model::default());
        assert_eq!(without.vector, Vector::default());
    }
}
