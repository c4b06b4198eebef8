//! The kernel's side of the logical counter bank; [`tally_abi::bank`] has the programs' side.
//!
//! The bank is a sequence count with one writer, the CPU that runs the session: the overflow path,
//! or the kernel with that interrupt masked. The writer never waits. Readers are programs, which
//! the writer may interrupt anywhere. The sequence count is in the control word, with which
//! programs start and stop their counters.

mod control;
mod errors;
mod members;
mod page;
mod refresh;
mod thresholds;
mod turns;

use alloc::{boxed::Box, vec};

use tally_abi::{
    PhaseState,
    bank::{
        COUNTER_WORDS, HEADER_WORDS, PAGE_WORDS, PINNED_SLOT, RATE_ONE, READ_BYTES, assignment,
        counter, header, value, words,
    },
};

use self::{
    control::{ControlWord, for_each_slot},
    members::{Member, Members},
    page::{load, put},
    refresh::Refresh,
    thresholds::{Reached, Thresholds},
};
use crate::{
    CounterMask, Counts, Pinned,
    moments::PerBase,
    plan::{CounterAssignment, Plan},
};

pub(crate) use self::{
    members::GroupCounts,
    thresholds::{Fired, PreloadPlan},
};
pub use self::{page::Page, thresholds::ThresholdError};

