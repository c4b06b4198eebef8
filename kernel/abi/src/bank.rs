//! The logical counter bank: a session's counters in pages that the program can read, and a control
//! word with which it stops and starts them all.
//!
//! A header of [`HEADER_WORDS`] is followed by [`COUNTER_WORDS`] for each event of the session, in
//! the order of the list. All words are 64-bit, little-endian, and written by the kernel alone.
//! Before the header lies a page that the program writes too: [`writable`]. So a program reads a
//! logical counter without a system call: the count up to the last publication plus what RDPMC has
//! counted since. The bank implements in software the counter architecture of Salapura and others,
//! "Next-Generation Performance Counters: Towards Monitoring over Thousand Concurrent Events"
//! (ISPASS 2008): low bits in fast registers, the rest in memory.
//!
//! A *slot* identifies a hardware counter. General counters have their own numbers from 0, which
//! are also RDPMC's. From [`PINNED_SLOT`] follow the counters of instructions, cycles and reference
//! cycles, whose RDPMC numbers are at [`header::PINNED_RDPMC`]. The low 32 bits of a counter are
//! enough: the kernel publishes before a counter can count more than that.
//!
//! # Every value is a count times a rate
//! Each event has a *basis*: a pinned counter, and a rate of events per count of the basis. A
//! pinned event is its own basis, at a rate of one. The basis of a multiplexed event is cycles or
//! instructions, which are pinned; its rate is that of the slices in which the event was counted.
//! So numerator and denominator of the estimate come from the same slices, whichever group is on
//! the counters at the moment of reading (decision 20).
//!
//! # The control word
//! [`writable::CONTROL`] is the program's word. Its low half is the group on the hardware counters,
//! plus [`STOPPED`] while counting is stopped; [`DETACHED`] while the session is on no CPU, so that
//! only a system call can start it; or [`BUSY`] while the kernel is writing. Its high half is a
//! version, which each publication changes, and each start without a system call too: adding
//! [`STOPPED`] to the whole word stops a group's counters, and adding it again starts them with the
//! next version.
//!
//! - **Stop**: for each slot of [`header::USED`], store RDPMC minus its word of
//!   [`writable::ORIGIN`] to its word of [`writable::HELD`]. Then add [`STOPPED`].
//! - **Start**: for each of these slots, store RDPMC minus its word of `HELD` to its word of
//!   `ORIGIN`. Then add [`STOPPED`].
//!
//! Both are *restartable sequences* (decision 71). A program that stops or starts its counters
//! without a system call passes to [`crate::syscall::SESSION_MAP`] the address of [`SEQUENCES`]
//! blocks of [`SEQUENCE_BYTES`] with one sequence in each. An interrupt or exception inside a block
//! returns to the block's first instruction. So between a sequence's load of the control word and
//! its last store no other code of the program runs, and the kernel writes nothing. Before that
//! store the sequence changes only words that are not in use. A sequence that has [`READ_BYTES`] of
//! code for each general slot jumps to [`header::READS`] before the end of that code.
//!
//! # Reading
//! 1. Load the control word; if it is [`BUSY`], begin again.
//! 2. Load the counter's [`counter::ASSIGNMENT`]: a slot, the index of a *sum* word, and RDPMC's
//!    ECX. The basis' count is the sum word plus the count since then: RDPMC minus the slot's word
//!    of [`writable::ORIGIN`]; if the control word is [`STOPPED`], the slot's word of
//!    [`writable::HELD`]; if it is [`DETACHED`], 0.
//! 3. The value is count · [`counter::RATE`], or [`counter::PUBLISHED_MAX`] if that is larger.
//! 4. Load the control word again; if it has changed, begin again.
//!
//! # A bank of another program's counts
//! The program that opened a session on another one maps the bank read-only, and the measured
//! program does not map it. RDPMC would read the counters of the reader's own CPU, so the control
//! word is [`DETACHED`] whenever it is not [`BUSY`], and a reader gets the count up to the last
//! publication: the end of the last slice, or the last tick of the scheduler's timer. The control
//! word of such a bank starts and stops nothing.

/// Words of the header.
pub const HEADER_WORDS: usize = 48;
/// Words of a logical counter: two cache lines. Reading its value takes only the first.
pub const COUNTER_WORDS: usize = 16;
/// Words of a page.
pub const PAGE_WORDS: usize = 512;
/// The low half of [`writable::CONTROL`] while the session is on no CPU.
pub const DETACHED: u32 = u32::MAX;
/// The low half of [`writable::CONTROL`] while the kernel writes.
pub const BUSY: u32 = u32::MAX - 1;
/// Bit in the low half of [`writable::CONTROL`]: the program has stopped its counters. Group
/// numbers are below it.
pub const STOPPED: u32 = 1 << 31;
/// Bytes of a block with a restartable sequence, and the alignment of the first.
pub const SEQUENCE_BYTES: u64 = 512;
/// Blocks with restartable sequences: one to stop, one to start.
pub const SEQUENCES: u64 = 2;
/// Bytes of a sequence's code for each general slot.
pub const READ_BYTES: u64 = 19;
/// Slot of the instructions counter; cycles and reference cycles follow.
pub const PINNED_SLOT: usize = 10;
/// Number of all slots.
pub const SLOTS: usize = PINNED_SLOT + 3;
/// Fraction bits of [`counter::RATE`].
pub const RATE_BITS: u32 = 44;
/// [`counter::RATE`] of an event that is its own basis.
pub const RATE_ONE: u64 = 1 << RATE_BITS;

