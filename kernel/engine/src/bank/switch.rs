//! The kernel's side of a bank's switch: the page that the program writes too.
//!
//! What the program writes there decides what is credited to the program itself, and nothing else:
//! what makes no sense is taken for a switch that was not touched. The program and the kernel never
//! write at the same time, as the program runs on the CPU that writes, or not at all.

use tally_abi::bank::{BUSY, DETACHED, PINNED_SLOT, RESTARTED, STOPPED, writable};

use super::Page;
use crate::{
    CounterMask, Counts, Pinned, for_each_counter,
    sync::{Ordering, fence},
};

/// A bank's switch.
#[derive(Debug)]
pub(super) struct Switch {
    page: &'static Page,
    /// The high half of the word: even.
    version: u32,
    /// The low half of the word, as the kernel set it.
    state: u32,
    /// Whether the program was found to have stopped its counters.
    stopped: bool,
}

impl Switch {
    pub(super) fn new(page: &'static Page) -> Switch {
        Switch { page, version: 0, state: DETACHED, stopped: false }
    }

    /// The word, as the kernel set it.
    fn word(&self) -> u64 {
        word(self.version, self.state)
    }

    /// Begins a change.
    #[inline]
    pub(super) fn begin(&self) {
        self.page.store(writable::CONTROL, word(self.version, BUSY), Ordering::Relaxed);
        // Pairs with readers' second load of the word: who sees a word of the change sees that the
        // kernel is writing.
        fence(Ordering::Release);
    }

    /// Ends it.
    #[inline]
    pub(super) fn end(&mut self) {
        self.version = self.version.wrapping_add(2);
        // Pairs with readers' first load: who sees this word sees all of the change.
        self.page.store(writable::CONTROL, self.word(), Ordering::Release);
    }

    /// In a change: from here on the counters in `set` count for this group.
    #[inline]
    pub(super) fn run(&mut self, group: u16, set: CounterMask) {
        self.state = group.into();
        self.stopped = false;
        let none = word(self.version.wrapping_add(2), 0);
        for_each_slot(set, |slot| {
            self.page.store(writable::SKIPPED + slot, none, Ordering::Relaxed)
        });
    }

    /// In a change: from here on nothing counts.
    #[inline]
    pub(super) fn mark_idle(&mut self) {
        self.state = DETACHED;
    }

    /// Whether the program, and not the kernel, ended counting.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Takes off `counted`, counts since the last change of the counters in `set`, what was counted
    /// while the program had stopped them; whether they are stopped now.
    #[inline]
    pub(super) fn discount(&mut self, set: CounterMask, counted: &mut Counts) -> bool {
        // The program's writes come before its entry to the kernel.
        let found = self.page.load(writable::CONTROL);
        if found != self.word() {
            self.discount_as(found, set, counted);
        }
        self.stopped
    }

    #[cold]
    fn discount_as(&mut self, found: u64, set: CounterMask, counted: &mut Counts) {
        let again = u64::from(RESTARTED) << 32;
        if found & !again == self.word() | u64::from(STOPPED) {
            self.stopped = true;
            for_each_slot(set, |slot| {
                let held = u64::from(self.page.load(writable::HELD + slot) as u32);
                if let Some(count) = counted.slot_mut(slot) {
                    *count = held.min(*count);
                }
            });
        } else if found == self.word() | again {
            for_each_slot(set, |slot| {
                let skipped = u64::from(self.page.load(writable::SKIPPED + slot) as u32);
                if let Some(count) = counted.slot_mut(slot) {
                    *count = count.saturating_sub(skipped);
                }
            });
        }
    }
}

fn word(version: u32, state: u32) -> u64 {
    u64::from(version) << 32 | u64::from(state)
}

/// Calls `visit` with the slot of each counter in `set`, of which there are at most eleven.
#[inline]
pub(super) fn for_each_slot(set: CounterMask, mut visit: impl FnMut(usize)) {
    for_each_counter(set.general, &mut visit);
    for event in Pinned::ALL {
        if event != Pinned::Reference || set.reference {
            visit(PINNED_SLOT + event as usize);
        }
    }
}