/// A session's bank.
#[derive(Debug)]
pub(crate) struct Bank {
    control: ControlWord,
    pages: Box<[&'static Page]>,
    members: Members,
    /// RDPMC's ECX for the pinned events' counters.
    pinned_rdpmc: [u32; 3],
    refresh: Refresh,
    /// Whether all events are counted all the time, so that there is one group.
    exact: bool,
    /// Whether another program reads the bank: RDPMC would read that program's counters.
    is_remote: bool,
    thresholds: Thresholds,
    /// By event: the highest value that a reader can have seen. No estimate contains it.
    published_max: Box<[u64]>,
}

impl Bank {
    /// Makes a bank of a session, with its number and seed, for the events of `plan`, in pages of
    /// zeros; `writable` is the page that the program writes. `None` if the pages are too few.
    pub(crate) fn new(
        (session, seed): (u32, u64),
        writable: &'static Page,
        pages: Box<[&'static Page]>,
        plan: &Plan,
        rdpmc: impl Fn(CounterAssignment) -> u32,
    ) -> Option<Bank> {
        let events = plan.assignments.len();
        if pages.len() * PAGE_WORDS < words(events) {
            return None;
        }
        let members = Members::new(plan);
        let mut bank = Bank {
            control: ControlWord::new(writable),
            pages,
            thresholds: Thresholds::new(plan, members.len(), seed),
            members,
            pinned_rdpmc: Pinned::ALL.map(|event| rdpmc(CounterAssignment::Pinned(event))),
            refresh: Refresh::default(),
            exact: plan.groups.len() == 1,
            is_remote: false,
            published_max: vec![0; events].into(),
        };
        bank.write(|bank| {
            for (index, number) in bank.pinned_rdpmc.into_iter().enumerate() {
                bank.put(header::PINNED_RDPMC + index, number.into());
            }
            bank.put(header::COUNTERS, events as u64);
            bank.put(header::SESSION, session.into());
            for (event, assigned) in plan.assignments.iter().enumerate() {
                bank.put_basis(event, *assigned, &rdpmc);
            }
        });
        Some(bank)
    }

    /// Publishes an event's first basis.
    fn put_basis(
        &self,
        event: usize,
        assigned: CounterAssignment,
        rdpmc: &impl Fn(CounterAssignment) -> u32,
    ) {
        let (basis, rate, half_width) = match assigned {
            CounterAssignment::Pinned(pinned) => (self.pinned_basis(pinned), RATE_ONE, 0.0),
            CounterAssignment::General { counter: slot, .. } if self.exact => {
                let sum = index_of(event, counter::EVENTS);
                (assignment(slot.into(), sum, rdpmc(assigned)), RATE_ONE, 0.0)
            }
            _ => (self.pinned_basis(Pinned::Cycles), 0, f64::NAN),
        };
        self.put_counter(event, counter::ASSIGNMENT, basis);
        self.put_counter(event, counter::RATE, rate);
        self.put_counter(event, counter::RATE_AT, rate);
        self.put_counter(event, counter::HALF_WIDTH, half_width.to_bits());
        self.put_counter(event, counter::SHARE, f64::from(u8::from(rate == RATE_ONE)).to_bits());
    }

    /// Makes the bank one that another program reads, under the session number `session`: from now
    /// on readers get published counts only.
    pub(crate) fn make_remote(&mut self, session: u32) {
        self.is_remote = true;
        self.write(|bank| bank.put(header::SESSION, session.into()));
    }

    /// The assignment word of a pinned event as a basis.
    fn pinned_basis(&self, event: Pinned) -> u64 {
        let index = event as usize;
        let ecx = self.pinned_rdpmc.get(index).copied().unwrap_or_default();
        assignment(PINNED_SLOT + index, header::TOTAL + index, ecx)
    }

    /// Publishes the phase of an interval.
    pub(crate) fn publish_phase(&mut self, phase: &PhaseState) {
        let words = phase.to_words();
        self.write(|bank| {
            words.iter().zip(header::PHASE..).for_each(|(word, index)| bank.put(index, *word));
        });
    }

    /// Changes words so that no reader uses a half-made change.
    fn write(&mut self, change: impl FnOnce(&mut Bank)) {
        self.control.begin();
        change(self);
        self.control.end();
    }

    /// See [`ControlWord::deduct_stopped`].
    #[inline]
    pub(crate) fn deduct_stopped(&mut self, set: CounterMask, counted: &mut Counts) -> bool {
        let pages = &self.pages;
        let base = |slot| load(pages, header::BASE + slot);
        self.control.deduct_stopped(set, counted, base)
    }

    /// Returns whether the program, and not the kernel, ended counting.
    pub(crate) fn is_stopped(&self) -> bool {
        self.control.is_stopped()
    }

    fn put(&self, index: usize, value: u64) {
        put(&self.pages, index, value);
    }

    fn put_counter(&self, event: usize, word: usize, value: u64) {
        self.put(index_of(event, word), value);
    }

    /// Begins a publication of the counts of `group`. Also runs in the overflow path: the work is
    /// bounded by the events of one group, each with one division. [`Self::end`] has to follow.
    pub(crate) fn begin(&mut self, group: u16, counts: GroupCounts, tsc: u64) {
        self.control.begin();
        let mut scales = [None; 2];
        for index in self.members.of_group(group) {
            self.put_counts(index, counts, &mut scales);
            self.put_member(index, counter::START_TSC, counts.start_tsc);
            self.put_member(index, counter::END_TSC, tsc);
        }
        self.put_totals(counts.total, tsc);
    }

    fn put_totals(&self, total: &Counts, tsc: u64) {
        for event in Pinned::ALL {
            self.put(header::TOTAL + event as usize, total[event]);
        }
        self.put(header::TSC, tsc);
    }

    /// Ends a publication. If a group is `running`, the counters in its set count from its bases
    /// on.
    pub(crate) fn end(&mut self, running: Option<(u16, CounterMask, &Counts)>) {
        match running.filter(|_| !self.is_remote) {
            Some((group, set, bases)) => {
                self.put_bases(set, bases);
                self.control.attach(group, set, bases);
            }
            None => self.control.detach(),
        }
        self.control.end();
    }

    fn put_bases(&self, set: CounterMask, bases: &Counts) {
        let mut used = 0;
        for_each_slot(set, |slot| {
            used |= 1 << slot;
            self.put(header::BASE + slot, bases.slot(slot));
        });
        self.put(header::USED, used);
        let first = set.general.trailing_zeros();
        let end = u16::BITS - set.general.leading_zeros();
        self.put(header::READS, u64::from(end.saturating_sub(first)) * READ_BYTES);
        self.put(header::FIRST, first.into());
    }

    /// Publishes a member's counts. `scales` caches the group's scales by basis.
    fn put_counts(&mut self, index: usize, counts: GroupCounts, scales: &mut PerBase<Option<u64>>) {
        let is_watched = self.thresholds.is_watched();
        let Some(member) = self.members.get_mut(index) else { return };
        let event = usize::from(member.event);
        let total = counts.total[member.base.event()];
        // In the group's slice the scale stays, as counters are preloaded for thresholds by it.
        if is_watched && (counts.current.is_none() || member.scale == 0) {
            member.scale = counts.scale_once(member.base, scales);
        }
        if !self.exact {
            // Up to now readers computed with the old rate.
            let seen = value(total, member.rate);
            member.rate = counts.rate(member.counter, member.base);
            let rate = member.rate;
            self.raise_max(event, seen);
            self.put_counter(event, counter::RATE, rate);
            self.put_counter(event, counter::SEEN_AT, total);
        }
        let Some(member) = self.members.get(index) else { return };
        self.put_counter(event, counter::EVENTS, counts.events(member.counter));
        self.put_counter(event, counter::SLICES, counts.moments.slices);
    }

    /// Raises an event's published maximum to `seen`, a value that readers can have seen.
    fn raise_max(&mut self, event: usize, seen: u64) {
        let Some(max) = self.published_max.get_mut(event) else { return };
        *max = seen.max(*max);
        let max = *max;
        self.put_counter(event, counter::PUBLISHED_MAX, max);
    }

    fn put_member(&self, index: usize, word: usize, value: u64) {
        if let Some(member) = self.members.get(index) {
            self.put_counter(member.event.into(), word, value);
        }
    }

    /// Updates scales for thresholds, in a publication, after the sums of `group`, whose slice has
    /// not begun, were restated for another share.
    #[cold]
    pub(crate) fn rescale(&mut self, group: u16, counts: GroupCounts) {
        let mut scales = [None; 2];
        for index in self.members.of_group(group) {
            if let Some(member) = self.members.get_mut(index) {
                member.scale = counts.scale_once(member.base, &mut scales);
            }
        }
    }

    /// See [`Thresholds::set`], also for the errors.
    pub(crate) fn set_threshold(
        &mut self,
        event: usize,
        assignment: CounterAssignment,
        at: Option<u64>,
    ) -> Result<(), ThresholdError> {
        self.thresholds.set(event, assignment, self.members.position(event), at)
    }

    /// See [`Thresholds::set_period`].
    pub(crate) fn set_period(&mut self, event: usize, period: u64) {
        self.thresholds.set_period(event, period);
    }

    /// Returns whether the session has thresholds, or counters preloaded for them.
    pub(crate) fn is_watched(&self) -> bool {
        self.thresholds.is_watched()
    }

    /// Takes a threshold that has fired: its event and the count.
    pub(crate) fn take_fired(&mut self) -> Option<(usize, u64)> {
        self.thresholds.take_fired()
    }

    /// Returns whether a threshold has fired that was not taken yet.
    pub(crate) fn has_fired(&self) -> bool {
        self.thresholds.has_fired()
    }

    /// Fires the reached thresholds of the events of `group`; samples if the event `can_sample`.
    pub(crate) fn check(
        &mut self,
        group: u16,
        counts: GroupCounts,
        period_multiplier: u32,
        can_sample: impl Fn(u16) -> bool,
        mut fire: impl FnMut(Fired),
    ) {
        for index in self.members.of_group(group) {
            let known = self.thresholds.of_member(index).zip(self.members.get(index));
            let Some((at, member)) = known else { continue };
            let (event, count) = (member.event, self.threshold_count(member, counts));
            if count >= at && self.thresholds.may_fire(event, &can_sample) {
                let reached = Reached { event, at, count };
                let fired = self.thresholds.fire_member(index, reached, period_multiplier);
                count_fired(&self.pages, &fired);
                fire(fired);
            }
        }
    }

    /// Fires the reached thresholds of pinned events; samples as [`Self::check`].
    pub(crate) fn check_pinned(
        &mut self,
        total: &Counts,
        period_multiplier: u32,
        can_sample: impl Fn(u16) -> bool,
        mut fire: impl FnMut(Fired),
    ) {
        self.thresholds.check_pinned(total, period_multiplier, can_sample, |fired| {
            count_fired(&self.pages, &fired);
            fire(fired);
        });
    }

    /// The count that a member's threshold or next sample is compared with.
    fn threshold_count(&self, member: &Member, counts: GroupCounts) -> u64 {
        let events = counts.events(member.counter);
        if self.exact {
            events
        } else if self.thresholds.is_sampled(member.event) {
            value(events, member.scale)
        } else {
            self.value_of(member, counts.total)
        }
    }

    /// The value of a member as a reader would see it now.
    fn value_of(&self, member: &Member, total: &Counts) -> u64 {
        let max = self.published_max.get(usize::from(member.event)).copied().unwrap_or_default();
        value(total[member.base.event()], member.rate).max(max)
    }

    /// The count from which samples of an event begin now.
    pub(crate) fn sampled_count(&mut self, event: usize, counts: GroupCounts) -> u64 {
        let Some(index) = self.members.position(event) else { return 0 };
        let Some(member) = self.members.get_mut(index) else { return 0 };
        let events = counts.events(member.counter);
        member.scale = if self.exact { RATE_ONE } else { counts.scale(member.base) };
        value(events, member.scale)
    }

    /// The preloads for the time in which `group` is on the counters.
    pub(crate) fn plan_preload(&self, group: u16, counts: GroupCounts) -> PreloadPlan {
        let mut plan = PreloadPlan::default();
        for index in self.members.of_group(group) {
            let Some(at) = self.thresholds.of_member(index) else { continue };
            let Some(member) = self.members.get(index) else { continue };
            if self.thresholds.is_sampled(member.event) && !self.exact {
                let events = counts.events(member.counter);
                plan.add_scaled(member.counter, at, member.scale, events);
            } else {
                // At a constant rate an estimate grows by one with each event.
                let count = self.threshold_count(member, counts);
                plan.add(member.counter.into(), at.saturating_sub(count));
            }
        }
        self.thresholds.add_pinned(counts.total, &mut plan);
        plan
    }

    /// Notes whether any counter of the plan is preloaded.
    pub(crate) fn set_armed(&mut self, plan: &PreloadPlan) {
        self.thresholds.set_armed(!plan.is_empty());
    }
}

/// Increments the count of fired thresholds in its event's counter.
fn count_fired(pages: &[&Page], fired: &Fired) {
    if !fired.sample {
        let index = index_of(fired.event.into(), counter::FIRED);
        put(pages, index, load(pages, index) + 1);
    }
}

/// Index of a counter's word, from the header's first word.
fn index_of(event: usize, word: usize) -> usize {
    HEADER_WORDS + event * COUNTER_WORDS + word
}
