//! The skew of counts: the error that interrupts add to a count, or take from it.
//!
//! In ring 0, the kernel disables counters in the handler, so a count contains the entry to the
//! handler and the exit from it (decisions 23 and 50). The same is allowed for when the session is
//! switched in and out. In ring 3, many processors count an interrupt as a retired instruction or
//! branch (decision 51). With a precise sample the processor reloads the counter, and what it had
//! counted since the overflow is lost. The interrupt of such a sample ends no slice.
//!
//! Uses floating point: never in the overflow path.

use alloc::boxed::Box;

use tally_abi::{Mode, Reading, SessionStats, Value};

use crate::{Demand, Pinned, metrics::MOST_SLOTS, plan::CounterAssignment};

/// Upper bound of the instructions of one entry with its exit. Measured (decision 44): 93; as a
/// non-maskable interrupt, from counts of ring 0 (`tests/boot/estimates.rs`): 112.
const SKEW_INSTRUCTIONS: u64 = 130;
/// Upper bound of their cycles, and so of any event that happens at most once per cycle. Measured
/// (decision 44): 756, with the interrupt's delivery.
pub const SKEW_CYCLES: u64 = 900;
/// [`SKEW_INSTRUCTIONS`] for an interrupt that ends no slice, such as one that takes a sample: it
/// stops counting later. Measured by samples of ring 0 (`tests/boot/samples.rs`): 152 on average.
const MID_SLICE_INSTRUCTIONS: u64 = 170;
/// [`SKEW_CYCLES`] for such an interrupt. Measured (decision 44): 780.
const MID_SLICE_CYCLES: u64 = 1000;
/// Standard errors of a half width at 95 %.
const HALF_WIDTH: f64 = 1.96;

/// Properties that determine the skew of a session's counts.
#[derive(Clone, Debug)]
pub(super) struct Skew {
    /// Properties by event.
    events: Box<[EventSkew]>,
    /// Maximum number of instructions as which an interrupt in ring 3 counts.
    overcount: u64,
    /// Slices that were cut while the kernel ran.
    cuts: u64,
}

/// Properties that determine the skew of an event.
#[derive(Clone, Copy, Debug)]
struct EventSkew {
    in_ring_0: bool,
    is_overcounted: bool,
    /// Events that each precise sample can take from the count.
    lost_a_sample: u64,
}

impl Skew {
    /// The skew of the counts of a list of events, in a session of this mode.
    pub(super) fn of(demands: &[Demand], mode: Mode) -> Skew {
        let of = |demand: &Demand| EventSkew {
            in_ring_0: demand.is_in_ring_0(mode),
            is_overcounted: demand.is_overcounted(),
            lost_a_sample: demand.precise.map_or(0, |precision| precision.most_lost.into()),
        };
        Skew { events: demands.iter().map(of).collect(), overcount: 0, cuts: 0 }
    }

    /// Sets the maximum number of instructions as which an interrupt in ring 3 counts.
    pub(super) fn set_overcount(&mut self, overcount: u64) {
        self.overcount = overcount;
    }

    /// Counts a slice that was cut while the kernel ran.
    pub(super) fn note_cut(&mut self) {
        self.cuts += 1;
    }

    /// Widens the intervals of events by the skew of their counts. An exact count becomes an
    /// estimate, and the counted events are reduced to their lower bound.
    pub(super) fn widen(
        &self,
        readings: &mut [Reading],
        stats: &SessionStats,
        assignments: &[CounterAssignment],
    ) {
        for (event, (reading, assigned)) in readings.iter_mut().zip(assignments).enumerate() {
            let skew = self.of_event(event, *assigned, stats);
            if skew > 0 {
                widen(&mut reading.value, skew as f64);
                reading.counted = reading.counted.saturating_sub(skew);
            }
        }
    }

    /// Upper bound of the skew of an event that is `assigned` to a counter.
    pub(super) fn of_event(
        &self,
        event: usize,
        assigned: CounterAssignment,
        stats: &SessionStats,
    ) -> u64 {
        let mid_slice_entries = stats.spurious_pmis + self.cuts;
        let entries =
            |slice_end, mid_slice| stats.slices * slice_end + mid_slice_entries * mid_slice;
        let Some(event) = self.events.get(event) else { return 0 };
        let of_ring_0 = match (event.in_ring_0, assigned) {
            (false, _) => 0,
            (true, CounterAssignment::Pinned(Pinned::Instructions)) => {
                entries(SKEW_INSTRUCTIONS, MID_SLICE_INSTRUCTIONS)
            }
            (true, CounterAssignment::Metric(_)) => {
                MOST_SLOTS * entries(SKEW_CYCLES, MID_SLICE_CYCLES)
            }
            (true, _) => entries(SKEW_CYCLES, MID_SLICE_CYCLES),
        };
        let interrupts = stats.pmis + stats.spurious_pmis + stats.lost_pmis + stats.interruptions;
        let of_ring_3 = if event.is_overcounted { self.overcount * interrupts } else { 0 };
        of_ring_0 + of_ring_3 + event.lost_a_sample * stats.spurious_pmis
    }

