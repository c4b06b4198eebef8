//! The logical counter bank: a session's counters in pages that the program can read, and a word
//! that starts and stops them all.
//!
//! A header of [`HEADER_WORDS`] and then [`COUNTER_WORDS`] for each event of the session, in the
//! order of the list; all words are 64-bit, little-endian, and written by the kernel alone. Before
//! the header lies a page that the program writes too: [`writable`]. So a program reads a logical counter
//! without a system call: what was counted up to the last slice, and, if the event is on a hardware
//! counter right now, what RDPMC shows beyond that. This is the counter architecture of Salapura and
//! others, "Next-Generation Performance Counters: Towards Monitoring over Thousand Concurrent
//! Events" (ISPASS 2008), in software: low bits in fast registers, the rest in memory.
//!
//! A hardware counter is known by its *slot*: general counters by their own numbers, which are also
//! RDPMC's, from 0; then, from [`PINNED_SLOT`], those of instructions, cycles and reference cycles,
//! for which RDPMC's numbers stand behind [`header::PINNED_RDPMC`]. The low 32 bits of a counter are
//! enough: the kernel writes before more than that can have been counted.
//!
//! # The switch
//! [`writable::CONTROL`] is the program's word. Its low half is the group on the hardware counters; with
//! [`STOPPED`] in it, counting is stopped; [`DETACHED`]: the kernel has ended it, and a system call
//! starts it; [`BUSY`]: the kernel is writing. Its high half is a version: the kernel gives an even
//! one at each change, and the program sets [`RESTARTED`] where it starts again without a system call.
//! Versions tell the two apart: the program changes the word by a compare and exchange, which fails
//! if the kernel came between.
//!
//! - **Stop**: for each slot of [`header::USED`], RDPMC less base less skipped goes to
//!   [`writable::HELD`]. Then the word gets [`STOPPED`].
//! - **Start**: for each of these slots, RDPMC less base less held goes to [`writable::SKIPPED`]. Then the
//!   word loses [`STOPPED`] and gets [`RESTARTED`].
//!
//! The words of `HELD` and `SKIPPED` have the version in their high halves and are changed by a
//! compare and exchange too, after another look at the switch, so that of two who do this, one of
//! whom interrupts the other, the second fails and begins again.
//!
//! # Reading
//! 1. Load the switch; if it is [`BUSY`], begin again.
//! 2. Load what is wanted. An event whose [`counter::ASSIGNMENT`] has the switch's group in its low half
//!    is on the hardware: RDPMC of the place's high half, less the slot's words of
//!    [`header::BASE`] and [`writable::SKIPPED`], has come since; if the switch is [`STOPPED`], the
//!    slot's word of [`writable::HELD`].
//! 3. The event's estimate is (events + what has come) · scale, or what was told if that is more. An
//!    event that is counted in every slice has its count in the header.
//! 4. Load the switch again; if it has changed, begin again.

/// Words of the header.
pub const HEADER_WORDS: usize = 24;
/// Words of a logical counter: a cache line.
pub const COUNTER_WORDS: usize = 8;
/// Words of a page.
pub const PAGE_WORDS: usize = 512;
/// The low half of [`writable::CONTROL`] while the session is on no CPU.
pub const DETACHED: u32 = u32::MAX;
/// The low half of [`writable::CONTROL`] while the kernel writes.
pub const BUSY: u32 = u32::MAX - 1;
/// In the low half of [`writable::CONTROL`]: the program has stopped its counters. No group has so high a
/// number.
pub const STOPPED: u32 = 1 << 31;
/// In the high half of [`writable::CONTROL`]: the program has stopped and started its counters since the
/// last change.
pub const RESTARTED: u32 = 1;
/// In place of its group, an event that is counted in every slice has this plus the index of its
/// word behind [`header::TOTAL`]: no group has so high a number.
pub const PINNED: u64 = 0xffff_fff0;
/// The slot of instructions; those of cycles and reference cycles follow.
pub const PINNED_SLOT: usize = 8;
/// All slots.
pub const SLOTS: usize = PINNED_SLOT + 3;
/// Bits after the point of [`counter::SCALE`].
pub const SCALE_BITS: u32 = 44;
/// [`counter::SCALE`] of an event that was counted all the time.
pub const SCALE_ONE: u64 = 1 << SCALE_BITS;

