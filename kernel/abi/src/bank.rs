//! The logical counter bank: a session's counters in pages that the program can read.
//!
//! A header of [`HEADER_WORDS`] and then [`COUNTER_WORDS`] for each event of the session, in the
//! order of the list; all words are 64-bit, little-endian, and written by the kernel alone. So a
//! program reads a logical counter without a system call: what was counted up to the last slice,
//! and, if the event is on a hardware counter right now, what RDPMC shows beyond that. This is the
//! counter architecture of Salapura and others, "Next-Generation Performance Counters: Towards
//! Monitoring over Thousand Concurrent Events" (ISPASS 2008), in software: low bits in fast
//! registers, the rest in memory.
//!
//! # Reading
//! 1. Load [`header::SEQUENCE`]; if it is odd, the kernel is writing: begin again.
//! 2. Load what is wanted. An event whose [`counter::PLACE`] has the group of [`header::GROUP`] in
//!    its low half is on the hardware: RDPMC of the place's high half, less the counter's word of
//!    [`header::BASE`], has come since; its low 32 bits do, as the kernel writes before more can
//!    have come.
//! 3. The event's estimate is (events + what has come) · scale, or what was told if that is more. An
//!    event that is counted in every slice has its count in the header, and RDPMC goes with
//!    [`header::ALWAYS_BASE`].
//! 4. Load the sequence again; if it has changed, begin again.

/// Words of the header.
pub const HEADER_WORDS: usize = 24;
/// Words of a logical counter: a cache line.
pub const COUNTER_WORDS: usize = 8;
/// Words of a page.
pub const PAGE_WORDS: usize = 512;
/// [`header::GROUP`] while the session is on no CPU.
pub const NOBODY: u64 = u32::MAX as u64;
/// In place of its group, an event that is counted in every slice has this plus the index of its
/// word behind [`header::TOTAL`]: no group has so high a number.
pub const ALWAYS: u64 = 0xffff_fff0;
/// Bits after the point of [`counter::SCALE`].
pub const SCALE_BITS: u32 = 44;
/// [`counter::SCALE`] of an event that was counted all the time.
pub const SCALE_ONE: u64 = 1 << SCALE_BITS;

/// Words of the header, by their index.
pub mod header {
    /// Odd while the kernel writes; another number after each change.
    pub const SEQUENCE: usize = 0;
    /// The group that is on the hardware counters, or [`super::NOBODY`].
    pub const GROUP: usize = 1;
    /// TSC of the last change.
    pub const TSC: usize = 2;
    /// Events in the bank.
    pub const COUNTERS: usize = 3;
    /// Of the events counted in every slice, what was counted up to the last change: instructions,
    /// cycles, reference cycles.
    pub const TOTAL: usize = 4;
    /// What each general counter showed at the last change.
    pub const BASE: usize = 8;
    /// What the counters of instructions, cycles and reference cycles showed at the last change.
    pub const ALWAYS_BASE: usize = 16;
}

/// Words of a logical counter, by their index.
pub mod counter {
    /// Events counted, not scaled, up to the end of the event's last slice.
    pub const EVENTS: usize = 0;
    /// One over the event's share by then, of the cycles or of the instructions, as a fixed-point
    /// number with [`super::SCALE_BITS`] bits after the point; 0 while the event was not counted long
    /// enough to say anything.
    pub const SCALE: usize = 1;
    /// The highest value that a reader can have seen: estimates that come out lower are told as this
    /// one, so that none runs backwards.
    pub const TOLD: usize = 2;
    /// Low half: the event's group, or [`super::ALWAYS`] and more. High half: RDPMC's ECX for its counter.
    pub const PLACE: usize = 3;
    /// Half the width of the estimate's 95 % interval, in events, as an IEEE double; NaN while it
    /// is not known. Up to a scheduler's turn older than the rest.
    pub const HALF_WIDTH: usize = 4;
    /// TSC at the start of the event's last slice.
    pub const START_TSC: usize = 5;
    /// TSC at the end of the event's last slice: now less this is the value's age.
    pub const END_TSC: usize = 6;
    /// Slices in which the event was counted.
    pub const SLICES: usize = 7;
}

/// Words of a bank of so many events.
pub const fn words(events: usize) -> usize {
    HEADER_WORDS + events * COUNTER_WORDS
}

/// Bytes that a bank of so many events takes, in whole pages.
pub const fn bytes(events: usize) -> usize {
    words(events).div_ceil(PAGE_WORDS) * PAGE_WORDS * size_of::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_do_not_cross_pages_or_lines() {
        assert_eq!(HEADER_WORDS % COUNTER_WORDS, 0);
        assert_eq!(PAGE_WORDS % COUNTER_WORDS, 0);
        assert_eq!(bytes(1), 4096);
        assert_eq!(bytes(61), 4096);
        assert_eq!(bytes(62), 8192);
        const { assert!(header::ALWAYS_BASE + 3 <= HEADER_WORDS && counter::SLICES < COUNTER_WORDS) };
    }
}
