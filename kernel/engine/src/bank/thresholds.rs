//! Thresholds on a bank's logical counters (paper 002, section 5): armed while far, and near, the
//! hardware counter is preloaded so as to overflow at the very count.
//!
//! A threshold is reached when a reading of the bank would show it. So that of an event that is
//! counted all the time is exact, and that of another goes by its estimate: while the event is on the
//! hardware, its estimate grows by its scale for each event, so the distance is known in events; where
//! its slice ends, the estimate may pass the threshold by itself.
//!
//! [`Bank::check`] and [`Bank::distances`] run in the overflow path: bounded by the counters of a
//! group and [`MAX_PINNED`], integers only.

use alloc::{boxed::Box, vec};

use tally_abi::bank::{PINNED_SLOT, SCALE_BITS, SLOTS};

use super::{Bank, GroupCounts, scaled};
use crate::{
    Pinned, ThresholdError,
    plan::{CounterAssignment, Plan},
};

/// The most thresholds at a time on events that are counted all the time, which may be in the list
/// many times: those of groups are limited by their counters.
pub const MAX_PINNED: usize = 8;
/// Where the random order of samples begins: the same in every run.
const RANDOM_SEED: u64 = 0x2545_f491_4f6c_dd1d;
/// Longer than anything runs.
const MAX_PERIOD: u64 = 1 << 62;
/// In place of a threshold or a distance: there is none.
const NONE: u64 = u64::MAX;

/// A threshold that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fired {
    pub(crate) event: u16,
    pub(crate) at: u64,
    pub(crate) count: u64,
    /// Whether it is a sample: then the next one is armed already.
    pub(crate) sample: bool,
}

#[derive(Clone, Copy, Debug)]
struct PinnedThreshold {
    event: u16,
    always: Pinned,
    at: u64,
}

/// A bank's thresholds.
#[derive(Debug)]
pub(super) struct Thresholds {
    /// By member.
    members: Box<[u64]>,
    always: [Option<PinnedThreshold>; MAX_PINNED],
    active: usize,
    /// Whether counters may be preloaded.
    armed: bool,
    /// By event: after how many more it is to fire again, each time; 0 where it is not.
    periods: Box<[u64]>,
    random: u64,
    /// By event: the count at which a threshold fired that nobody has taken yet.
    fired: Box<[u64]>,
    untaken: bool,
}

impl Thresholds {
    pub(super) fn new(plan: &Plan, members: usize) -> Thresholds {
        Thresholds {
            members: vec![NONE; members].into(),
            always: [None; MAX_PINNED],
            active: 0,
            armed: false,
            periods: vec![0; plan.assignments.len()].into(),
            random: RANDOM_SEED,
            fired: vec![NONE; plan.assignments.len()].into(),
            untaken: false,
        }
    }

    fn count(&mut self) {
        let members = self.members.iter().filter(|at| **at != NONE).count();
        self.active = members + self.always.iter().flatten().count();
    }

    /// The next count at which an event fires that did at `count`: a period on, give or take an eighth,
    /// so that samples do not beat with what the program does in periods of its own.
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

    fn fire(&mut self, fired: Fired) {
        if fired.sample {
            return;
        }
        self.active = self.active.saturating_sub(1);
        self.untaken = true;
        if let Some(count) = self.fired.get_mut(usize::from(fired.event)) {
            *count = fired.count;
        }
    }
}

impl Bank {
    /// Sets the threshold of an event, in place of the one that it has, or takes it away.
    pub(crate) fn set_threshold(
        &mut self,
        event: usize,
        place: CounterAssignment,
        at: Option<u64>,
    ) -> Result<(), ThresholdError> {
        let thresholds = &mut self.thresholds;
        match place {
            CounterAssignment::General { .. } => {
                let member = self.members.iter().position(|m| usize::from(m.event) == event);
                let slot = member.and_then(|member| thresholds.members.get_mut(member));
                *slot.ok_or(ThresholdError::NoSuchEvent)? = at.unwrap_or(NONE);
            }
            CounterAssignment::Pinned(always) => {
                let event = event as u16;
                let of =
                    |slot: &Option<PinnedThreshold>| slot.is_some_and(|old| old.event == event);
                let own = thresholds.always.iter().position(of);
                let free = || thresholds.always.iter().position(Option::is_none);
                match own.or_else(free).and_then(|index| thresholds.always.get_mut(index)) {
                    Some(slot) => *slot = at.map(|at| PinnedThreshold { event, always, at }),
                    None if at.is_some() => return Err(ThresholdError::TooMany),
                    None => {}
                }
            }
        }
        thresholds.count();
        Ok(())
    }

