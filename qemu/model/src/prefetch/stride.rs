//! The L1's prefetcher by instruction pointer: a load instruction with a regular stride.
//!
//! Intel's manual: it detects strides of up to 2 KiB, forward and backward, and requests the next
//! address. Chen, Pei and Carlson, "AfterImage: leaking control flow data and tracking load
//! operations via the hardware prefetcher" (ASPLOS 2023) measured that it has 24 entries, indexed
//! by the lowest 8 bits of the instruction pointer, and requests from the second equal stride on,
//! which is the third load.

use crate::cache::{Cache, WIDE};

const ENTRIES: u32 = 24;
/// Number of values of the lowest 8 bits.
const KEYS: u64 = 1 << 8;
/// The longest stride in bytes.
const LONGEST: i64 = 2048;
/// Number of equal strides after which lines are requested.
const TRUSTED: u8 = 2;

/// State of a load instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The physical address of the instruction's last load.
    address: u64,
    stride: i64,
    /// The number of times that the stride was seen in a row.
    seen: u8,
}

#[derive(Clone, Debug)]
pub(super) struct Strides {
    /// The keys that have an entry; `None` if each key has one.
    known: Option<Cache<WIDE>>,
    entries: Box<[Entry]>,
}

impl Strides {
    pub(super) fn new() -> Strides {
        let entries = vec![Entry::default(); KEYS as usize].into_boxed_slice();
        Strides { known: Some(Cache::new(1, ENTRIES)), entries }
    }

    /// Makes a table of `entries` (a power of two), indexed by the lowest bits of the instruction
    /// pointer.
    pub(super) fn table(entries: usize) -> Strides {
        Strides { known: None, entries: vec![Entry::default(); entries].into_boxed_slice() }
    }

    /// Handles a load by the instruction at `pc` from `address`; returns the line of its next load.
    pub(super) fn load(&mut self, pc: u64, address: u64) -> Option<u64> {
        let key = pc & (self.entries.len() as u64 - 1);
        let entry = &mut self.entries[key as usize];
        if self.known.as_mut().is_some_and(|known| !known.touch(key)) {
            *entry = Entry { address, ..Entry::default() };
            return None;
        }
        let stride = address.wrapping_sub(entry.address) as i64;
        if stride == 0 {
            return None;
        }
        entry.address = address;
        if stride != entry.stride {
            let seen = u8::from(stride.abs() <= LONGEST);
            (entry.stride, entry.seen) = (stride, seen);
            return None;
        }
        entry.seen = (entry.seen + u8::from(entry.seen != 0)).min(TRUSTED);
        (entry.seen == TRUSTED).then(|| address.wrapping_add_signed(stride) >> 6)
    }
}
