//! Perf's form of events, and the output of `perf stat`.

use tally_engine::{Metric, Pinned};
use tally_pmu::Resolved;
use tally_vpmu::Vendor;

/// The line between the program's output and perf's.
pub const COUNTS: &str = "---- tally: counts ----";
/// The bits of an event select that define the event: code (with AMD's high bits), unit mask, edge,
/// invert, counter mask.
const EVENT_BITS: u64 = 0xf_ff84_ffff;

/// An event's count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Count {
    /// A count that perf has scaled to the whole time.
    Counted {
        /// Number of events.
        estimate: u64,
        /// The share of the time for which the event was on a counter, 0 to 1.
        coverage: f64,
    },
    /// The event had no turn.
    NotCounted,
    /// Linux cannot count the event.
    NotSupported,
}

/// The event select of an event, and the value of its extra register.
pub fn select(event: &Resolved, vendor: Vendor) -> (u64, Option<u64>) {
    if let Some(Metric(place)) = event.demand.metric {
        // Linux counts it only beside `slots`.
        return ((0x80 + u64::from(place)) << 8, None);
    }
    let select = match (event.demand.pinned, vendor) {
        (None, _) => event.demand.selector.0 & EVENT_BITS,
        // Events of fixed counters have a select for Linux too: SDM volume 3, table 20-1
        // (architectural events) and Linux's pseudo-encoding of reference cycles.
        (Some(Pinned::Instructions), _) => 0xc0,
        (Some(Pinned::Cycles), Vendor::Intel) => 0x3c,
        (Some(Pinned::Cycles), Vendor::Amd) => 0x76,
        (Some(Pinned::Reference), _) => 0x300,
    };
    (select, event.demand.extra.map(|extra| extra.value))
}

/// The name under which perf prints the event with this index.
pub fn name(index: usize) -> String {
    format!("event{index}")
}

/// The counts after the line [`COUNTS`] of an output, in the order of `count` events; `None` if one
/// is missing.
pub fn counts(output: &str, count: usize) -> Option<Vec<Count>> {
    let (_, printed) = output.rsplit_once(COUNTS)?;
    let find = |index| {
        let name = name(index);
        printed.lines().find_map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let is_it = cells.get(2)?.split(':').next() == Some(&*name);
            is_it.then(|| parse(&cells)).flatten()
        })
    };
    (0..count).map(find).collect()
}

/// A line of `perf stat -x,`: value, unit, event, time running, share of the time in percent.
fn parse(cells: &[&str]) -> Option<Count> {
    match cells[0] {
        "<not counted>" => Some(Count::NotCounted),
        "<not supported>" => Some(Count::NotSupported),
        value => {
            let percent: f64 = cells.get(4)?.parse().ok()?;
            Some(Count::Counted { estimate: value.parse().ok()?, coverage: percent / 100.0 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_s_lines_are_read_in_the_order_of_the_events() {
        let output = format!(
            "1,,event0,1,100.00,,\n{COUNTS}\n# started on Thu\n\n\
             12,,event1:u,69,25.00,,\n7,,event0:u,69,100.00,,\n\
             <not counted>,,event2:u,0,0.00,,\n<not supported>,,event3:u,0,100.00,,\n"
        );
        let of = |estimate, coverage| Count::Counted { estimate, coverage };
        let expected = vec![of(7, 1.0), of(12, 0.25), Count::NotCounted, Count::NotSupported];
        assert_eq!(counts(&output, 4), Some(expected));
        assert_eq!(counts(&output, 5), None);
    }
}
