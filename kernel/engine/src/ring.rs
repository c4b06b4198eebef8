//! The trace ring: carries records out of the overflow path, without a lock.
//!
//! One ring per CPU. There is one producer, the engine on that CPU with the overflow interrupt held
//! off or in it (as an NMI too: it never waits), and one consumer, on any CPU. A full ring takes no
//! record and counts it as lost, so at every moment
//!
//! written = read + lost + what lies in the ring.
//!
//! Slots are atomics, so there is no unsafe code: a second producer would garble records, never
//! memory.

use alloc::boxed::Box;

use tally_abi::trace::{RECORD_WORDS, SampleRecord, SliceRecord, ThresholdRecord};

use crate::{
    Sink,
    sync::{AtomicU64, Ordering},
};

/// A record as it lies in the ring.
pub type Words = [u64; RECORD_WORDS];

/// A ring of trace records.
#[derive(Debug)]
pub struct Ring {
    slots: Box<[[AtomicU64; RECORD_WORDS]]>,
    /// Records put in; only the producer writes it.
    head: AtomicU64,
    /// Records taken out; only the consumer writes it.
    tail: AtomicU64,
    /// Records for which there was no room; only the producer writes it.
    lost: AtomicU64,
}

/// How many records a ring has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Offered by the producer.
    pub written: u64,
    /// Taken by the consumer.
    pub read: u64,
    /// Refused for want of room.
    pub lost: u64,
}

impl Ring {
    /// A ring for `capacity` records. Allocates; nothing after it does.
    pub fn new(capacity: usize) -> Ring {
        let slot = || core::array::from_fn(|_| AtomicU64::new(0));
        Ring {
            slots: (0..capacity).map(|_| slot()).collect(),
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Puts a record in, or counts it as lost: whether it went in. Producer only.
    pub fn push(&self, words: &Words) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        // Pairs with the Release in `pop`: the slot's old words were read before it is reused.
        let tail = self.tail.load(Ordering::Acquire);
        let room = head.wrapping_sub(tail) < self.slots.len() as u64;
        let Some(slot) = self.slot(head).filter(|_| room) else {
            let lost = self.lost.load(Ordering::Relaxed);
            self.lost.store(lost.wrapping_add(1), Ordering::Relaxed);
            return false;
        };
        for (slot, word) in slot.iter().zip(words) {
            slot.store(*word, Ordering::Relaxed);
        }
        // Pairs with the Acquire in `pop`: whoever sees the new head sees the words.
        self.head.store(head.wrapping_add(1), Ordering::Release);
        true
    }

    /// Takes the oldest record out. Consumer only.
    pub fn pop(&self) -> Option<Words> {
        let tail = self.tail.load(Ordering::Relaxed);
        // Pairs with the Release in `push`.
        let head = self.head.load(Ordering::Acquire);
        if head == tail {
            return None;
        }
        let slot = self.slot(tail)?;
        let words = core::array::from_fn(|i| slot[i].load(Ordering::Relaxed));
        // Pairs with the Acquire in `push`.
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
        Some(words)
    }

    /// The counts; while the producer or the consumer runs, each by itself is exact.
    pub fn status(&self) -> Status {
        let lost = self.lost.load(Ordering::Relaxed);
        let head = self.head.load(Ordering::Relaxed);
        let read = self.tail.load(Ordering::Relaxed);
        Status { written: head.wrapping_add(lost), read, lost }
    }

    fn slot(&self, position: u64) -> Option<&[AtomicU64; RECORD_WORDS]> {
        self.slots.get(position.checked_rem(self.slots.len() as u64)? as usize)
    }
}

impl Sink for &Ring {
    fn record(&mut self, record: impl FnOnce() -> SliceRecord) {
        self.push(&record().to_words());
    }

    fn threshold(&mut self, record: ThresholdRecord) {
        self.push(&record.to_words());
    }

    fn sample(&mut self, record: SampleRecord) {
        self.push(&record.to_words());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn words(n: u64) -> Words {
        [n; RECORD_WORDS]
    }

    #[test]
    fn nothing_is_lost_in_silence() {
        let ring = Ring::new(3);
        assert_eq!((0..5).filter(|n| ring.push(&words(*n))).count(), 3);
        assert_eq!(ring.pop(), Some(words(0)));
        assert!(ring.push(&words(5)));
        for expected in [1, 2, 5] {
            assert_eq!(ring.pop(), Some(words(expected)));
        }
        assert_eq!(ring.pop(), None);
        assert_eq!(ring.status(), Status { written: 6, read: 4, lost: 2 });
    }

    #[test]
    fn a_ring_without_slots_loses_everything() {
        let ring = Ring::new(0);
        assert!(!ring.push(&words(1)));
        assert_eq!((ring.pop(), ring.status().lost), (None, 1));
    }
}
