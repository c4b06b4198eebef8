//! A hybrid counter: 12 low bits in a register with a carry latch, 52 high bits in a word of memory
//! that the maintenance machine updates (Salapura and others, ISPASS 2008, sections 4 and 5).
//!
//! The machine visits one counter in each cycle, in turn, so that it visits each one every
//! [`ROUND_CYCLES`] cycles. A cycle has at most [`MOST_EVENTS`] events, so two carries of a counter
//! are at least that far apart: no carry finds its latch set, and a counter whose upper bits match
//! is armed before its next carry.

/// The counters of a unit.
pub(crate) const COUNTERS: usize = 256;
/// The bits in the fast register.
pub(crate) const LOW_BITS: u32 = 12;
/// Events from one carry to the next.
const CARRY_EVENTS: u64 = 1 << LOW_BITS;
const LOW: u64 = CARRY_EVENTS - 1;
/// Mask of the bits that the word of memory has.
pub(crate) const WORD: u64 = !LOW;
/// Cycles from one visit of a counter to the next.
pub(crate) const ROUND_CYCLES: u64 = COUNTERS as u64;
/// Maximum events of a counter in a cycle.
pub(crate) const MOST_EVENTS: u64 = CARRY_EVENTS / ROUND_CYCLES;

/// A span of time, in core cycles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycles {
    /// The cycle before the span.
    pub(super) from: u64,
    /// The last cycle of the span.
    pub(super) to: u64,
}

impl Cycles {
    /// Returns whether the machine visits counter `index` in this time.
    fn has_visit(self, index: usize) -> bool {
        let visits = |cycle: u64| (cycle + ROUND_CYCLES - index as u64) / ROUND_CYCLES;
        visits(self.to) > visits(self.from)
    }

    /// The cycle of event number `event` of `events`, if they are evenly spaced.
    fn of_event(self, event: u64, events: u64) -> u64 {
        let passed = u128::from(self.to - self.from) * u128::from(event);
        self.from + passed.div_ceil(u128::from(events)) as u64
    }
}

/// A hybrid counter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HybridCounter {
    /// The fast register, below [`CARRY_EVENTS`].
    low: u64,
    /// The carry latch: the register has rolled over since the last visit.
    carry: bool,
    /// The word in memory: bits 63:12 of the value, in place.
    word: u64,
    /// The threshold's word: bits 63:12, in place.
    threshold: u64,
    /// Whether the threshold raises an interrupt.
    interrupts: bool,
    /// The match indicator: the next carry raises the interrupt.
    armed: bool,
}

impl HybridCounter {
    /// The value, including a carry that is not in the word yet.
    pub(super) fn value(&self) -> u64 {
        let carry = if self.carry { CARRY_EVENTS } else { 0 };
        self.word.wrapping_add(carry) | self.low
    }

    /// Sets the value.
    pub(super) fn set_value(&mut self, value: u64) {
        (self.low, self.word) = (value & LOW, value & WORD);
        self.carry = false;
        self.visit();
    }

    /// The threshold's word, in place.
    pub(super) fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Sets the threshold's word, in place.
    pub(super) fn set_threshold(&mut self, word: u64) {
        self.threshold = word;
        self.visit();
    }

    /// Sets whether the threshold raises an interrupt.
    pub(super) fn set_interrupts(&mut self, interrupts: bool) {
        self.interrupts = interrupts;
        self.visit();
    }

    /// Returns whether the threshold raises an interrupt.
    pub(super) fn has_interrupts(&self) -> bool {
        self.interrupts
    }

    /// Visits the counter: adds the carry to the word and compares the word with the threshold's.
    /// Software's writes go through the same memory port, and end in the same comparison.
    fn visit(&mut self) {
        if std::mem::take(&mut self.carry) {
            self.word = self.word.wrapping_add(CARRY_EVENTS);
        }
        self.armed = self.interrupts && self.word == self.threshold;
    }

    /// Rolls the register over. Returns whether the carry raises the interrupt.
    fn carry_out(&mut self) -> bool {
        debug_assert!(!self.carry, "a carry is lost");
        self.carry = true;
        self.armed
    }

    /// Counts events of counter number `index`, spaced evenly over `time`, at most [`MOST_EVENTS`]
    /// for each of its cycles. A visit in the cycle of a carry comes before the carry. Returns
    /// whether the interrupt is raised.
    pub(super) fn count(&mut self, events: u64, time: Cycles, index: usize) -> bool {
        let skipped = self.skip(events);
        let (mut left, mut fires) = (events - skipped, false);
        let mut rest = Cycles { from: time.of_event(skipped, events.max(1)), to: time.to };
        while left >= CARRY_EVENTS - self.low {
            left -= CARRY_EVENTS - self.low;
            self.low = 0;
            let now = time.of_event(events - left, events);
            if (Cycles { to: now, ..rest }).has_visit(index) {
                self.visit();
            }
            fires |= self.carry_out();
            rest.from = now;
        }
        self.low += left;
        if rest.has_visit(index) {
            self.visit();
        }
        fires
    }

