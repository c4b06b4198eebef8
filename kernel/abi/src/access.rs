//! A memory access of a sample, in words of no processor, and its decoders.

mod decoded;
mod op;
mod pebs;

pub use self::decoded::{Access, Source};
use crate::trace::AccessRecord;

impl Access {
    /// Decodes the access of a sample. A record of Intel's does not say whether the instruction
    /// stored: its event does ([`is_of_stores`]).
    pub fn of(record: &AccessRecord, encoding: Encoding, of_stores: bool) -> Access {
        match encoding {
            Encoding::Ibs | Encoding::Ibs2 => op::decode(record, encoding == Encoding::Ibs),
            Encoding::Pebs => pebs::decode(record, false, of_stores),
            Encoding::LionCove => pebs::decode(record, true, of_stores),
        }
    }
}

/// Returns whether an event of this name counts stores.
pub fn is_of_stores(event: &str) -> bool {
    const WORD: &[u8] = b"stores";
    event.as_bytes().windows(WORD.len()).any(|part| part.eq_ignore_ascii_case(WORD))
}

/// A processor's encoding of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Intel's up to Redwood Cove.
    #[default]
    Pebs,
    /// Intel's from Lion Cove on.
    LionCove,
    /// AMD's up to Zen 3: a source has three bits.
    Ibs,
    /// AMD's from Zen 4 on: a source has five bits.
    Ibs2,
}

impl Encoding {
    /// The encoding of a processor, by CPUID's vendor and display family and model.
    pub fn of(vendor: &str, family: u16, model: u8) -> Encoding {
        let is_zen3 = family < 0x19 || family == 0x19 && matches!(model, 0..=0xf | 0x20..=0x5f);
        // Arrow Lake, Lunar Lake, Panther Lake.
        let is_lion_cove = family == 6 && matches!(model, 0xb5 | 0xc5 | 0xc6 | 0xbd | 0xcc);
        match (vendor, is_zen3, is_lion_cove) {
            ("AuthenticAMD", true, _) => Encoding::Ibs,
            ("AuthenticAMD", false, _) => Encoding::Ibs2,
            (_, _, true) => Encoding::LionCove,
            _ => Encoding::Pebs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_of_processors() {
        for (vendor, family, model, encoding) in [
            ("GenuineIntel", 6, 0x6a, Encoding::Pebs),
            ("GenuineIntel", 6, 0xaa, Encoding::Pebs),
            ("GenuineIntel", 6, 0xbd, Encoding::LionCove),
            ("AuthenticAMD", 0x19, 0x01, Encoding::Ibs),
            ("AuthenticAMD", 0x19, 0x21, Encoding::Ibs),
            ("AuthenticAMD", 0x19, 0x11, Encoding::Ibs2),
            ("AuthenticAMD", 0x1a, 0x02, Encoding::Ibs2),
        ] {
            assert_eq!(Encoding::of(vendor, family, model), encoding, "{vendor} {model:#x}");
        }
    }

    #[test]
    fn an_event_of_stores_is_known_by_its_name() {
        assert!(is_of_stores("MEM_INST_RETIRED.ALL_STORES") && is_of_stores("mem-stores:P"));
        assert!(!is_of_stores("mem-loads:P") && !is_of_stores("store"));
    }
}
