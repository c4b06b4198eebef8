//! `epoll`: the ready descriptors among those that a program has registered.
//!
//! A registration belongs to the number of a descriptor and ends when that number is closed.

use alloc::collections::BTreeMap;

/// `EPOLLET`: reports a descriptor again only after it has changed.
const ON_CHANGE: u32 = 1 << 31;
/// `EPOLLONESHOT`: reports a descriptor once.
const ONCE: u32 = 1 << 30;
/// `EPOLLERR` and `EPOLLHUP`, which are always reported.
const ALWAYS: u32 = 0x008 | 0x010;
/// The bits of `events` that are flags, not events.
const FLAGS: u32 = 0xf << 28;

/// A registered descriptor.
pub struct Interest {
    /// Events, and flags.
    pub events: u32,
    /// Value that the program gets with an event.
    pub data: u64,
    /// The change that was reported last.
    seen: Option<u64>,
}

impl Interest {
    /// A registration.
    pub fn new(events: u32, data: u64) -> Interest {
        Interest { events, data, seen: None }
    }

    /// The events to report for a descriptor that is ready for `ready` after `changes` changes.
    pub fn due(&self, ready: u32, changes: u64) -> u32 {
        let events = self.events & !FLAGS;
        let wanted = if events == 0 && self.events & ONCE != 0 { 0 } else { events | ALWAYS };
        let is_new = self.events & ON_CHANGE == 0 || self.seen != Some(changes);
        if is_new { ready & wanted } else { 0 }
    }

    /// Records that the events were reported.
    pub fn reported(&mut self, changes: u64) {
        self.seen = Some(changes);
        if self.events & ONCE != 0 {
            self.events &= FLAGS;
        }
    }
}

/// The registered descriptors, by number.
pub type Epoll = BTreeMap<u64, Interest>;
