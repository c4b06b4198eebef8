//! Off-core responses: requests beyond the L2, selected by requester and responder in a filter
//! register (SDM vol. 3, "Off-core Response Performance Monitoring").

use tally_model::Signal::*;

use crate::event::Event;

/// Request bits: demand loads, stores and fetches. Other requests, such as prefetches, are not
/// modelled as events.
const REQUESTS: [u64; 3] = [1 << 0, 1 << 1, 1 << 2];
/// Response bit: any responder.
const ANY_RESPONSE: u64 = 1 << 16;
/// Response bits: the last-level cache, with the line in any state.
const L3_HIT: u64 = 0xf << 18;
/// Response bit: this socket's memory; the machine has one socket.
const LOCAL_MEMORY: u64 = 1 << 26;
/// Snoop bits: no other core was snooped, or none had the line. The model has no coherence misses.
const NO_SNOOP: u64 = 1 << 31 | 1 << 32 | 1 << 33;
/// The valid bits of the registers.
pub(crate) const VALID: u64 = (1 << 38) - 1;

/// The events, by request and responder: the last-level cache, memory.
pub(crate) static EVENTS: [Event; 6] = [
    Event::new(
        "OCR.DEMAND_DATA_RD.L3_HIT",
        0,
        1,
        &[LlcReadHit],
        "Lines for loads from the last-level cache.",
    ),
    Event::new("OCR.DEMAND_DATA_RD.DRAM", 0, 1, &[LlcReadMiss], "Lines for loads from memory."),
    Event::new(
        "OCR.DEMAND_RFO.L3_HIT",
        0,
        1,
        &[LlcRfoHit],
        "Lines for stores from the last-level cache.",
    ),
    Event::new("OCR.DEMAND_RFO.DRAM", 0, 1, &[LlcRfoMiss], "Lines for stores from memory."),
    Event::new(
        "OCR.DEMAND_CODE_RD.L3_HIT",
        0,
        1,
        &[LlcCodeHit],
        "Lines of code from the last-level cache.",
    ),
    Event::new("OCR.DEMAND_CODE_RD.DRAM", 0, 1, &[LlcCodeMiss], "Lines of code from memory."),
];

/// The events that a register's value selects.
pub(crate) fn selected(filter: u64) -> Vec<&'static Event> {
    let any = filter & ANY_RESPONSE != 0;
    let no_snoop = filter & NO_SNOOP != 0;
    let by =
        [any || no_snoop && filter & L3_HIT != 0, any || no_snoop && filter & LOCAL_MEMORY != 0];
    let selected = EVENTS
        .iter()
        .enumerate()
        .filter(|(index, _)| filter & REQUESTS[index / 2] != 0 && by[index % 2]);
    selected.map(|(_, event)| event).collect()
}

/// Returns whether a filter selects requests that the model does not have.
pub(crate) fn is_beyond_model(filter: u64) -> bool {
    let known = REQUESTS.iter().sum::<u64>();
    filter & 0xffff & !known != 0 || selected(filter).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filters of Intel's table and of Linux, and the events that they select.
    #[test]
    fn filters_select_the_events_of_their_names() {
        for (filter, names) in [
            (0x1_0001, &["OCR.DEMAND_DATA_RD.L3_HIT", "OCR.DEMAND_DATA_RD.DRAM"][..]),
            (0x3f_803c_0001, &["OCR.DEMAND_DATA_RD.L3_HIT"]),
            (0x3f_bfc0_0001, &["OCR.DEMAND_DATA_RD.DRAM"]),
            (0x7_3c00_0001, &["OCR.DEMAND_DATA_RD.DRAM"]),
            (0x1_0400_0002, &["OCR.DEMAND_RFO.DRAM"]),
            (0x3f_3ffc_0002, &["OCR.DEMAND_RFO.L3_HIT", "OCR.DEMAND_RFO.DRAM"]),
            (0x3f_bfc0_0004, &["OCR.DEMAND_CODE_RD.DRAM"]),
            // A line that another core has modified; another socket's memory; a prefetch.
            (0x10_003c_0001, &[]),
            (0x7_3000_0001, &[]),
            (0x1_0010, &[]),
        ] {
            let found: Vec<_> = selected(filter).iter().map(|event| event.name).collect();
            assert_eq!(found, names, "{filter:#x}");
            assert_eq!(is_beyond_model(filter), names.is_empty(), "{filter:#x}");
        }
        assert!(is_beyond_model(0x1_0011));
    }
}
