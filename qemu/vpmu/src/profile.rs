//! The processors that the virtual PMU implements.

use tally_model::{Geometry, Pipeline};

use crate::{counter::FIXED, event::Event, events_amd, events_intel, offcore};

/// The vendor whose architecture a profile implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Intel architectural performance monitoring.
    Intel,
    /// AMD core performance counters.
    Amd,
}

/// A processor: its model and its PMU.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Its name in the options.
    pub name: &'static str,
    /// Its vendor.
    pub vendor: Vendor,
    /// The machine model's geometry.
    pub geometry: Geometry,
    /// General counters: the default, and the maximum.
    pub counters: (u8, u8),
    /// Fixed counters.
    pub fixed: u8,
    /// Width of every counter in bits.
    pub width: u8,
    /// Codes of the off-core response events, one for each filter register; 0 for none.
    pub(crate) offcore: [u16; 2],
    /// Whether PERF_METRICS has the second level.
    pub(crate) second_level: bool,
    /// Intel: architectural version; AMD: 1 without and 2 with PerfMonV2.
    pub version: u8,
    /// CPUID leaf 1, EAX: family, model and stepping.
    pub signature: u32,
    /// The events that it counts.
    tables: &'static [&'static [Event]],
}

const ICELAKE_SERVER: Profile = Profile {
    name: "icelake-server",
    vendor: Vendor::Intel,
    geometry: Geometry::ICELAKE_SERVER,
    counters: (4, 8),
    fixed: 4,
    width: 48,
    offcore: [0xb7, 0xbb],
    second_level: false,
    version: 5,
    // Family 6, model 6AH.
    signature: 0x606a6,
    tables: events_intel::ICELAKE_SERVER,
};

const ZEN4: Profile = Profile {
    name: "zen4",
    vendor: Vendor::Amd,
    geometry: Geometry::ZEN4,
    counters: (6, 6),
    fixed: 0,
    width: 48,
    offcore: [0; 2],
    second_level: false,
    version: 2,
    // Family 19H, model 11H.
    signature: 0xa1_0f11,
    tables: events_amd::ZEN4,
};

const SAPPHIRE_RAPIDS: Profile = Profile {
    name: "sapphire-rapids",
    geometry: Geometry::SAPPHIRE_RAPIDS,
    offcore: [0x2a, 0x2b],
    second_level: true,
    // Family 6, model 8FH.
    signature: 0x806f8,
    tables: events_intel::SAPPHIRE_RAPIDS,
    ..ICELAKE_SERVER
};

const ZEN3: Profile = Profile {
    name: "zen3",
    geometry: Geometry::ZEN3,
    version: 1,
    // Family 19H, model 1.
    signature: 0xa0_0f11,
    tables: events_amd::ZEN3,
    ..ZEN4
};

impl Profile {
    /// Every profile there is.
    pub const ALL: &[Profile] = &[ICELAKE_SERVER, SAPPHIRE_RAPIDS, ZEN3, ZEN4];

