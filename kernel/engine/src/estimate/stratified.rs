//! The estimate by strata of IPC (Cochran, *Sampling Techniques*, 3rd edition, sections 5A.9 and
//! 6.10: stratification after the selection, separate ratio estimates).
//!
//! For each stratum the cycles X of all slices are known, and the part Σx that passed while the
//! event was counted: its events are X·Σy/Σx. Adjacent strata are joined until the group has
//! [`LEAST`] slices in each; the joining does not depend on the event. The squared error is that of
//! random slices in each stratum.
//!
//! Strata ignore the order of the slices. If a program changes slowly, the estimate of [`super`] is
//! better, because its errors even out over a block of rounds: the smaller half width decides.

use libm::sqrt;

use super::{
    sample::Sample,
    spread::{LARGE, student_t_95},
    tails::{UNMET, UNSEEN, tail},
};
use crate::{
    moments::{Base, PEAKS, Peak},
    strata::{self, STRATA, Strata},
};

/// Minimum slices of the group in each joined stratum: fewer give no useful error.
const LEAST: u64 = 12;
/// Minimum slices of the group, slices with an event, and degrees of freedom. Rarer events, and
/// events concentrated in a few slices, are estimated better by batches and tails.
const LEAST_SLICES: u64 = 64;
/// See [`LEAST_SLICES`].
const LEAST_MET: u64 = 16;
/// See [`LEAST_SLICES`].
const LEAST_DEGREES: f64 = 8.0;
/// Distance in strata from a slice to the group's nearest slice beyond which it is unlike all
/// counted ones: a quarter of an octave.
const FURTHEST: usize = 4;

/// A total by strata.
pub(super) struct Stratified {
    pub(super) estimate: f64,
    pub(super) variance: f64,
    /// Half the width of the 95 % interval.
    pub(super) half_width_95: f64,
    /// Student's t of the interval.
    pub(super) t: f64,
}

/// Adjacent strata: the cycles of all slices, the sums of the group's slices, those of the event.
#[derive(Clone, Copy, Default)]
struct Joined {
    all: f64,
    slices: f64,
    cycles: f64,
    squared_cycles: f64,
    events: f64,
    squares: f64,
    products: f64,
}

impl Joined {
    fn of((all, slices, events): (u64, strata::Slices, strata::Events)) -> Joined {
        Joined {
            all: all as f64,
            slices: slices.number as f64,
            cycles: slices.cycles as f64,
            squared_cycles: slices.squares as f64,
            events: events.events as f64,
            squares: events.squares as f64,
            products: events.products as f64,
        }
    }

    fn join(&mut self, other: Joined) {
        self.all += other.all;
        self.slices += other.slices;
        self.cycles += other.cycles;
        self.squared_cycles += other.squared_cycles;
        self.events += other.events;
        self.squares += other.squares;
        self.products += other.products;
    }

    fn rate(&self) -> f64 {
        if self.cycles > 0.0 { self.events / self.cycles } else { 0.0 }
    }

    /// Weight of a squared residual of one slice in the squared error of the total.
    fn weight(&self) -> f64 {
        let scale = self.all / self.cycles.max(1.0);
        let uncounted = (1.0 - 1.0 / scale.max(1.0)).max(0.0);
        scale * scale * uncounted * self.slices / (self.slices - 1.0).max(1.0)
    }

    fn residuals(&self) -> f64 {
        let rate = self.rate();
        (self.squares - 2.0 * rate * self.products + rate * rate * self.squared_cycles).max(0.0)
    }
}

/// All strata, with the joined stratum of each.
struct Partition {
    joined: [Joined; STRATA],
    number: usize,
    /// Index of the joined stratum, by stratum.
    of: [usize; STRATA],
}

impl Partition {
    fn of(sums: impl Iterator<Item = (u64, strata::Slices, strata::Events)>) -> Partition {
        let joined = [Joined::default(); STRATA];
        let mut all = Partition { joined, number: 0, of: [0; STRATA] };
        let mut pending = Joined::default();
        for (place, sums) in all.of.iter_mut().zip(sums) {
            *place = all.number;
            pending.join(Joined::of(sums));
            if pending.slices >= LEAST as f64 {
                all.joined[all.number] = core::mem::take(&mut pending);
                all.number += 1;
            }
        }
        // The strata after the last complete one are joined to it.
        let last = all.number.saturating_sub(1);
        all.joined[last].join(pending);
        all.of.iter_mut().for_each(|place| *place = (*place).min(last));
        all.number = last + 1;
        all
    }