/// Threshold count that stands for no threshold.
pub const NO_THRESHOLD: u64 = u64::MAX;

/// Words of the page that the program writes, by their index. The page's first word is
/// [`PAGE_WORDS`] before the header's.
pub mod writable {
    /// The word that starts and stops all counters.
    pub const CONTROL: usize = 0;
    /// By slot, the low 32 bits: RDPMC minus the count since the last publication. That is
    /// [`super::header::BASE`] plus what the counter counted while the program had stopped its
    /// counters.
    pub const ORIGIN: usize = 8;
    /// By slot, the low 32 bits: the count since the last publication, as of the moment when the
    /// program stopped its counters.
    pub const HELD: usize = 24;
}

/// Words of the header, by their index.
pub mod header {
    /// Mask of the slots whose counters count for the session now.
    pub const USED: usize = 0;
    /// TSC of the last publication.
    pub const TSC: usize = 1;
    /// Events in the bank.
    pub const COUNTERS: usize = 2;
    /// Number of the session.
    pub const SESSION: usize = 3;
    /// Counts of the pinned events up to the last publication: instructions, cycles, reference
    /// cycles.
    pub const TOTAL: usize = 4;
    /// By slot: the counter's value at the last publication.
    pub const BASE: usize = 8;
    /// RDPMC numbers of the counters of instructions, cycles and reference cycles.
    pub const PINNED_RDPMC: usize = 21;
    /// Phase of the last interval that has ended, in the words of [`crate::PhaseState::to_words`];
    /// zeros while there is none.
    pub const PHASE: usize = 24;
    /// Bytes of a sequence's code for the general slots of [`USED`]: the highest slot minus the
    /// lowest plus one, times [`super::READ_BYTES`]; 0 if there is none.
    pub const READS: usize = 32;
    /// The lowest general slot of [`USED`].
    pub const FIRST: usize = 33;
}

/// Words of a logical counter, by their index.
pub mod counter {
    /// Events per count of the basis, a fixed-point number with [`super::RATE_BITS`] fraction bits;
    /// 0 while the event was not counted.
    pub const RATE: usize = 0;
    /// Highest value that a reader can have seen. It replaces a lower value, so that readings never
    /// decrease; it enters no other value.
    pub const PUBLISHED_MAX: usize = 1;
    /// The basis. Bits 0 to 15: its slot. Bits 16 to 31: the index, from the header's first word,
    /// of the word that has its count up to the last publication. High half: RDPMC's ECX.
    pub const ASSIGNMENT: usize = 2;
    /// Events counted, not scaled, up to the last publication of the event's group. With adaptive
    /// shares, restated as if the group had always had its present share of a round.
    pub const EVENTS: usize = 3;
    /// Count of the basis at the last publication of the event's group.
    pub const SEEN_AT: usize = 4;
    /// Slices in which the event was counted.
    pub const SLICES: usize = 5;
    /// TSC at the start of the event's last slice.
    pub const START_TSC: usize = 6;
    /// TSC at the end of the event's last slice. The rate's age is the present TSC minus this word.
    pub const END_TSC: usize = 7;
    /// Half the width of the 95 % interval, in events, of the value at [`HALF_WIDTH_AT`], as an
    /// IEEE double; NaN while it is not known. The kernel computes it again at the latest when the
    /// session has had an eighth more slices, or a round more, and when a system call stops or
    /// reads the session.
    ///
    /// At a basis' count of *x* the half width is at most *h*·(1 + *x*/*x*₀)/2 + *d*·(*x* − *s*),
    /// with *h* this word, *x*₀ [`HALF_WIDTH_AT`], *d* [`DRIFT`] and *s* [`SEEN_AT`], plus the
    /// amount by which [`PUBLISHED_MAX`] is above the value. If the slices since then have moved
    /// the value by more than the first term, *x*·|[`RATE`] − [`RATE_AT`]| / √([`SLICES`] −
    /// [`SLICES_AT`]) replaces that term: the program's behaviour has changed, at an unknown one of
    /// these slices. The half width is that of the whole count: the difference of two readings can
    /// be wrong by the sum of their half widths.
    pub const HALF_WIDTH: usize = 8;
    /// Count of the basis for which [`HALF_WIDTH`] was computed.
    pub const HALF_WIDTH_AT: usize = 9;
    /// Bound, at 95 %, on the deviation of events in slices that no rate covers yet, in events per
    /// count of the basis, as an IEEE double.
    pub const DRIFT: usize = 10;
    /// Share of the time in which the event was counted, in the unit of its basis, 0 to 1, as an
    /// IEEE double; as old as [`HALF_WIDTH`].
    pub const SHARE: usize = 11;
    /// Number of times that a threshold of the event has fired.
    pub const FIRED: usize = 12;
    /// Value of [`RATE`] when [`HALF_WIDTH`] was computed.
    pub const RATE_AT: usize = 13;
    /// Value of [`SLICES`] when [`HALF_WIDTH`] was computed.
    pub const SLICES_AT: usize = 14;
}