    /// Returns whether interrupts may change the count of an event.
    pub(super) fn moves(&self, event: usize) -> bool {
        self.events.get(event).is_some_and(|event| {
            let is_overcounted = event.is_overcounted && self.overcount > 0;
            event.in_ring_0 || is_overcounted || event.lost_a_sample > 0
        })
    }
}

fn widen(value: &mut Value, skew: f64) {
    match value {
        Value::Exact { count } => {
            let (estimate, stderr) = (*count, skew / HALF_WIDTH);
            *value = Value::Estimated { estimate, stderr, half_width_95: skew };
        }
        Value::Estimated { half_width_95, .. } => *half_width_95 += skew,
        Value::NotMeasured { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use tally_abi::{
        Mode, SessionConfig,
        bank::{HEADER_WORDS, counter},
    };

    use super::*;
    use crate::{Layout, Selector, Session, Widths, bank::Page};

    /// The values of instructions, of an event in ring 0 and of one in ring 3, after 9 slices and a
    /// sample.
    fn values(mode: Mode) -> Vec<Value> {
        let layout = Layout { general: 3, reference: false, extra: 0, widths: Widths::of(48) };
        let general = |number| Demand::general(Selector(number), 3);
        let in_ring_0 = Demand { kernel: true, ..general(0) };
        let demands = vec![Demand::pinned(Pinned::Instructions), in_ring_0, general(1)];
        let config = SessionConfig { mode, ..SessionConfig::default() };
        let mut session = Session::open(1, 1, config, 1, demands, &layout).unwrap();
        session.total[Pinned::Instructions] = 7_000;
        session.stats.slices = 9;
        session.stats.spurious_pmis = 1;
        session.final_readings().into_iter().map(|reading| reading.value).collect()
    }

    #[test]
    fn counts_of_ring_0_have_a_half_width_for_each_end_of_a_slice() {
        let half_width = |value: &Value| match *value {
            Value::Estimated { half_width_95, .. } => Some(half_width_95),
            _ => None,
        };
        for (mode, pinned) in [(Mode::User, None), (Mode::Full, Some(1_340.0))] {
            let values = values(mode);
            let widths: Vec<_> = values.iter().map(half_width).collect();
            assert_eq!(widths, [pinned, Some(9_100.0), None], "{values:?}");
        }
    }

    #[test]
    fn interrupts_that_count_as_instructions_widen_those_alone() {
        let layout = Layout { general: 3, reference: false, extra: 0, widths: Widths::of(48) };
        let branches = Demand { retired: true, ..Demand::general(Selector(0), 3) };
        let pinned = [Pinned::Instructions, Pinned::Cycles].map(Demand::pinned);
        let demands = [&pinned[..], &[branches, Demand::general(Selector(1), 3)]].concat();
        let config = SessionConfig::default();
        let mut session = Session::open(1, 1, config, 1, demands, &layout).unwrap();
        session.total[Pinned::Instructions] = 7_000;
        session.stats.pmis = 9;
        let is_exact = |reading: Reading| matches!(reading.value, Value::Exact { .. });
        assert!(session.final_readings().into_iter().take(2).all(is_exact));
        session.set_overcount(2);
        session.note_interruption();
        let half_widths: Vec<_> = session
            .final_readings()
            .iter()
            .map(|reading| match reading.value {
                Value::Estimated { half_width_95, .. } => half_width_95,
                _ => 0.0,
            })
            .collect();
        assert_eq!(half_widths[..2], [20.0, 0.0]);
    }

    /// The bank's exact counts would have a half width of 0, which would be false.
    #[test]
    fn errors_of_counts_that_interrupts_move_are_not_known_in_a_bank() {
        let layout = Layout { general: 3, reference: false, extra: 0, widths: Widths::of(48) };
        for (overcount, mode, known) in
            [(0, Mode::User, true), (1, Mode::User, false), (0, Mode::Full, false)]
        {
            let demands = vec![Demand::pinned(Pinned::Instructions)];
            let config = SessionConfig { mode, ..SessionConfig::default() };
            let mut session = Session::open(1, 1, config, 1, demands, &layout).unwrap();
            session.set_overcount(overcount);
            let [own, page]: [&'static Page; 2] = [(); 2].map(|()| &*Box::leak(Box::default()));
            assert!(session.map_bank(own, [page].into(), |_| 0));
            let half_width = f64::from_bits(page.load(HEADER_WORDS + counter::HALF_WIDTH));
            assert_eq!(half_width == 0.0, known, "{overcount} {mode:?}");
            assert_eq!(half_width.is_nan(), !known);
        }
    }
}
