//! The memory accesses of Intel's precise samples (PEBS): their words, decoded.

use super::decoded::{Access, Source};
use crate::trace::AccessRecord;

/// The source of a load by its number in a record of a load latency (SDM vol. 3, "Data Source
/// Encoding for Load Latency Record"; Linux, `pebs_data_source`).
fn source_of_load(number: u64) -> Source {
    match number {
        0x1 => Source::L1,
        0x2 => Source::FillBuffer,
        0x3 => Source::L2,
        0x4 | 0x5 => Source::L3,
        0x6 | 0x7 => Source::OtherCore,
        0x8 | 0xa | 0xc => Source::Memory,
        0x9 | 0xb | 0xd => Source::Remote,
        0xe | 0xf => Source::Uncached,
        _ => Source::Unknown,
    }
}

/// The source of a load on Lion Cove and Cougar Cove (Linux, `lnc_pebs_data_source`).
fn source_on_lion_cove(number: u64) -> Source {
    match number {
        0x1 | 0x2 => Source::L1,
        0x3 => Source::FillBuffer,
        0x5 | 0x6 => Source::L2,
        0x8 => Source::L3,
        0xc | 0xd | 0xf => Source::OtherCore,
        // A memory-side cache has no name of its own here.
        0x10 | 0x11 => Source::Memory,
        _ => Source::Unknown,
    }
}

/// Decodes an access of PEBS (SDM vol. 3, "Memory Access Info Group"; of Lion Cove Linux,
/// `lnl_latency_data`). Loads of events other than that of slow loads have no source. From Golden
/// Cove on the latency of the caches is in bits 47:32.
pub(super) fn decode(record: &AccessRecord, is_lion_cove: bool, is_store: bool) -> Access {
    let (whole, caches) = (record.latency & 0xffff_ffff, record.latency >> 32 & 0xffff);
    let latency = if caches == 0 { whole } else { caches };
    let source = match (is_store, record.latency) {
        (true, _) if record.info & 1 != 0 => Source::L1,
        (true, _) => Source::NotL1,
        (false, 0) => Source::Unknown,
        (false, _) if is_lion_cove => source_on_lion_cove(record.info & 0xff),
        (false, _) => source_of_load(record.info & 0xf),
    };
    let walked = if is_lion_cove { 10 } else { 4 };
    Access {
        address: record.address,
        is_store,
        source,
        missed_tlb: record.info >> walked & 1 != 0,
        is_locked: record.info >> (walked + 1) & 1 != 0,
        latency_cycles: (latency != 0).then_some(latency),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: AccessRecord = AccessRecord {
        tsc: 9,
        session: 1,
        cpu: 0,
        event: 0,
        address: 0x1000,
        info: 0x1c,
        latency: 0,
    };

    #[test]
    fn loads_have_a_source_and_a_latency_where_it_was_measured() {
        let loaded = |info, latency| {
            let of = decode(&AccessRecord { info, latency, ..RECORD }, false, false);
            (of.source, of.missed_tlb, of.latency_cycles)
        };
        assert_eq!(loaded(0x1c, 0), (Source::Unknown, true, None));
        assert_eq!(loaded(0x1c, 312), (Source::Memory, true, Some(312)));
        assert_eq!(loaded(0x01, 310 << 32 | 320), (Source::L1, false, Some(310)));
        assert_eq!(loaded(0x04, 70).0, Source::L3);
    }

    #[test]
    fn lion_cove_has_sources_of_its_own() {
        let loaded = |info| {
            let record = AccessRecord { info, latency: 90 << 32 | 95, ..RECORD };
            let of = decode(&record, true, false);
            (of.source, of.missed_tlb, of.is_locked, of.latency_cycles)
        };
        assert_eq!(loaded(0x411), (Source::Memory, true, false, Some(90)));
        assert_eq!(loaded(0x805), (Source::L2, false, true, Some(90)));
        assert_eq!(loaded(0x08).0, Source::L3);
    }

    #[test]
    fn stores_say_whether_the_first_level_had_the_line() {
        let stored = |info| decode(&AccessRecord { info, ..RECORD }, false, true);
        assert_eq!([stored(1).source, stored(0).source], [Source::L1, Source::NotL1]);
        assert!(stored(0x20).is_locked && !stored(0x10).is_locked);
    }
}
