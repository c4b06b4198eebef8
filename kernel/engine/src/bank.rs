//! The kernel's side of the logical counter bank: [`tally_abi::bank`] says what programs see.
//!
//! A sequence lock with one writer, the CPU that runs the session: the overflow path, or the kernel
//! with that interrupt held off. It never waits. Readers are programs, which may be interrupted by
//! the writer anywhere. The sequence is in the word by which programs start and stop their counters.
//!
//! Pages are atomics, so there is no unsafe code here: who makes them of mapped memory vouches for
//! it.

mod switch;
pub(crate) mod thresholds;

use alloc::{boxed::Box, vec::Vec};
use core::ops::Range;

use tally_abi::bank::{
    COUNTER_WORDS, HEADER_WORDS, PAGE_WORDS, PINNED, SCALE_BITS, SCALE_ONE, counter, header, words,
};

use crate::{
    CounterMask, Counts, Pinned,
    moments::{Base, GroupMoments, PerBase},
    plan::{CounterAssignment, Plan},
    sync::{AtomicU64, Ordering},
};
use switch::{Switch, for_each_slot};
use thresholds::Thresholds;

/// A page that programs see.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Page([AtomicU64; PAGE_WORDS]);

impl Default for Page {
    fn default() -> Self {
        Page(core::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Page {
    /// A word, as a reader loads it.
    pub fn load(&self, index: usize) -> u64 {
        // Pairs with the Release fence and store in `Switch`, through the switch's word.
        self.0.get(index).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Changes a word from `old` to `new`, as a program does in its own page: whether it was `old`.
    pub fn exchange(&self, index: usize, old: u64, new: u64) -> bool {
        // Nothing but the word itself is ordered: the kernel and the program are on one CPU.
        let exchange = |word: &AtomicU64| {
            word.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        self.0.get(index).is_some_and(exchange)
    }

    fn store(&self, index: usize, value: u64, ordering: Ordering) {
        if let Some(word) = self.0.get(index) {
            word.store(value, ordering);
        }
    }
}

/// Errors that are told at once at least: of few events each is told more often than it has to be.
const LEAST_DUE: usize = 4;

/// What the overflow path needs to know of an event.
#[derive(Clone, Copy, Debug)]
struct Member {
    event: u16,
    counter: u8,
    /// What its estimate goes by.
    base: Base,
    /// Its [`counter::SCALE`] now.
    scale: u64,
}

/// A session's bank.
#[derive(Debug)]
pub(crate) struct Bank {
    switch: Switch,
    pages: Box<[&'static Page]>,
    /// Events that groups count, group by group, …
    members: Box<[Member]>,
    /// … and where each group's begin.
    first: Box<[u16]>,
    /// The event whose error is told next.
    next: usize,
    /// Whether all events are counted all the time: there is one group.
    exact: bool,
    thresholds: Thresholds,
}

/// What was counted of a group, the slice under way included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupCounts<'a> {
    pub(crate) moments: &'a GroupMoments,
    pub(crate) open: &'a Counts,
    pub(crate) start_tsc: u64,
    /// What passed in all.
    pub(crate) total: &'a Counts,
}

impl GroupCounts<'_> {
    /// Events on a general counter.
    pub(crate) fn events(&self, counter: u8) -> u64 {
        let counter = usize::from(counter) % crate::MAX_GENERAL;
        self.moments.events[counter].events.wrapping_add(self.open.general[counter])
    }

    /// One over the share of the total in which the group was counted, as [`counter::SCALE`]. One
    /// division of integers.
    fn scale(&self, base: Base) -> u64 {
        let counted = self.moments.sums[base as usize].wrapping_add(self.open[base.event()]);
        let total = self.total[base.event()];
        // A share below 2^-20 says nothing, and the quotient stays below 2^64.
        if counted <= total >> (u64::BITS - SCALE_BITS) {
            return 0;
        }
        let scaled = u128::from(total) << SCALE_BITS;
        scaled.checked_div(counted.into()).map_or(0, |scale| scale as u64)
    }
}

/// An estimate as readers work it out. Beyond 64 bits it says nothing.
fn scaled(events: u64, scale: u64) -> u64 {
    ((u128::from(events) * u128::from(scale)) >> SCALE_BITS) as u64
}

impl Bank {
    /// A bank for the events of `plan`, in pages of zeros that are enough for it, `own` the one that
    /// the program writes.
    pub(crate) fn new(
        own: &'static Page,
        pages: Box<[&'static Page]>,
        plan: &Plan,
        rdpmc: impl Fn(CounterAssignment) -> u32,
    ) -> Option<Bank> {
        let events = plan.assignments.len();
        if pages.len() * PAGE_WORDS < words(events) {
            return None;
        }
        let exact = plan.groups.len() == 1;
        let (scale, half_width) = if exact { (SCALE_ONE, 0.0) } else { (0, f64::NAN) };
        let mut members = Vec::with_capacity(events);
        let mut first = Vec::with_capacity(plan.groups.len() + 1);
        for group in 0..plan.groups.len() {
            first.push(members.len() as u16);
            for (event, place) in plan.assignments.iter().enumerate() {
                if let CounterAssignment::General { group: its, counter } = *place
                    && usize::from(its) == group
                {
                    let event = event as u16;
                    members.push(Member { event, counter, base: Base::Cycles, scale });
                }
            }
        }
        first.push(members.len() as u16);
        let (members, first): (Box<[Member]>, _) = (members.into(), first.into());
        let switch = Switch::new(own);
        let thresholds = Thresholds::new(plan, members.len());
        let mut bank = Bank { switch, pages, members, first, next: 0, exact, thresholds };
        bank.write(|bank| {
            for event in Pinned::ALL {
                let number = rdpmc(CounterAssignment::Pinned(event));
                bank.put(header::PINNED_RDPMC + event as usize, number.into());
            }
            bank.put(header::COUNTERS, events as u64);
            for (event, place) in plan.assignments.iter().enumerate() {
                let group = match *place {
                    CounterAssignment::General { group, .. } => u64::from(group),
                    CounterAssignment::Pinned(event) => PINNED + event as u64,
                };
                bank.put_counter(
                    event,
                    counter::ASSIGNMENT,
                    group | u64::from(rdpmc(*place)) << 32,
                );
                bank.put_counter(event, counter::SCALE, scale);
                bank.put_counter(event, counter::HALF_WIDTH, half_width.to_bits());
            }
        });
        Some(bank)
    }

    /// Changes words so that no reader takes half of the change.
    fn write(&mut self, change: impl FnOnce(&mut Bank)) {
        self.switch.begin();
        change(self);
        self.switch.end();
    }

    /// See [`Switch::discount`].
    #[inline]
    pub(crate) fn discount(&mut self, set: CounterMask, counted: &mut Counts) -> bool {
        self.switch.discount(set, counted)
    }

    /// Whether the program, and not the kernel, ended counting.
    pub(crate) fn is_stopped(&self) -> bool {
        self.switch.is_stopped()
    }

    fn put(&self, index: usize, value: u64) {
        if let Some(page) = self.pages.get(index / PAGE_WORDS) {
            page.store(index % PAGE_WORDS, value, Ordering::Relaxed);
        }
    }

    fn put_counter(&self, event: usize, word: usize, value: u64) {
        self.put(HEADER_WORDS + event * COUNTER_WORDS + word, value);
    }

    fn counter(&self, event: usize, word: usize) -> u64 {
        let index = HEADER_WORDS + event * COUNTER_WORDS + word;
        let page = self.pages.get(index / PAGE_WORDS);
        page.map_or(0, |page| page.load(index % PAGE_WORDS))
    }

    /// Begins a change: tells what was counted of `group`. In the overflow path too: the work is
    /// bounded by the events of one group. [`Self::go_on`] has to follow.
    pub(crate) fn tell(&mut self, group: u16, counted: GroupCounts, told: &mut [u64], tsc: u64) {
        self.switch.begin();
        let mut scales = [None; 2];
        for index in self.members_of(group) {
            self.publish_member(index, counted, &mut scales, told);
            self.put_member(index, counter::START_TSC, counted.start_tsc);
            self.put_member(index, counter::END_TSC, tsc);
        }
        for event in Pinned::ALL {
            self.put(header::TOTAL + event as usize, counted.total[event]);
        }
        self.put(header::TSC, tsc);
    }

    /// Ends the change: tells which counters show more from here on, those in the set of the group
    /// `running`, if any, from a base.
    pub(crate) fn go_on(&mut self, running: Option<(u16, CounterMask, &Counts)>) {
        match running {
            Some((group, set, base)) => self.run(group, set, base),
            None => self.switch.mark_idle(),
        }
        self.switch.end();
    }

    /// In a change, after [`Self::tell`]: tells what was counted of `group`, whose slice has not begun,
    /// after its sums were stated anew for another share. In the overflow path too: bounded as
    /// [`Self::tell`] is.
    #[cold]
    pub(crate) fn restate(&mut self, group: u16, counted: GroupCounts, told: &mut [u64]) {
        for index in self.members_of(group) {
            let Some(Member { event, scale, .. }) = self.members.get(index).copied() else {
                continue;
            };
            // Readers went by the sums before.
            let seen = scaled(self.counter(event.into(), counter::EVENTS), scale);
            if let Some(told) = told.get_mut(usize::from(event)) {
                *told = seen.max(*told);
            }
            if let Some(member) = self.members.get_mut(index) {
                member.scale = 0;
            }
            self.publish_member(index, counted, &mut [None; 2], told);
        }
    }

    /// The members of a group.
    fn members_of(&self, group: u16) -> Range<usize> {
        let first = |group: usize| self.first.get(group).map_or(0, |first| usize::from(*first));
        first(group.into())..first(usize::from(group) + 1)
    }

    fn run(&mut self, group: u16, set: CounterMask, base: &Counts) {
        let mut used = 0;
        for_each_slot(set, |slot| {
            used |= 1 << slot;
            self.put(header::BASE + slot, base.slot(slot));
        });
        self.put(header::USED, used);
        self.switch.run(group, set);
    }

    /// Tells what was counted of a member. `told` is the highest value of each event that the program
    /// may have seen, and `scales` what of [`GroupCounts::scale`] is known already.
    fn publish_member(
        &mut self,
        index: usize,
        counted: GroupCounts,
        scales: &mut PerBase<Option<u64>>,
        told: &mut [u64],
    ) {
        let Some(member) = self.members.get_mut(index) else { return };
        let events = counted.events(member.counter);
        let event = usize::from(member.event);
        let Some(told) = told.get_mut(event) else { return };
        // Up to here readers went by the scale before.
        *told = scaled(events, member.scale).max(*told);
        if !self.exact {
            let scale = &mut scales[member.base as usize];
            member.scale = *scale.get_or_insert_with(|| counted.scale(member.base));
        }
        for (word, value) in [
            (counter::EVENTS, events),
            (counter::SCALE, member.scale),
            (counter::PUBLISHED_MAX, *told),
            (counter::SLICES, counted.moments.slices),
        ] {
            self.put_counter(event, word, value);
        }
    }

    fn put_member(&self, index: usize, word: usize, value: u64) {
        if let Some(member) = self.members.get(index) {
            self.put_counter(member.event.into(), word, value);
        }
    }

    /// The members whose errors are to be told now, so that each gets its turn in so many calls. Exact ones have
    /// none.
    pub(crate) fn due(&mut self, calls: usize) -> impl Iterator<Item = usize> + use<> {
        let events = if self.exact { 0 } else { self.members.len() };
        let first = self.next;
        let count = events.div_ceil(calls.max(1)).max(LEAST_DUE).min(events);
        self.next = if events == 0 { 0 } else { (first + count) % events };
        (first..first + count).map(move |index| index % events)
    }

    /// The event that is a group's member of this number.
    pub(crate) fn event(&self, member: usize) -> Option<usize> {
        self.members.get(member).map(|member| member.event.into())
    }

    /// Tells the error of a member's estimate, and what its estimates go by from here on.
    pub(crate) fn tell_error(
        &mut self,
        index: usize,
        base: Base,
        half_width: f64,
        counted: GroupCounts,
        told: &mut [u64],
    ) {
        if let Some(member) = self.members.get_mut(index) {
            member.base = base;
        }
        self.write(|bank| {
            bank.publish_member(index, counted, &mut [None; 2], told);
            bank.put_member(index, counter::HALF_WIDTH, half_width.to_bits());
        });
    }
}

#[cfg(test)]
mod tests {
    use tally_abi::{bank::HALF_WIDTH_TICKS, session::MAX_EVENTS};

    use super::*;
    use crate::{Demand, Layout, Selector, plan::plan};

    #[test]
    fn every_error_gets_its_turn_in_so_many_calls() {
        for events in [2, 24, 39, MAX_EVENTS] {
            let demand = |event| Demand::general(Selector(event as u64), 1);
            let demands: Vec<_> = (0..events).map(demand).collect();
            let layout = Layout { general: 1, reference: false, extra: 0 };
            let plan = plan(&demands, &layout).unwrap();
            let page = || &*Box::leak(Box::<Page>::default());
            let pages = (0..words(events).div_ceil(PAGE_WORDS)).map(|_| page()).collect();
            let mut bank = Bank::new(page(), pages, &plan, |_| 0).unwrap();
            for calls in [HALF_WIDTH_TICKS, 1, HALF_WIDTH_TICKS] {
                let mut due: Vec<usize> = (0..calls).flat_map(|_| bank.due(calls)).collect();
                due.sort_unstable();
                due.dedup();
                assert_eq!(due.len(), events, "{calls} calls");
            }
        }
    }
}
