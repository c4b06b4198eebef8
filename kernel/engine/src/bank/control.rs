//! The kernel's side of a bank's control word, in the page that the program writes too.
//!
//! The program's writes decide only what is credited to the program itself: a word that no program
//! following the rules would write is treated as untouched. The program and the kernel never write
//! at the same time: the program runs on the CPU that writes, or not at all.

use tally_abi::bank::{BUSY, DETACHED, PINNED_SLOT, STOPPED, writable};

use super::page::Page;
use crate::{
    CounterMask, Counts, Pinned, for_each_counter,
    sync::{Ordering, fence},
};

/// A bank's control word.
#[derive(Debug)]
pub(super) struct ControlWord {
    page: &'static Page,
    /// The high half of the word.
    version: u32,
    /// The low half of the word, as the kernel set it.
    state: u32,
    /// Whether the kernel found that the program has stopped its counters.
    stopped: bool,
    /// Counts of the pinned events that were subtracted, in all.
    deducted: Counts,
}

impl ControlWord {
    pub(super) fn new(page: &'static Page) -> ControlWord {
        let deducted = Counts::default();
        ControlWord { page, version: 0, state: DETACHED, stopped: false, deducted }
    }

    /// The word, as the kernel set it.
    fn word(&self) -> u64 {
        word(self.version, self.state)
    }

    /// Begins a publication.
    #[inline]
    pub(super) fn begin(&self) {
        self.page.store(writable::CONTROL, word(self.version, BUSY), Ordering::Relaxed);
        // Pairs with readers' second load of the control word: a reader that sees a published word
        // sees that the kernel is writing.
        fence(Ordering::Release);
    }

    /// Ends a publication.
    #[inline]
    pub(super) fn end(&mut self) {
        self.version = self.version.wrapping_add(1);
        // Pairs with readers' first load: a reader that sees this word sees the whole publication.
        self.page.store(writable::CONTROL, self.word(), Ordering::Release);
    }

    /// Sets, in a publication, that the counters in `set` count for this group from `bases` on.
    #[inline]
    pub(super) fn attach(&mut self, group: u16, set: CounterMask, bases: &Counts) {
        self.state = group.into();
        self.stopped = false;
        for_each_slot(set, |slot| {
            self.page.store(writable::ORIGIN + slot, bases.slot(slot), Ordering::Relaxed);
        });
    }

    /// Sets, in a publication, that no counter counts from here on.
    #[inline]
    pub(super) fn detach(&mut self) {
        self.state = DETACHED;
    }

    /// Returns whether the program, and not the kernel, ended counting.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Clears the note that the program has stopped its counters.
    pub(super) fn forget_stop(&mut self) {
        self.stopped = false;
    }

    /// Counts of the pinned events that were subtracted because the program had stopped its
    /// counters.
    pub(super) fn deducted(&self) -> Counts {
        self.deducted
    }

    /// Subtracts from `counted`, the counts of the counters in `set` since the last publication,
    /// those of the time in which the program had stopped its counters. Returns whether they are
    /// stopped now. `base` is a counter's value at the last publication.
    #[inline]
    pub(super) fn deduct_stopped(
        &mut self,
        set: CounterMask,
        counted: &mut Counts,
        base: impl Fn(usize) -> u64,
    ) -> bool {
        // The program's writes precede its entry to the kernel, on the same CPU.
        let found = self.page.load(writable::CONTROL);
        if found != self.word() {
            self.deduct_as(found, set, counted, base);
        }
        self.stopped
    }

    #[cold]
    fn deduct_as(
        &mut self,
        found: u64,
        set: CounterMask,
        counted: &mut Counts,
        base: impl Fn(usize) -> u64,
    ) {
        let before = *counted;
        if found as u32 == self.state | STOPPED && self.state < STOPPED {
            self.stopped = true;
            for_each_slot(set, |slot| {
                let held = u64::from(self.page.load(writable::HELD + slot) as u32);
                if let Some(count) = counted.slot_mut(slot) {
                    *count = held.min(*count);
                }
            });
        } else if found as u32 == self.state {
            for_each_slot(set, |slot| {
                let origin = self.page.load(writable::ORIGIN + slot) as u32;
                let skipped = origin.wrapping_sub(base(slot) as u32);
                if let Some(count) = counted.slot_mut(slot) {
                    *count = count.saturating_sub(skipped.into());
                }
            });
        } else {
            return;
        }
        // The next publication must have a version that no reader has seen.
        self.version = (found >> u32::BITS) as u32;
        for event in Pinned::ALL {
            self.deducted[event] += before[event] - counted[event];
        }
    }
}

fn word(version: u32, state: u32) -> u64 {
    u64::from(version) << 32 | u64::from(state)
}

/// Calls `visit` with the slot of each counter in `set`, at most thirteen.
#[inline]
pub(super) fn for_each_slot(set: CounterMask, mut visit: impl FnMut(usize)) {
    for_each_counter(set.general, &mut visit);
    for event in Pinned::ALL {
        if event != Pinned::Reference || set.reference {
            visit(PINNED_SLOT + event as usize);
        }
    }
}
