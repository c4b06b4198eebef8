//! What `SESSION_THREAD` writes: counts of one thread, not scaled, from which the counts of a part
//! of the program can be estimated as those of the whole are.
//!
//! A header of [`HEADER_WORDS`] is followed by [`EVENT_WORDS`] for each event, in the order of the
//! session's list. All words but the first two only grow. So what the thread did between two
//! calls is their difference. An event was counted all the time if its cycles in that difference
//! are all cycles.

/// Words before those of the events.
pub const HEADER_WORDS: usize = 3;
/// Words of an event.
pub const EVENT_WORDS: usize = 2;

/// The thread's number, as `gettid` returns it.
pub const TID: usize = 0;
/// Nanoseconds since boot.
pub const TIME_NS: usize = 1;
/// Cycles of the thread, at the session's privilege.
pub const CYCLES: usize = 2;
/// Of an event: how often it was counted, not scaled.
pub const EVENTS: usize = 0;
/// Of an event: the cycles of the thread for which the event was on a counter.
pub const COUNTED_CYCLES: usize = 1;

/// Words of a call for `events` events.
pub const fn words(events: usize) -> usize {
    HEADER_WORDS + events * EVENT_WORDS
}