/// Turns of the scheduler that a running program has, of 10 ms each, in which every [`counter::HALF_WIDTH`] is
/// worked out anew.
pub const HALF_WIDTH_TICKS: usize = 8;

/// In place of a threshold's count: none.
pub const NO_THRESHOLD: u64 = u64::MAX;

/// Words of the program's own page, by their index. Its beginning is [`PAGE_WORDS`] before the
/// header's.
pub mod writable {
    /// The word that starts and stops all counters.
    pub const CONTROL: usize = 0;
    /// By slot: what was counted since the last change while the program had stopped its counters.
    pub const SKIPPED: usize = 8;
    /// By slot: what was counted since the last change when the program stopped its counters.
    pub const HELD: usize = 24;
}

/// Words of the header, by their index.
pub mod header {
    /// The slots whose counters count for the session now, as a mask.
    pub const USED: usize = 0;
    /// TSC of the last change.
    pub const TSC: usize = 1;
    /// Events in the bank.
    pub const COUNTERS: usize = 2;
    /// Of the events counted in every slice, what was counted up to the last change: instructions,
    /// cycles, reference cycles.
    pub const TOTAL: usize = 4;
    /// By slot: what the counter showed at the last change.
    pub const BASE: usize = 8;
    /// RDPMC's numbers of the counters of instructions, cycles and reference cycles.
    pub const PINNED_RDPMC: usize = 19;
}

/// Words of a logical counter, by their index.
pub mod counter {
    /// Events counted, not scaled, up to the end of the event's last slice. Where shares adapt, this and
    /// [`SCALE`] are as if the group had always had the share of a round that it has now.
    pub const EVENTS: usize = 0;
    /// One over the event's share by then, of the cycles or of the instructions, as a fixed-point
    /// number with [`super::SCALE_BITS`] bits after the point; 0 while the event was not counted long
    /// enough to say anything.
    pub const SCALE: usize = 1;
    /// The highest value that a reader can have seen: estimates that come out lower are told as this
    /// one, so that none runs backwards.
    pub const PUBLISHED_MAX: usize = 2;
    /// Low half: the event's group, or [`super::PINNED`] and more. High half: RDPMC's ECX for its
    /// counter.
    pub const ASSIGNMENT: usize = 3;
    /// Half the width of the estimate's 95 % interval, in events, as an IEEE double; NaN while it
    /// is not known. Of the whole count: the difference of two readings can be wrong by the half widths of both
    /// together. While the session counts, up to [`super::HALF_WIDTH_TICKS`] turns of the scheduler older than
    /// the rest; of now where it has been stopped, or read, by a system call.
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

/// Bytes that a bank of so many events takes, in whole pages, the program's own included.
pub const fn bytes(events: usize) -> usize {
    (1 + words(events).div_ceil(PAGE_WORDS)) * PAGE_WORDS * size_of::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_do_not_cross_pages_or_lines() {
        assert_eq!(HEADER_WORDS % COUNTER_WORDS, 0);
        assert_eq!(PAGE_WORDS % COUNTER_WORDS, 0);
        assert_eq!(bytes(1), 8192);
        assert_eq!(bytes(61), 8192);
        assert_eq!(bytes(62), 12288);
        const { assert!(header::BASE + SLOTS <= header::PINNED_RDPMC) };
        const { assert!(header::PINNED_RDPMC + 3 <= HEADER_WORDS && counter::SLICES < COUNTER_WORDS) };
        const {
            assert!(
                writable::SKIPPED + SLOTS <= writable::HELD && writable::HELD + SLOTS <= PAGE_WORDS
            )
        };
    }
}
