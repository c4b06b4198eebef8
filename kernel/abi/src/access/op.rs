//! The memory accesses of AMD's samples of ops (IBS): their words, decoded.
//!
//! AMD64 Architecture Programmer's Manual volume 2, "Instruction-Based Sampling"; processor
//! programming reference of family 19h, "IBS Op Data 2" and "IBS Op Data 3"; Linux,
//! arch/x86/events/amd/ibs.c, `perf_ibs_get_mem_lvl`.

use super::decoded::{Access, Source};
use crate::trace::AccessRecord;

/// Position of `IbsOpData2` in a record's third word, above the used bits of `IbsOpData`.
const SOURCE_SHIFT: u32 = 48;

/// The source of a load that missed the L2, by its number: of three bits, or of five.
fn source(number: u64, is_coarse: bool, is_remote: bool) -> Source {
    match (is_coarse, number) {
        (false, 1) | (true, 2) => Source::L3,
        (false, 2) => Source::OtherCore,
        (_, 3 | 6 | 8) if is_remote => Source::Remote,
        (_, 3) | (false, 6 | 8) => Source::Memory,
        (true, 4) | (false, 5) => Source::Remote,
        (_, 7) => Source::Uncached,
        _ => Source::Unknown,
    }
}

/// Decodes an access: `info` is `IbsOpData3`. The sources are coarse up to Zen 3.
pub(super) fn decode(record: &AccessRecord, is_coarse: bool) -> Access {
    let is_set = |bit: u32| record.info >> bit & 1 != 0;
    let (is_load, is_store) = (is_set(0), is_set(1));
    let [missed, uncached, merged, missed_l2] = [7, 14, 16, 20].map(is_set);
    let data2 = record.latency >> SOURCE_SHIFT;
    // Erratum 1293 of Zen 3: the L2's miss and the source are wrong of software prefetches, and of
    // loads that another one's miss serves.
    let is_wrong = is_coarse && (merged || is_set(21));
    let data2 = if is_wrong { 0 } else { data2 };
    let known = source(data2 & 7 | data2 >> 3 & 0x18, is_coarse, data2 >> 4 & 1 != 0);
    let source = match (known, is_load) {
        _ if uncached => Source::Uncached,
        _ if !missed => Source::L1,
        _ if !missed_l2 && !is_wrong => Source::L2,
        (Source::Unknown, _) if merged => Source::FillBuffer,
        (_, false) => Source::NotL1,
        (known, true) => known,
    };
    let latency = record.info >> 32 & 0xffff;
    Access {
        address: record.address,
        is_store,
        source,
        missed_tlb: is_set(2) && is_set(3),
        is_locked: is_set(15),
        latency_cycles: (is_load && missed && latency != 0).then_some(latency),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: u64 = 1;
    const STORE: u64 = 2;
    const MISS: u64 = 1 << 7;
    const MISSES: u64 = MISS | 1 << 20;

    fn decoded(info: u64, data2: u64, is_coarse: bool) -> Access {
        let latency = data2 << SOURCE_SHIFT | 0x1234;
        let record = AccessRecord {
            tsc: 9,
            session: 1,
            cpu: 0,
            event: 0,
            address: 0x1000,
            info: info | 210 << 32,
            latency,
        };
        decode(&record, is_coarse)
    }

    #[test]
    fn a_load_has_the_level_that_served_it_and_a_latency_if_it_missed() {
        for (info, data2, coarse, fine) in [
            (LOAD, 3, Source::L1, Source::L1),
            (LOAD | MISS, 3, Source::L2, Source::L2),
            (LOAD | MISSES, 1, Source::Unknown, Source::L3),
            (LOAD | MISSES, 2, Source::L3, Source::OtherCore),
            (LOAD | MISSES, 3, Source::Memory, Source::Memory),
            (LOAD | MISSES, 3 | 1 << 4, Source::Remote, Source::Remote),
            (LOAD | MISSES, 1 << 6, Source::Unknown, Source::Memory),
            (LOAD | MISSES | 1 << 16, 0, Source::FillBuffer, Source::FillBuffer),
            (LOAD | MISSES | 1 << 14, 3, Source::Uncached, Source::Uncached),
        ] {
            let of = |is_coarse| decoded(info, data2, is_coarse);
            // The upper bits of a number are the finer encoding's.
            let is_coarse = data2 >> 6 == 0;
            let coarse = if is_coarse { coarse } else { fine };
            assert_eq!(of(is_coarse).source, coarse, "{info:#x} {data2:#x}");
            assert_eq!(of(false).source, fine, "{info:#x} {data2:#x}");
            let latency = (info & MISS != 0).then_some(210);
            assert_eq!(of(false).latency_cycles, latency, "{info:#x}");
        }
    }

    #[test]
    fn zen_3_tells_no_level_of_loads_that_another_miss_serves() {
        let of = |info| decoded(LOAD | info, 3, true).source;
        assert_eq!([of(MISS | 1 << 16), of(MISSES | 1 << 16)], [Source::FillBuffer; 2]);
        assert_eq!(of(MISSES | 1 << 21), Source::Unknown);
        assert_eq!(decoded(LOAD | MISS | 1 << 16, 3, false).source, Source::L2);
    }

    #[test]
    fn a_store_says_whether_a_cache_had_the_line() {
        let of = |info| decoded(info, 0, false);
        assert!(of(STORE).is_store && !of(LOAD).is_store && of(LOAD | STORE).is_store);
        assert_eq!(of(STORE).source, Source::L1);
        assert_eq!(
            [of(STORE | MISS).source, of(STORE | MISSES).source],
            [Source::L2, Source::NotL1]
        );
        assert_eq!(of(STORE | MISSES).latency_cycles, None);
        assert!(of(STORE | 1 << 15).is_locked && !of(STORE | 1 << 2).missed_tlb);
        assert!(of(STORE | 0b1100).missed_tlb);
    }
}