/// Words of a bank of `events` events.
pub const fn words(events: usize) -> usize {
    HEADER_WORDS + events * COUNTER_WORDS
}

/// Bytes of a bank of `events` events in whole pages, including the page that the program writes.
pub const fn bytes(events: usize) -> usize {
    (1 + words(events).div_ceil(PAGE_WORDS)) * PAGE_WORDS * size_of::<u64>()
}

/// The value of [`counter::ASSIGNMENT`].
pub const fn assignment(slot: usize, sum_word: usize, ecx: u32) -> u64 {
    slot as u64 | (sum_word as u64) << 16 | (ecx as u64) << 32
}

/// A logical counter's value: `count` of the basis times `rate`, rounded down. Meaningless beyond
/// 64 bits.
pub const fn value(count: u64, rate: u64) -> u64 {
    ((count as u128 * rate as u128) >> RATE_BITS) as u64
}

/// The half width at a basis' count of `count`: see [`counter::HALF_WIDTH`]. NaN while it is not
/// known.
pub fn half_width(words: &[u64; COUNTER_WORDS], count: u64) -> f64 {
    let [half_width, drift] =
        [counter::HALF_WIDTH, counter::DRIFT].map(|word| f64::from_bits(words[word]));
    let unseen = count.saturating_sub(words[counter::SEEN_AT]) as f64;
    let growth = count as f64 / (words[counter::HALF_WIDTH_AT] as f64).max(1.0);
    let estimate = value(count, words[counter::RATE]);
    let raised = words[counter::PUBLISHED_MAX].saturating_sub(estimate) as f64;
    let grown = half_width * (1.0 + growth.max(1.0)) / 2.0;
    let slices = words[counter::SLICES].saturating_sub(words[counter::SLICES_AT]);
    let moved = value(count, words[counter::RATE].abs_diff(words[counter::RATE_AT]));
    let moved = moved as f64 / slices.isqrt().max(1) as f64;
    // A half width that is not known (NaN) stays NaN.
    let of_seen = if moved > grown { moved } else { grown };
    of_seen + drift * unseen + raised
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::MAX_EVENTS;

    #[test]
    fn counters_do_not_cross_pages_or_lines() {
        assert_eq!(HEADER_WORDS % COUNTER_WORDS, 0);
        assert_eq!(PAGE_WORDS % COUNTER_WORDS, 0);
        assert_eq!(bytes(1), 8192);
        assert_eq!(bytes(29), 8192);
        assert_eq!(bytes(30), 12288);
        const { assert!(header::BASE + SLOTS <= header::PINNED_RDPMC) };
        const { assert!(header::PINNED_RDPMC + 3 <= header::PHASE) };
        const {
            assert!(
                header::PHASE + 8 <= header::READS
                    && header::FIRST < HEADER_WORDS
                    && counter::SLICES_AT < COUNTER_WORDS
            )
        };
        const { assert!(writable::ORIGIN + SLOTS <= writable::HELD) };
        const { assert!(writable::HELD + SLOTS <= PAGE_WORDS && words(MAX_EVENTS) < 1 << 16) };
    }

    #[test]
    fn half_widths_grow_with_what_was_not_seen() {
        let mut words = [0; COUNTER_WORDS];
        [words[counter::RATE], words[counter::RATE_AT]] = [RATE_ONE / 2; 2];
        words[counter::HALF_WIDTH] = 10_f64.to_bits();
        words[counter::HALF_WIDTH_AT] = 1000;
        words[counter::SEEN_AT] = 900;
        words[counter::DRIFT] = 0.25_f64.to_bits();
        assert_eq!(half_width(&words, 1000), 10.0 + 25.0);
        assert_eq!(half_width(&words, 2000), 15.0 + 275.0);
        words[counter::PUBLISHED_MAX] = 507;
        assert_eq!(half_width(&words, 1000), 35.0 + 7.0);
        // One slice moves the value by a quarter of the count; or four do.
        words[counter::RATE_AT] = RATE_ONE / 4;
        assert_eq!(half_width(&words, 1000), 250.0 + 25.0 + 7.0);
        [words[counter::SLICES], words[counter::SLICES_AT]] = [14, 10];
        assert_eq!(half_width(&words, 1000), 125.0 + 25.0 + 7.0);
        words[counter::HALF_WIDTH] = f64::NAN.to_bits();
        assert!(half_width(&words, 1000).is_nan());
    }
}
