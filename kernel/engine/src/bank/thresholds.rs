//! Thresholds on a bank's logical counters (paper 002, section 5). Near a threshold its hardware
//! counter is preloaded, so that it overflows at exactly the threshold's count.
//!
//! A threshold is reached when a reader of the bank would see its count. The threshold of a pinned
//! event is exact. The threshold of a multiplexed event is checked when a slice of its group begins
//! or ends, and while the event is on its counter at the count that it reaches if its rate does not
//! change.
//!
//! Samples of a multiplexed event are taken while it is on its counter, at its own occurrences. So
//! they use the count scaled by time, which grows by the scale with each event.
//!
//! Everything here except setting thresholds runs in the overflow path: bounded by the counters of
//! a group, [`MOST_FIRED`] and the logarithm of the number of thresholds, integers only.

use alloc::{boxed::Box, collections::BinaryHeap, vec};
use core::cmp::Reverse;

use rand_xoshiro::{
    SplitMix64,
    rand_core::{Rng, SeedableRng},
};
use tally_abi::bank::{PINNED_SLOT, RATE_BITS, SLOTS};

use crate::{
    Counts, Pinned,
    plan::{CounterAssignment, Plan},
};

/// Maximum number of thresholds of pinned events that fire at a time; the others fire at the next
/// overflow, for which a counter is preloaded. A list may have pinned events many times.
const MOST_FIRED: usize = 8;
/// Longest period, longer than any run.
const MAX_PERIOD: u64 = 1 << 62;
/// Marks a missing threshold or distance.
const NONE: u64 = u64::MAX;

/// Error of setting a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdError {
    /// The session has no such event.
    NoSuchEvent,
    /// The session has no logical counter bank.
    NoBank,
}

/// A threshold whose count is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) event: u16,
    pub(super) at: u64,
    pub(super) count: u64,
}

/// A threshold that fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fired {
    pub(crate) event: u16,
    pub(crate) at: u64,
    pub(crate) count: u64,
    /// Whether it is a sample, whose successor is already set.
    pub(crate) sample: bool,
}

/// Counters to preload, with the number of events until their overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreloadPlan {
    distances: [u64; SLOTS],
    /// Mask of the slots whose counters store precise records.
    pub(crate) precise: u16,
}

impl Default for PreloadPlan {
    fn default() -> PreloadPlan {
        PreloadPlan { distances: [NONE; SLOTS], precise: 0 }
    }
}

impl PreloadPlan {
    /// The counters to preload: slot, and events until the overflow.
    pub(crate) fn distances(&self) -> impl Iterator<Item = (usize, u64)> {
        self.distances.into_iter().enumerate().filter(|(_, distance)| *distance != NONE)
    }

    /// Returns whether no counter is to be preloaded.
    pub(crate) fn is_empty(&self) -> bool {
        self.distances == [NONE; SLOTS]
    }

    /// Raises every distance to at least `least`, and drops distances above `most` of their slot.
    pub(crate) fn limit(&mut self, least: u64, most: impl Fn(usize) -> u64) {
        for (slot, distance) in self.distances.iter_mut().enumerate() {
            let raised = least.max(*distance);
            *distance = if raised <= most(slot) { raised } else { NONE };
        }
    }

    /// Adds a threshold that is `distance` events away from the present count of the counter in
    /// `slot`.
    pub(super) fn add(&mut self, slot: usize, distance: u64) {
        if let Some(nearest) = self.distances.get_mut(slot) {
            *nearest = distance.max(1).min(*nearest);
        }
    }

    /// Adds a threshold at the scaled count `at`, for a counter that has counted `events`.
    pub(super) fn add_scaled(&mut self, counter: u8, at: u64, scale: u64, events: u64) {
        // The lowest count whose scaled value, rounded down, reaches the threshold.
        let scaled_at = u128::from(at) << RATE_BITS;
        let Some(target) = scaled_at.checked_add(u128::from(scale.saturating_sub(1))) else {
            return;
        };
        let Some(target) = target.checked_div(scale.into()) else { return };
        let target = u64::try_from(target).unwrap_or(NONE);
        self.add(counter.into(), target.saturating_sub(events));
    }
}

