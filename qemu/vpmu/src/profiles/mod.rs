//! The processors that the virtual PMU implements, one file for each: registers, events, and the
//! machine of QEMU that is booted with it.
//!
//! A new profile needs a file, a `mod` line and a line in [`Profile::ALL`]; its caches, TLBs and
//! pipeline are in `tally-model`'s file of the same name.

mod amd;
mod decode;
mod execution;
mod icelake_server;
mod intel;
mod lunar_lake;
mod panther_lake;
mod sapphire_rapids;
mod shared;
mod tally;
mod zen3;
mod zen4;

use crate::profile::Profile;

pub(crate) use shared::{BAD_SPECULATION_SLOTS, FETCH_SLOTS};

impl Profile {
    /// All profiles. The options of `cargo xtask` and the checks use this list.
    pub const ALL: &[Profile] = &[
        icelake_server::PROFILE,
        sapphire_rapids::PROFILE,
        lunar_lake::PROFILE,
        panther_lake::PROFILE,
        zen3::PROFILE,
        zen4::PROFILE,
    ];

    /// The profile of that name.
    pub fn find(name: &str) -> Option<Profile> {
        Profile::ALL.iter().find(|profile| profile.name == name).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tally_model::{Geometry, Pipeline, PipelineMode};
    use tally_pmu::catalogue::{Catalogue, Counter};

    use super::{tally::TALLY, *};
    use crate::{
        event::{Event, TALLY_CODE},
        profile::Vendor,
    };

    /// Every profile with all events that can exist together: those of the out-of-order pipeline,
    /// CPI stacks, and the micro-op cache.
    fn profiles() -> impl Iterator<Item = Profile> {
        Profile::ALL.iter().map(|profile| {
            let pipeline = Pipeline::OutOfOrder(PipelineMode::Real);
            Profile {
                geometry: Geometry {
                    pipeline,
                    stacks: true,
                    has_uop_cache: true,
                    ..profile.geometry
                },
                ..*profile
            }
        })
    }

    fn catalogue(profile: &Profile) -> Catalogue {
        let model = (profile.signature >> 4 & 0xf | profile.signature >> 12 & 0xf0) as u8;
        match profile.vendor {
            Vendor::Intel => {
                Catalogue::intel(6, model, profile.signature as u8 & 0xf, profile.kind)
            }
            Vendor::Amd => Catalogue::amd(0x19, model),
        }
        .with_tallys()
    }

    #[test]
    fn every_event_has_the_vendor_s_encoding() {
        for profile in profiles() {
            let catalogue = catalogue(&profile);
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
                let (ours, theirs) = (u32::from(event.counters), u32::from(mask));
                assert_eq!(ours & most, theirs & most, "{}", event.name);
            }
        }
    }

    #[test]
    fn no_vendor_has_the_code_of_tally_s_events() {
        for profile in profiles() {
            let vendors = catalogue(&profile);
            let (tallys, others): (Vec<&Event>, Vec<&Event>) =
                profile.events().partition(|event| event.is_tallys());
            assert_eq!(tallys.len(), TALLY.len());
            assert!(tallys.iter().all(|event| event.name.starts_with("tally.")));
            assert!(others.iter().all(|event| !event.name.starts_with("tally.")));
            assert!(vendors.entries().all(|entry| entry.code != TALLY_CODE), "{}", profile.name);
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
