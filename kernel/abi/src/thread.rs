//! The words that `SESSION_THREAD` writes: one thread's counts, not scaled. The counts of a part of
//! the program can be estimated from them in the same way as those of the whole.
//!
//! A header of [`HEADER_WORDS`] is followed by [`EVENT_WORDS`] for each event, in the order of the
//! session's list. All words but the first two only grow, so the thread's work between two calls is
//! the difference of the words. An event was counted all the time if its cycles in that difference
//! equal all cycles.

/// Words before those of the events.
pub const HEADER_WORDS: usize = 4;
/// Words of an event.
pub const EVENT_WORDS: usize = 3;

/// The thread's number, as `gettid` returns it.
pub const TID: usize = 0;
/// Nanoseconds since boot.
pub const TIME_NS: usize = 1;
/// Cycles of the thread, at the session's privilege.
pub const CYCLES: usize = 2;
/// Instructions of the thread, at the session's privilege.
pub const INSTRUCTIONS: usize = 3;
/// Word of an event: its count, not scaled.
pub const EVENTS: usize = 0;
/// Word of an event: the cycles of the thread for which the event was on a counter.
pub const COUNTED_CYCLES: usize = 1;
/// Word of an event: the instructions of the thread for which the event was on a counter.
pub const COUNTED_INSTRUCTIONS: usize = 2;

/// Words of a call for `events` events.
pub const fn words(events: usize) -> usize {
    HEADER_WORDS + events * EVENT_WORDS
}