/// Thresholds of a list's events that are one pinned event, the nearest first: counts and events.
/// The heap has room for each of these events, so that the overflow path does not allocate.
type Nearest = BinaryHeap<Reverse<(u64, u16)>>;

/// A bank's thresholds.
#[derive(Debug)]
pub(super) struct Thresholds {
    /// Thresholds by member of the bank.
    members: Box<[u64]>,
    /// Thresholds by pinned event.
    pinned: [Nearest; 3],
    active: usize,
    /// Whether counters may be preloaded.
    armed: bool,
    /// Sampling periods by event; 0 for events that are not sampled.
    periods: Box<[u64]>,
    /// State of the random distances between samples; not 0.
    random: u64,
    /// By event: the count at which a threshold fired that was not taken yet.
    fired: Box<[u64]>,
    untaken: bool,
}

impl Thresholds {
    /// Equal seeds give equal distances between samples.
    pub(super) fn new(plan: &Plan, members: usize, seed: u64) -> Thresholds {
        let is = |pinned: Pinned| move |of: &&_| **of == CounterAssignment::Pinned(pinned);
        let count = |pinned| plan.assignments.iter().filter(is(pinned)).count();
        Thresholds {
            members: vec![NONE; members].into(),
            pinned: Pinned::ALL.map(|pinned| Nearest::with_capacity(count(pinned))),
            active: 0,
            armed: false,
            periods: vec![0; plan.assignments.len()].into(),
            random: SplitMix64::seed_from_u64(seed).next_u64() | 1,
            fired: vec![NONE; plan.assignments.len()].into(),
            untaken: false,
        }
    }

    /// Sets the threshold of an event, whose member of the bank is `member`, and replaces an
    /// earlier one; removes it if `at` is `None`.
    ///
    /// # Errors
    /// See [`ThresholdError`].
    pub(super) fn set(
        &mut self,
        event: usize,
        assignment: CounterAssignment,
        member: Option<usize>,
        at: Option<u64>,
    ) -> Result<(), ThresholdError> {
        match assignment {
            CounterAssignment::General { .. } => {
                let slot = member.and_then(|member| self.members.get_mut(member));
                *slot.ok_or(ThresholdError::NoSuchEvent)? = at.unwrap_or(NONE);
            }
            CounterAssignment::Metric(_) => return Err(ThresholdError::NoSuchEvent),
            CounterAssignment::Pinned(pinned) => {
                let (event, nearest) = (event as u16, self.of_pinned(pinned));
                nearest.retain(|Reverse((_, other))| *other != event);
                nearest.extend(at.map(|at| Reverse((at, event))));
            }
        }
        let members = self.members.iter().filter(|at| **at != NONE).count();
        self.active = members + self.pinned.iter().map(Nearest::len).sum::<usize>();
        Ok(())
    }

    /// Sets an event's sampling period in events; 0 ends sampling.
    pub(super) fn set_period(&mut self, event: usize, period: u64) {
        if let Some(known) = self.periods.get_mut(event) {
            *known = period;
        }
    }

    /// Returns whether an event is sampled.
    pub(super) fn is_sampled(&self, event: u16) -> bool {
        self.periods.get(usize::from(event)).is_some_and(|period| *period > 0)
    }

    /// Returns whether an event's threshold may fire, if it is reached: its samples have to be
    /// possible.
    pub(super) fn may_fire(&self, event: u16, can_sample: impl Fn(u16) -> bool) -> bool {
        !self.is_sampled(event) || can_sample(event)
    }

    pub(super) fn set_armed(&mut self, armed: bool) {
        self.armed = armed;
    }

    pub(super) fn is_watched(&self) -> bool {
        self.active > 0 || self.armed
    }

    pub(super) fn has_fired(&self) -> bool {
        self.untaken
    }

    pub(super) fn take_fired(&mut self) -> Option<(usize, u64)> {
        if !self.untaken {
            return None;
        }
        let found = self.fired.iter_mut().enumerate().find(|(_, count)| **count != NONE);
        let taken = found.map(|(event, count)| (event, core::mem::replace(count, NONE)));
        self.untaken = taken.is_some();
        taken
    }

