//! The skew of counts in ring 0: what an overflow interrupt adds to a count, or takes from it.
//!
//! Where the kernel disables counters, a count has the entry to the handler and the exit from it;
//! where counters freeze, it lacks the skid and the delivery (decisions 8 and 23). The same is
//! allowed where the session is switched in and out.
//!
//! Uses floating point: never in the overflow path.

use tally_abi::{Reading, Value};

use super::state::Session;
use crate::{Pinned, plan::CounterAssignment};

/// The most instructions of one entry with its exit. Measured (decision 44): 93.
const SKEW_INSTRUCTIONS: u64 = 110;
/// The most cycles of them, and so the most of an event that happens at most once a cycle. Measured
/// (decision 44): 756, with the interrupt's delivery.
const SKEW_CYCLES: u64 = 900;
/// As [`SKEW_INSTRUCTIONS`], of an interrupt that ends no slice, as one that takes a sample: it
/// stops counting later. Measured (decision 44): 139.
const MID_SLICE_INSTRUCTIONS: u64 = 150;
/// As [`SKEW_CYCLES`], of such an interrupt. Measured (decision 44): 780.
const MID_SLICE_CYCLES: u64 = 1000;
/// Half widths at 95 % in standard errors.
const HALF_WIDTH: f64 = 1.96;

impl Session {
    /// Widens the intervals of events that are counted in ring 0 by their skew. An exact count
    /// becomes an estimate, and the counted events are those at least.
    pub(super) fn add_skew(&self, readings: &mut [Reading]) {
        let stats = self.stats();
        let skew =
            |slice_end, mid_slice| stats.slices * slice_end + stats.spurious_pmis * mid_slice;
        let instructions = skew(SKEW_INSTRUCTIONS, MID_SLICE_INSTRUCTIONS);
        let cycles = skew(SKEW_CYCLES, MID_SLICE_CYCLES);
        let of_ring_0 = self.in_ring_0.iter().zip(&self.plan.assignments);
        for (reading, (in_ring_0, assigned)) in readings.iter_mut().zip(of_ring_0) {
            if !in_ring_0 {
                continue;
            }
            let skew = match assigned {
                CounterAssignment::Pinned(Pinned::Instructions) => instructions,
                _ => cycles,
            };
            widen(&mut reading.value, skew as f64);
            reading.counted = reading.counted.saturating_sub(skew);
        }
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

    use tally_abi::{Mode, SessionConfig};

    use super::*;
    use crate::{Demand, Layout, Selector, Widths};

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
        for (mode, pinned) in [(Mode::User, None), (Mode::Full, Some(1_140.0))] {
            let values = values(mode);
            let widths: Vec<_> = values.iter().map(half_width).collect();
            assert_eq!(widths, [pinned, Some(9_100.0), None], "{values:?}");
        }
    }
}