    fn strata(&self) -> impl Iterator<Item = &Joined> {
        self.joined.iter().take(self.number)
    }

    /// The variance of a slice of the group within its stratum.
    fn slice_variance(&self) -> f64 {
        let sum = |value: fn(&Joined) -> f64| self.strata().map(value).sum::<f64>();
        sum(Joined::residuals) / sum(|stratum| stratum.slices).max(1.0)
    }

    /// The residual of a slice, and its weight in the squared error.
    fn residual(&self, peak: &Peak) -> (f64, f64) {
        let [cycles, instructions] = peak.bases;
        let stratum = &self.joined[self.of[strata::stratum(cycles, instructions)]];
        (peak.events as f64 - stratum.rate() * cycles as f64, stratum.weight())
    }
}

/// The total of the event on a counter of a group. `None` if the slices are too few or too uneven.
pub(super) fn stratified(
    strata: &Strata,
    (group, counter): (u16, u8),
    sample: &Sample,
) -> Option<Stratified> {
    let slices = sample.group.slices;
    let sums = || strata.sums(group, counter);
    let met: u64 = sums().map(|(_, _, events)| events.met).sum();
    if slices < LEAST_SLICES || met < LEAST_MET {
        return None;
    }
    let partition = Partition::of(sums());
    let of = |value: fn(&Joined) -> f64| partition.strata().map(value).sum::<f64>();
    let (all, counted) = (of(|stratum| stratum.all), of(|stratum| stratum.cycles));
    if all <= 0.0 || counted <= 0.0 {
        return None;
    }
    // The strata do not contain the current slice.
    let total = sample.totals[Base::Cycles as usize] as f64 / all;
    let estimate = total * of(|stratum| stratum.all * stratum.rate());
    let squares = of(|stratum| stratum.weight() * stratum.residuals());
    let peaks = sample.event.peaks.map(|peak| partition.residual(&peak));
    let beyond = UNSEEN + tail(peaks.map(|(residual, _)| residual), partition.slice_variance());
    let scale = all / counted;
    let unmet = UNMET * unlike(sums()) / all * estimate;
    let variance = squares + scale * (scale - 1.0).max(0.0) * beyond + unmet * unmet;
    let degrees = degrees(peaks, squares, slices as f64, partition.number as f64);
    let t = student_t_95(degrees);
    let of_total = Stratified { estimate, variance, half_width_95: t * sqrt(variance), t };
    (degrees >= LEAST_DEGREES).then_some(of_total)
}

/// The degrees of freedom of the sum `squares` of the residuals of `slices`. `largest` are the
/// largest residuals with their weights; if they dominate the sum, it has few degrees of freedom
/// (decision 28).
fn degrees(largest: [(f64, f64); PEAKS], squares: f64, slices: f64, strata: f64) -> f64 {
    let largest = largest.map(|(residual, weight)| weight * residual * residual);
    let largest = largest.into_iter().fold(0.0, f64::max);
    let excess = if squares > 0.0 { largest / squares - 1.0 / slices } else { 0.0 };
    let even = if excess > 0.0 { LARGE / excess } else { f64::INFINITY };
    even.min(slices - strata)
}

/// Cycles of the slices that are unlike all slices of the group.
fn unlike(sums: impl Iterator<Item = (u64, strata::Slices, strata::Events)>) -> f64 {
    let mut cycles = [0_u64; STRATA];
    let mut distance = [STRATA; STRATA];
    let mut since = STRATA;
    for (stratum, (all, slices, _)) in sums.enumerate().take(STRATA) {
        since = if slices.number > 0 { 0 } else { since.saturating_add(1) };
        (cycles[stratum], distance[stratum]) = (all, since);
    }
    since = STRATA;
    let mut unlike = 0.0;
    for (cycles, distance) in cycles.into_iter().zip(distance).rev() {
        since = if distance == 0 { 0 } else { since.saturating_add(1) };
        if distance.min(since) > FURTHEST {
            unlike += cycles as f64;
        }
    }
    unlike
}