    /// How often an event with a threshold fires again: after `period` more, 0 for never.
    pub(crate) fn set_period(&mut self, event: usize, period: u64) {
        if let Some(known) = self.thresholds.periods.get_mut(event) {
            *known = period;
        }
    }

    /// Whether there are any thresholds, or counters preloaded for such.
    pub(crate) fn is_watched(&self) -> bool {
        self.thresholds.active > 0 || self.thresholds.armed
    }

    /// Notes whether counters are preloaded.
    pub(crate) fn set_armed(&mut self, armed: bool) {
        self.thresholds.armed = armed;
    }

    /// A threshold that has fired and was not taken yet: its event, and the count.
    pub(crate) fn take_fired(&mut self) -> Option<(usize, u64)> {
        let thresholds = &mut self.thresholds;
        if !thresholds.untaken {
            return None;
        }
        let found = thresholds.fired.iter_mut().enumerate().find(|(_, count)| **count != NONE);
        let taken = found.map(|(event, count)| (event, core::mem::replace(count, NONE)));
        thresholds.untaken = taken.is_some();
        taken
    }

    /// Whether a threshold has fired that was not taken yet.
    pub(crate) fn has_fired(&self) -> bool {
        self.thresholds.untaken
    }

    /// Fires the thresholds that are reached, of events of `group`, of which `counted` was told just
    /// now, and of those that are counted all the time.
    pub(crate) fn check(
        &mut self,
        group: u16,
        counted: GroupCounts,
        told: &[u64],
        period_multiplier: u32,
        mut fire: impl FnMut(Fired),
    ) {
        for index in self.members_of(group) {
            let Some(at) = self.thresholds.members.get(index).copied() else { continue };
            let Some(member) = self.members.get(index).filter(|_| at != NONE) else { continue };
            let estimate = scaled(counted.events(member.counter), member.scale);
            let told = told.get(usize::from(member.event)).copied().unwrap_or_default();
            let count = estimate.max(told);
            if count >= at {
                let next = self.thresholds.next(member.event, count, period_multiplier);
                let fired = Fired { event: member.event, at, count, sample: next != NONE };
                if let Some(at) = self.thresholds.members.get_mut(index) {
                    *at = next;
                }
                self.thresholds.fire(fired);
                fire(fired);
            }
        }
        for index in 0..MAX_PINNED {
            let Some(Some(PinnedThreshold { event, always, at })) =
                self.thresholds.always.get(index).copied()
            else {
                continue;
            };
            let count = counted.total[always];
            if count >= at {
                let next = self.thresholds.next(event, count, period_multiplier);
                let fired = Fired { event, at, count, sample: next != NONE };
                if let Some(slot) = self.thresholds.always.get_mut(index) {
                    *slot = (next != NONE).then_some(PinnedThreshold { event, always, at: next });
                }
                self.thresholds.fire(fired);
                fire(fired);
            }
        }
    }

    /// How far each slot's counter is from its nearest threshold, in events, while `group` is on the
    /// hardware, of which `counted` was counted; no counter comes so far as [`u64::MAX`].
    pub(crate) fn distances(&self, group: u16, counted: GroupCounts) -> [u64; SLOTS] {
        let mut distances = [NONE; SLOTS];
        let mut nearest = |slot: usize, distance: u64| {
            if let Some(nearest) = distances.get_mut(slot) {
                *nearest = distance.max(1).min(*nearest);
            }
        };
        for index in self.members_of(group) {
            let Some(at) = self.thresholds.members.get(index).copied() else { continue };
            let Some(member) = self.members.get(index).filter(|_| at != NONE) else { continue };
            // The least count whose estimate, cut off, is the threshold.
            let scaled_at = u128::from(at) << SCALE_BITS;
            let Some(target) = scaled_at.checked_add(u128::from(member.scale.saturating_sub(1)))
            else {
                continue;
            };
            let Some(target) = target.checked_div(member.scale.into()) else { continue };
            let target = u64::try_from(target).unwrap_or(NONE);
            let distance = target.saturating_sub(counted.events(member.counter));
            nearest(member.counter.into(), distance);
        }
        for PinnedThreshold { always, at, .. } in self.thresholds.always.iter().flatten() {
            let distance = at.saturating_sub(counted.total[*always]);
            nearest(PINNED_SLOT + *always as usize, distance);
        }
        distances
    }
}
