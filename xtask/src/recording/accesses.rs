//! The memory accesses of precise samples.

use std::collections::BTreeMap;

use tally_abi::{
    access::{Access, Encoding, is_of_stores},
    trace::{AccessRecord, SampleRecord},
};

use crate::{trace::run::Processor, trace_file::Records};

/// The encoding of a processor's accesses. A hybrid's kinds of core have one model, and only its
/// performance cores have the encoding of Lion Cove: the catalogue tells.
fn encoding_of(processor: &Processor) -> Encoding {
    let is_lion_cove =
        ["_lioncove", "_cougarcove"].iter().any(|of| processor.catalogue.ends_with(of));
    match Encoding::of(&processor.vendor, processor.family, processor.model) {
        Encoding::Pebs | Encoding::LionCove if is_lion_cove => Encoding::LionCove,
        Encoding::LionCove => Encoding::Pebs,
        encoding => encoding,
    }
}

/// The accesses of samples, by CPU, time stamp, session and event of the sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Accesses {
    records: BTreeMap<(u16, u64, u32, u16), AccessRecord>,
    encoding: Encoding,
}

impl Accesses {
    /// Sorts the records of a processor.
    pub(crate) fn of(records: &Records, processor: Option<&Processor>) -> Accesses {
        let keyed = |of: &AccessRecord| ((of.cpu, of.tsc, of.session, of.event), *of);
        let records = records.accesses.iter().map(keyed).collect();
        Accesses { records, encoding: processor.map(encoding_of).unwrap_or_default() }
    }

    /// The access of a sample of an event of this name, if the sample has one.
    pub(crate) fn of_sample(&self, sample: &SampleRecord, event: &str) -> Option<Access> {
        let key = (sample.cpu, sample.tsc, sample.session, sample.event);
        let record = self.records.get(&key).filter(|record| record.address != 0)?;
        Some(Access::of(record, self.encoding, is_of_stores(event)))
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
    fn of_a_hybrid_only_the_performance_cores_have_lion_cove_s_encoding() {
        let of = |catalogue: &str| {
            let [vendor, pmu] = ["GenuineIntel", "v6"].map(str::to_owned);
            let catalogue = catalogue.to_owned();
            encoding_of(&Processor { vendor, family: 6, model: 0xc6, pmu, catalogue })
        };
        assert_eq!(of("arrowlake_lioncove"), Encoding::LionCove);
        assert_eq!(of("arrowlake_skymont"), Encoding::Pebs);
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