    /// The threshold of a member.
    pub(super) fn of_member(&self, index: usize) -> Option<u64> {
        self.members.get(index).copied().filter(|at| *at != NONE)
    }

    /// The count of an event's next sample after one at `count`: a period later, plus or minus up
    /// to an eighth at random, so that samples do not beat with periods of the program.
    fn next(&mut self, event: u16, count: u64, period_multiplier: u32) -> u64 {
        let period = self.periods.get(usize::from(event)).copied().unwrap_or_default();
        let period = period.saturating_mul(period_multiplier.into()).min(MAX_PERIOD);
        if period == 0 {
            return NONE;
        }
        // Xorshift; its high half scales without a division.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let dither = (u128::from(self.random) * u128::from(period / 4 + 1)) >> 64;
        count.saturating_add(period - period / 8).saturating_add(dither as u64)
    }

    /// Fires a threshold. Returns it with the count of the next sample, or [`NONE`] if it is no
    /// sample.
    fn fire(&mut self, reached: Reached, period_multiplier: u32) -> (Fired, u64) {
        let Reached { event, at, count } = reached;
        let next = self.next(event, count, period_multiplier);
        let fired = Fired { event, at, count, sample: next != NONE };
        if !fired.sample {
            self.active = self.active.saturating_sub(1);
            self.untaken = true;
            if let Some(untaken) = self.fired.get_mut(usize::from(event)) {
                *untaken = count;
            }
        }
        (fired, next)
    }

    /// Fires the threshold of a member.
    pub(super) fn fire_member(
        &mut self,
        index: usize,
        reached: Reached,
        period_multiplier: u32,
    ) -> Fired {
        let (fired, next) = self.fire(reached, period_multiplier);
        if let Some(at) = self.members.get_mut(index) {
            *at = next;
        }
        fired
    }

    /// Fires the thresholds of pinned events that are reached; see [`super::Bank::check`].
    pub(super) fn check_pinned(
        &mut self,
        total: &Counts,
        period_multiplier: u32,
        can_sample: impl Fn(u16) -> bool,
        mut fire: impl FnMut(Fired),
    ) {
        let mut left = MOST_FIRED;
        for pinned in Pinned::ALL {
            let count = total[pinned];
            while left > 0
                && let Some(&Reverse((at, event))) = self.of_pinned(pinned).peek()
                && count >= at
                && self.may_fire(event, &can_sample)
            {
                left -= 1;
                let (fired, next) = self.fire(Reached { event, at, count }, period_multiplier);
                let nearest = self.of_pinned(pinned);
                nearest.pop();
                if fired.sample {
                    // Uses the room of the popped entry: no allocation.
                    nearest.push(Reverse((next, event)));
                }
                fire(fired);
            }
        }
    }

    /// The nearest threshold of a pinned event, samples aside.
    pub(super) fn nearest(&self, pinned: Pinned) -> Option<u64> {
        let all = self.pinned[pinned as usize].iter();
        all.filter(|Reverse((_, event))| !self.is_sampled(*event)).map(|Reverse((at, _))| *at).min()
    }

    fn of_pinned(&mut self, pinned: Pinned) -> &mut Nearest {
        // `Pinned::ALL` has three elements, in the order of their values.
        &mut self.pinned[pinned as usize]
    }

    /// Puts off the samples of pinned events by what `passed` while the session was on no counter:
    /// no interrupt could take them there.
    pub(super) fn put_off(&mut self, passed: &Counts) {
        for pinned in Pinned::ALL {
            let mut nearest = core::mem::take(self.of_pinned(pinned)).into_vec();
            for Reverse((at, event)) in &mut nearest {
                if self.is_sampled(*event) {
                    *at = at.saturating_add(passed[pinned]);
                }
            }
            *self.of_pinned(pinned) = nearest.into();
        }
    }

    /// Adds the distances of pinned events to a plan.
    pub(super) fn add_pinned(&self, total: &Counts, plan: &mut PreloadPlan) {
        for (pinned, nearest) in Pinned::ALL.into_iter().zip(&self.pinned) {
            if let Some(Reverse((at, _))) = nearest.peek() {
                plan.add(PINNED_SLOT + pinned as usize, at.saturating_sub(total[pinned]));
            }
        }
    }
}