    /// Counts all events but those of the last two carries at once, if no threshold can fire.
    /// Returns how many.
    fn skip(&mut self, events: u64) -> u64 {
        let skipped = events.saturating_sub(2 * CARRY_EVENTS) & WORD;
        if self.interrupts || skipped == 0 {
            return 0;
        }
        // The skipped events take a round or more.
        self.visit();
        self.word = self.word.wrapping_add(skipped);
        skipped
    }

    /// Events until the threshold fires: at the carry out of the threshold's word.
    pub(super) fn events_to_fire(&self) -> u64 {
        let left = self.threshold.wrapping_add(CARRY_EVENTS).wrapping_sub(self.value());
        // At that very value the threshold has fired, and fires again after 2^64 events.
        if left == 0 { u64::MAX } else { left }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reference: the machine as drawn in the paper (figures 3 and 4), event by event and cycle by
    /// cycle.
    #[derive(Default)]
    struct Drawn {
        low: u64,
        carry: bool,
        word: u64,
        armed: bool,
        fired_at: Vec<u64>,
    }

    impl Drawn {
        fn cycle(&mut self, cycle: u64, index: usize, events: u64, threshold: u64) {
            if cycle % ROUND_CYCLES == index as u64 {
                self.word += u64::from(self.carry);
                self.carry = false;
                self.armed = self.word == threshold;
            }
            for _ in 0..events {
                self.low = (self.low + 1) % CARRY_EVENTS;
                if self.low == 0 {
                    if self.armed {
                        self.fired_at.push(cycle);
                    }
                    assert!(!self.carry, "lost at {cycle}");
                    self.carry = true;
                }
            }
        }
    }

    proptest! {
        /// The counter equals the drawn one, however the events of equal cycles are grouped.
        #[test]
        fn it_is_the_machine_of_the_paper(
            index in 0..COUNTERS,
            rate in 0..=MOST_EVENTS,
            threshold in 0..20_u64,
            interrupts: bool,
            spans in prop::collection::vec(1..900_u64, 1..30),
        ) {
            let (mut drawn, mut counter) = (Drawn::default(), HybridCounter::default());
            let mut now = 0;
            drawn.cycle(now, index, 0, threshold);
            counter.set_threshold(threshold << LOW_BITS);
            counter.set_interrupts(interrupts);
            drawn.armed = threshold == 0;
            let mut fired = Vec::new();
            for span in spans {
                (now + 1..=now + span).for_each(|at| drawn.cycle(at, index, rate, threshold));
                let time = Cycles { from: now, to: now + span };
                if counter.count(rate * span, time, index) {
                    fired.push(time);
                }
                now += span;
                prop_assert_eq!(counter.low, drawn.low);
                prop_assert_eq!(counter.carry, drawn.carry);
                prop_assert_eq!(counter.word >> LOW_BITS, drawn.word);
                prop_assert_eq!(counter.armed, interrupts && drawn.armed);
            }
            let fired_at = if interrupts { drawn.fired_at } else { Vec::new() };
            for at in &fired_at {
                prop_assert!(fired.iter().any(|time| time.from < *at && *at <= time.to));
            }
            prop_assert_eq!(fired.is_empty(), fired_at.is_empty());
        }
    }

    #[test]
    fn a_counter_is_armed_at_a_visit_and_by_a_write() {
        let mut counter = HybridCounter::default();
        counter.set_threshold(CARRY_EVENTS);
        counter.set_interrupts(true);
        assert!(!counter.armed);
        // The carry comes in the cycle of a visit, after it: the next visit is a round later.
        let round = |number| number * ROUND_CYCLES;
        assert!(!counter.count(CARRY_EVENTS, Cycles { from: 0, to: round(1) }, 0));
        assert!(!counter.count(0, Cycles { from: round(1), to: round(2) - 1 }, 0));
        assert!(!counter.armed && counter.value() == CARRY_EVENTS);
        assert!(!counter.count(0, Cycles { from: round(2) - 1, to: round(2) }, 0));
        assert!(counter.armed);
        counter.set_value(LOW);
        assert!(!counter.armed);
        counter.set_threshold(0);
        assert!(counter.armed && counter.events_to_fire() == 1);
        assert!(counter.count(1, Cycles { from: round(2), to: round(2) + 1 }, 0));
    }

    #[test]
    fn the_last_value_wraps_to_zero() {
        let mut counter = HybridCounter::default();
        counter.set_threshold(WORD);
        counter.set_interrupts(true);
        counter.set_value(u64::MAX - 1);
        assert_eq!(counter.events_to_fire(), 2);
        assert!(counter.count(3, Cycles { from: 0, to: 600 }, 9));
        assert_eq!(counter.value(), 1);
        counter.set_value(0);
        counter.set_threshold(WORD);
        assert_eq!(counter.events_to_fire(), u64::MAX);
    }
}
