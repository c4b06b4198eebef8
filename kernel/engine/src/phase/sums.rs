//! The sums of an interval's slices, and what follows from them: each event from the rate per cycle
//! in the slices of its group (ratio estimator, Särndal, Swensson and Wretman 1992, section 5.6),
//! as
//! `cargo xtask run --intervals` estimates on the host.

use super::cost::{Counted, Estimate, MAX_TERMS, ratio};
use crate::{Counts, Pinned};

/// Slices of each group that an interval has at least: fewer have no useful error.
pub(super) const LEAST_SLICES: u32 = 3;

/// The slices of one group.
#[derive(Clone, Copy, Debug, Default)]
struct GroupSums {
    slices: u32,
    /// Σ x, with x the cycles of a slice.
    cycles: u64,
    /// Σ x².
    squares: u128,
}

/// The slices of one event.
#[derive(Clone, Copy, Debug, Default)]
struct EventSums {
    /// Σ y.
    events: u64,
    /// Σ y².
    squares: u128,
    /// Σ x·y.
    products: u128,
}

/// An event of the model: where it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The group, by its number in the plan.
    pub group: u16,
    /// Its general counter.
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

/// The events' places, and the groups that have any.
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

    /// Returns whether each group has slices enough.
    pub(super) fn is_complete(&self, places: &Places) -> bool {
        self.groups.iter().take(places.number).all(|group| group.slices >= LEAST_SLICES)
    }

    /// The interval's counts.
    pub(super) fn counted(&self, places: &Places) -> Counted {
        let mut counted =
            Counted { cycles: self.cycles, instructions: self.instructions, ..Counted::default() };
        let mut scales = [0; MAX_TERMS];
        for (scale, group) in scales.iter_mut().zip(&self.groups).take(places.number) {
            *scale = group.scale(self.cycles);
        }
        let events = counted.events.iter_mut().zip(places.events.iter().zip(&self.events));
        for (estimate, (place, sums)) in events {
            let Some((index, _)) = *place else { continue };
            let (Some(group), Some(scale)) =
                (self.groups.get(usize::from(index)), scales.get(usize::from(index)))
            else {
                continue;
            };
            let deviation = sums.residuals(group).isqrt();
            *estimate = Estimate {
                count: ratio(sums.events, self.cycles, group.cycles),
                half_width: ratio(deviation, *scale, 1 << SCALE_BITS),
            };
        }
        counted
    }
}

fn square(value: u64) -> u128 {
    u128::from(value) * u128::from(value)
}

const SCALE_BITS: u32 = 8;

/// Sums up to this have squares whose products with rates fit 128 bits.
const MOST_BITS: u32 = 28;

impl GroupSums {
    /// The half width for a root of [`EventSums::residuals`] of 1, in an interval of `all` cycles:
    /// Student's t, the root of n / (n − 1), the finite-population correction and the expansion.
    fn scale(&self, all: u64) -> u64 {
        if self.slices < 2 || self.cycles == 0 {
            return u64::MAX >> 32;
        }
        let shift = (u64::BITS - all.leading_zeros()).saturating_sub(32);
        let (all, own) = (all >> shift, (self.cycles >> shift).max(1));
        let expansion = ((all * all.saturating_sub(own)).isqrt() << SCALE_BITS) / own;
        let slices = u64::from(self.slices);
        let spread = ((slices << 16) / (slices - 1)).isqrt();
        (((expansion * spread) >> 8) * student_t_95(self.slices - 1)) >> 4
    }
}

impl EventSums {
    /// Σ (y − r·x)² with r = Σ y / Σ x.
    fn residuals(&self, group: &GroupSums) -> u64 {
        let most = self.events.max(group.cycles);
        let shift = (u64::BITS - most.leading_zeros()).saturating_sub(MOST_BITS);
        let cycles = group.cycles >> shift;
        if cycles == 0 {
            return 0;
        }
        // With 32 bits after the point.
        let rate = u128::from(((self.events >> shift) << 32) / cycles);
        let down = |sum: u128| sum >> (2 * shift);
        let (squares, products) = (down(self.squares) << 64, down(self.products) << 32);
        let of_rate = rate.saturating_mul(rate).saturating_mul(down(group.squares));
        let twice = rate.saturating_mul(products).saturating_mul(2);
        let residuals = squares.saturating_add(of_rate).saturating_sub(twice) >> 64;
        u64::try_from(residuals << (2 * shift)).unwrap_or(u64::MAX)
    }
}

/// The 97.5 % point of Student's t distribution, in sixteenths, rounded up.
fn student_t_95(freedom: u32) -> u64 {
    const SMALL: [u8; 16] = [204, 69, 51, 45, 42, 40, 38, 37, 37, 36, 36, 35, 35, 35, 35, 34];
    let index = freedom.saturating_sub(1) as usize;
    let large = match freedom {
        ..=30 => 34,
        31..=60 => 33,
        _ => 32,
    };
    SMALL.get(index).copied().map_or(large, u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate;

    #[test]
    fn quantiles_are_rounded_up() {
        for freedom in 1..200 {
            let exact = estimate::student_t_95(f64::from(freedom)) * 16.0;
            let rounded = student_t_95(freedom) as f64;
            assert!((exact - 0.1..exact + 1.5).contains(&rounded), "{freedom}: {exact} {rounded}");
        }
    }

    #[test]
    fn an_interval_is_estimated_as_on_the_host() {
        let mut places = [None; MAX_TERMS];
        places[0] = Some(Place { group: 7, counter: 2 });
        places[3] = Some(Place { group: 5, counter: 0 });
        let places = Places::new(&places);
        let mut sums = Sums::default();
        let (mut own, mut all) = (std::vec::Vec::new(), 0.0);
        for slice in 0..40_u64 {
            let mut counts = Counts::default();
            counts[Pinned::Cycles] = 200_000 + slice * 131 % 977;
            counts[Pinned::Instructions] = 300_000;
            counts.general[2] = 1_000 + slice * 37 % 101;
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
        let counted = sums.counted(&places);
        let cycles: f64 = own.iter().map(|(x, _)| x).sum();
        let rate = own.iter().map(|(_, y)| y).sum::<f64>() / cycles;
        let squares: f64 = own.iter().map(|(x, y)| (y - rate * x).powi(2)).sum();
        let n = own.len() as f64;
        let variance = squares * n / (n - 1.0) * (1.0 - cycles / all);
        let bar = estimate::student_t_95(n - 1.0) * variance.sqrt() * all / cycles;
        let got = counted.events[0];
        assert!((got.count as f64 - rate * all).abs() <= 1.0, "{got:?}");
        assert!((got.half_width as f64 / bar - 1.0).abs() < 0.03, "{got:?}, not {bar}");
        assert_eq!((counted.events[1], counted.events[3].count), (Estimate::default(), 280));
        assert_eq!(counted.instructions, 40 * 300_000);
    }
}
