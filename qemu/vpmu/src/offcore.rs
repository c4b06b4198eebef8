//! Off-core responses: requests beyond the L2, chosen by what asked and who answered, in a register of
//! their own (SDM vol. 3, "Off-core Response Performance Monitoring").

use tally_model::Signal::*;

use crate::Event;

/// Requests by demand loads, stores and fetches. The others are prefetchers', which do not exist here.
const REQUESTS: [u64; 3] = [1 << 0, 1 << 1, 1 << 2];
/// Answered by whomever.
const ANY_RESPONSE: u64 = 1 << 16;
/// By the last-level cache, in any state.
const L3_HIT: u64 = 0xf << 18;
/// By this socket's memory, of which there is no other.
const LOCAL_MEMORY: u64 = 1 << 26;
/// No other core was asked, or had the line: there are no coherence misses here.
const NO_SNOOP: u64 = 1 << 31 | 1 << 32 | 1 << 33;
/// Bits that the registers have.
pub(crate) const VALID: u64 = (1 << 38) - 1;

/// What is counted, by request and who answered: the last-level cache, memory.
pub(crate) static EVENTS: [Event; 6] = [
    Event::new(
        "OCR.DEMAND_DATA_RD.L3_HIT",
        0,
        1,
        &[LlcReadHit],
        "Lines for loads that the last-level cache gave.",
    ),
    Event::new(
        "OCR.DEMAND_DATA_RD.DRAM",
        0,
        1,
        &[LlcReadMiss],
        "Lines for loads that memory gave.",
    ),
    Event::new(
        "OCR.DEMAND_RFO.L3_HIT",
        0,
        1,
        &[LlcRfoHit],
        "Lines for stores that the last-level cache gave.",
    ),
    Event::new("OCR.DEMAND_RFO.DRAM", 0, 1, &[LlcRfoMiss], "Lines for stores that memory gave."),
    Event::new(
        "OCR.DEMAND_CODE_RD.L3_HIT",
        0,
        1,
        &[LlcCodeHit],
        "Lines of code that the last-level cache gave.",
    ),
    Event::new("OCR.DEMAND_CODE_RD.DRAM", 0, 1, &[LlcCodeMiss], "Lines of code that memory gave."),
];

/// What a register's value chooses.
pub(crate) fn chosen(filter: u64) -> Vec<&'static Event> {
    let any = filter & ANY_RESPONSE != 0;
    let no_snoop = filter & NO_SNOOP != 0;
    let by =
        [any || no_snoop && filter & L3_HIT != 0, any || no_snoop && filter & LOCAL_MEMORY != 0];
    let chosen = EVENTS
        .iter()
        .enumerate()
        .filter(|(index, _)| filter & REQUESTS[index / 2] != 0 && by[index % 2]);
    chosen.map(|(_, event)| event).collect()
}

/// Whether it asks for requests that the model does not have.
pub(crate) fn is_beyond_model(filter: u64) -> bool {
    let known = REQUESTS.iter().sum::<u64>();
    filter & 0xffff & !known != 0 || chosen(filter).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that Intel's table gives the events, and what they choose.
    #[test]
    fn the_vendor_s_filters_choose_what_they_say() {
        for (filter, names) in [
            (0x1_0001, &["OCR.DEMAND_DATA_RD.L3_HIT", "OCR.DEMAND_DATA_RD.DRAM"][..]),
            (0x3f_803c_0001, &["OCR.DEMAND_DATA_RD.L3_HIT"]),
            (0x3f_bfc0_0001, &["OCR.DEMAND_DATA_RD.DRAM"]),
            (0x7_3c00_0001, &["OCR.DEMAND_DATA_RD.DRAM"]),
            (0x1_0400_0002, &["OCR.DEMAND_RFO.DRAM"]),
            (0x3f_3ffc_0002, &["OCR.DEMAND_RFO.L3_HIT", "OCR.DEMAND_RFO.DRAM"]),
            (0x3f_bfc0_0004, &["OCR.DEMAND_CODE_RD.DRAM"]),
            // A line that another core had changed, another socket's memory, and a prefetch.
            (0x10_003c_0001, &[]),
            (0x7_3000_0001, &[]),
            (0x1_0010, &[]),
        ] {
            let found: Vec<_> = chosen(filter).iter().map(|event| event.name).collect();
            assert_eq!(found, names, "{filter:#x}");
            assert_eq!(is_beyond_model(filter), names.is_empty(), "{filter:#x}");
        }
        assert!(is_beyond_model(0x1_0011));
    }
}