    /// The events of its general counters, with the selected pipeline.
    pub fn events(&self) -> impl Iterator<Item = &'static Event> + use<> {
        let out_of_order = matches!(self.geometry.pipeline, Pipeline::OutOfOrder(_));
        let all = self.tables.iter().copied().flatten();
        all.filter(move |event| out_of_order || !event.needs_out_of_order)
    }

    /// The profile of that name.
    pub fn find(name: &str) -> Option<Profile> {
        Profile::ALL.iter().find(|profile| profile.name == name).copied()
    }

    /// The same processor with another version of Intel's architecture, 1 to 5; none for AMD.
    /// Version 1 has no fixed counters.
    pub fn with_version(self, version: u8) -> Option<Profile> {
        let known = self.vendor == Vendor::Intel && (1..=5).contains(&version);
        let fixed = if version == 1 { 0 } else { self.fixed };
        known.then_some(Profile { version, fixed, ..self })
    }

    /// The same processor with another number of Intel's fixed counters, 0 to 4; none for AMD and
    /// for version 1.
    pub fn with_fixed(self, fixed: u8) -> Option<Profile> {
        let known = self.vendor == Vendor::Intel && self.version > 1 && fixed <= 4;
        known.then_some(Profile { fixed, ..self })
    }

    /// The same processor with Intel's counters of `width` bits, 32 to 48; none for AMD, whose
    /// CPUID does not contain the width.
    pub fn with_width(self, width: u8) -> Option<Profile> {
        let known = self.vendor == Vendor::Intel && (32..=48).contains(&width);
        known.then_some(Profile { width, ..self })
    }

    /// Returns whether it has PERF_METRICS, which needs the fourth fixed counter.
    pub fn has_metrics(&self) -> bool {
        self.vendor == Vendor::Intel && self.version >= 5 && self.fixed >= 4
    }

    /// The off-core responses that the filter registers select from, each by the vendor's name of a
    /// filter that selects it alone.
    pub fn offcore_events(&self) -> &'static [Event] {
        if self.vendor == Vendor::Intel { &offcore::EVENTS } else { &[] }
    }

    /// The events of its fixed counters, in their order.
    pub fn fixed_events(&self) -> &'static [Event] {
        &FIXED[..usize::from(self.fixed)]
    }

    /// The event with exactly this encoding, if there is one.
    pub fn event(
        &self,
        code: u16,
        umask: u8,
        cmask: u8,
        inv: bool,
        edge: bool,
    ) -> Option<&'static Event> {
        self.events().find(|event| {
            (event.code, event.umask, event.cmask, event.inv, event.edge)
                == (code, umask, cmask, inv, edge)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tally_model::Mode;
    use tally_pmu::catalogue::{Catalogue, Counter};

    use super::*;

    /// Every profile with the out-of-order pipeline, which has all events.
    fn profiles() -> impl Iterator<Item = Profile> {
        Profile::ALL.iter().map(|profile| {
            let pipeline = Pipeline::OutOfOrder(Mode::Real);
            Profile { geometry: Geometry { pipeline, ..profile.geometry }, ..*profile }
        })
    }

    fn catalogue(profile: &Profile) -> Catalogue {
        let model = (profile.signature >> 4 & 0xf | profile.signature >> 12 & 0xf0) as u8;
        match profile.vendor {
            Vendor::Intel => Catalogue::intel(6, model, profile.signature as u8 & 0xf),
            Vendor::Amd => Catalogue::amd(0x19, model),
        }
    }

    #[test]
    fn every_event_has_the_vendor_s_encoding() {
        for profile in profiles() {
            let catalogue = catalogue(&profile);
            assert_eq!(catalogue.name(), profile.name);
            for event in profile.events() {
                if event.is_unlisted {
                    assert!(catalogue.find(event.name).is_none(), "{} is listed", event.name);
                    continue;
                }
                let entry = catalogue.find(event.name);
                let entry = entry.unwrap_or_else(|| panic!("{}: {}", profile.name, event.name));
                let ours = (event.code, event.umask, event.cmask, event.inv, event.edge);
                let theirs = (entry.code, entry.umask, entry.cmask, entry.inv, entry.edge);
                assert_eq!(ours, theirs, "{}: {}", profile.name, event.name);
                let mask = match entry.counter {
                    Counter::General(mask) => mask,
                    other => panic!("{}: {other:?}", event.name),
                };
                let most = (1u32 << profile.counters.1) - 1;
                assert_eq!(u32::from(event.counters) & most, u32::from(mask), "{}", event.name);
            }
        }
    }

    #[test]
    fn names_and_encodings_are_unique() {
        for profile in profiles() {
            let names: BTreeSet<_> = profile.events().map(|event| event.name).collect();
            let encodings: BTreeSet<_> = profile
                .events()
                .map(|event| (event.code, event.umask, event.cmask, event.inv, event.edge))
                .collect();
            let events = profile.events().count();
            assert_eq!((names.len(), encodings.len()), (events, events), "{}", profile.name);
            assert!(events >= 40, "{}: {events}", profile.name);
        }
    }
}
