//! Detection of the interval at which a program changed its phase: successive intervals have the
//! same class, and it is not the program's phase so far.
//!
//! The classes already define how large a change must be: an interval leaves its class if its costs
//! differ by the unit, and a vector whose bars cross the boundary stays with the nearer mean. An
//! interval in which a program changes is a mixture, and one interval of another class can be an
//! outlier. So a change takes two intervals, at least one of them sure, or three unsure ones. A
//! class that begins has already had its second interval: it is a change at once.

use tally_abi::phase::OTHERS;

use super::classify::Class;

/// Points of successive intervals that make a change.
const CHANGE: u8 = 3;
/// Points of an interval whose class is sure, and of an interval whose class is not.
const SURE: u8 = 2;
const UNSURE: u8 = 1;

/// Detects changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detector {
    /// The program's phase, once there is one.
    phase: Option<u8>,
    /// Phase of the last interval, and the points of the run of intervals with that phase.
    last: u8,
    points: u8,
}

impl Detector {
    /// Observes the next interval's class. Returns whether the program has changed, in this
    /// interval or the two before it.
    #[inline]
    pub fn observe(&mut self, class: Class) -> bool {
        let Class { phase, sure, begins } = class;
        let before = if self.last == phase { self.points } else { 0 };
        let points = before.saturating_add(if sure { SURE } else { UNSURE });
        (self.last, self.points) = (phase, points);
        let known = *self.phase.get_or_insert(phase);
        // Vectors without a class can belong to several phases.
        let changed = phase != known && phase != OTHERS && (begins || points >= CHANGE);
        if changed {
            self.phase = Some(phase);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks, in tests, a class that begins.
    const NEW: u8 = 9;

    fn changes(phases: &[u8]) -> std::vec::Vec<usize> {
        let mut detector = Detector::default();
        let class = |phase: u8| Class { phase, sure: true, begins: phase == NEW };
        let found = phases.iter().enumerate().filter(|(_, phase)| detector.observe(class(**phase)));
        found.map(|(index, _)| index).collect()
    }

    #[test]
    fn a_change_is_found_in_its_second_interval_and_an_outlier_is_none() {
        assert_eq!(changes(&[0, 0, 0, 1, 0, 0, 2, 1, 1, 1, 0, 0]), [8, 11]);
        assert_eq!(changes(&[0, 0, NEW, 0, 0]), [2, 4]);
        let unsure = Class { phase: 1, sure: false, begins: false };
        let mut detector = Detector::default();
        assert!(!detector.observe(Class { phase: 0, ..unsure }));
        assert_eq!([unsure; 4].map(|class| detector.observe(class)), [false, false, true, false]);
        // A program's first phase is no change, whatever its number.
        assert_eq!(changes(&[3, 3, 3]), []);
        // Alternating phases are no changes: neither lasts.
        assert_eq!(changes(&[0, 1, 0, 1, 0, 1, 2, 0]), []);
    }

    #[test]
    fn what_has_no_class_is_no_phase_to_change_to() {
        assert_eq!(changes(&[0, 0, OTHERS, OTHERS, OTHERS, 0, 0, 1, 1]), [8]);
    }
}
