//! The memory accesses of precise samples, decoded from the processor's encoding.

use std::collections::BTreeMap;

use tally_abi::trace::{AccessRecord, SampleRecord};

use super::{
    access::{Access, Source},
    op_samples::{self, Sources},
};
use crate::{trace::run::Processor, trace_file::Records};

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

/// Decodes an access of PEBS (SDM vol. 3, "Memory Access Info Group"). Loads of events other than
/// that of slow loads have no source. On Golden Cove the latency of the caches is in bits 47:32.
fn of_pebs(record: &AccessRecord, is_store: bool) -> Access {
    let (whole, caches) = (record.latency & 0xffff_ffff, record.latency >> 32 & 0xffff);
    let latency = if caches == 0 { whole } else { caches };
    let source = match (is_store, record.latency) {
        (true, _) if record.info & 1 != 0 => Source::L1,
        (true, _) => Source::NotL1,
        (false, 0) => Source::Unknown,
        (false, _) => source_of_load(record.info & 0xf),
    };
    Access {
        address: record.address,
        is_store,
        source,
        missed_tlb: record.info >> 4 & 1 != 0,
        is_locked: record.info >> 5 & 1 != 0,
        latency_cycles: (latency != 0).then_some(latency),
    }
}

/// The accesses of samples, by CPU, time stamp, session and event of the sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Accesses {
    records: BTreeMap<(u16, u64, u32, u16), AccessRecord>,
    /// Encoding of AMD's processors; `None` for Intel's.
    sources: Option<Sources>,
}

impl Accesses {
    /// Sorts the records of a processor.
    pub(crate) fn of(records: &Records, processor: Option<&Processor>) -> Accesses {
        let keyed = |of: &AccessRecord| ((of.cpu, of.tsc, of.session, of.event), *of);
        let records = records.accesses.iter().map(keyed).collect();
        Accesses { records, sources: processor.and_then(Sources::of) }
    }

    /// The access of a sample of an event of this name, if the sample has one.
    pub(crate) fn of_sample(&self, sample: &SampleRecord, event: &str) -> Option<Access> {
        let key = (sample.cpu, sample.tsc, sample.session, sample.event);
        let record = self.records.get(&key).filter(|record| record.address != 0)?;
        let is_store = || event.to_ascii_lowercase().contains("stores");
        Some(match self.sources {
            Some(sources) => op_samples::decode(record, sources),
            None => of_pebs(record, is_store()),
        })
    }

    /// Returns whether no sample has an access.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
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
            let of = of_pebs(&AccessRecord { info, latency, ..RECORD }, false);
            (of.source, of.missed_tlb, of.latency_cycles)
        };
        assert_eq!(loaded(0x1c, 0), (Source::Unknown, true, None));
        assert_eq!(loaded(0x1c, 312), (Source::Memory, true, Some(312)));
        assert_eq!(loaded(0x01, 310 << 32 | 320), (Source::L1, false, Some(310)));
        assert_eq!(loaded(0x04, 70).0, Source::L3);
    }

    #[test]
    fn stores_say_whether_the_first_level_had_the_line() {
        let stored = |info| of_pebs(&AccessRecord { info, ..RECORD }, true);
        assert_eq!([stored(1).source, stored(0).source], [Source::L1, Source::NotL1]);
        assert!(stored(0x20).is_locked && !stored(0x10).is_locked);
    }

    #[test]
    fn an_access_belongs_to_one_event_s_sample() {
        let records = Records { accesses: vec![RECORD], ..Records::default() };
        let accesses = Accesses::of(&records, None);
        let made_up = super::super::loaded::tests::made_up_sample(0x1000, true);
        let sample = SampleRecord { tsc: 9, session: 1, event: 0, cpu: 0, ..made_up };
        let found = accesses.of_sample(&sample, "mem-stores:P").map(|access| access.is_store);
        assert_eq!((found, accesses.is_empty()), (Some(true), false));
        let other = SampleRecord { event: 1, ..sample };
        assert_eq!(accesses.of_sample(&other, "mem-loads:P"), None);
    }
}
