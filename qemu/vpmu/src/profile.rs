//! The machines that the virtual PMU can be.

use tally_model::Geometry;

use crate::{Event, counter::FIXED, events_amd, events_intel};

/// Whose architecture a profile follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Intel architectural performance monitoring.
    Intel,
    /// AMD core performance counters.
    Amd,
}

/// A machine: its model and its PMU.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its vendor.
    pub vendor: Vendor,
    /// The machine model's geometry.
    pub geometry: Geometry,
    /// General counters: the default, and the most that can be asked for.
    pub counters: (u8, u8),
    /// Fixed counters.
    pub fixed: u8,
    /// Intel: architectural version; AMD: 1 without and 2 with PerfMonV2.
    pub version: u8,
    /// CPUID leaf 1, EAX: family, model and stepping.
    pub signature: u32,
    /// The events that it counts.
    pub events: &'static [Event],
}

/// What is alike in Intel's profiles.
const INTEL: Profile = Profile {
    name: "icelake-server",
    vendor: Vendor::Intel,
    geometry: Geometry::ICELAKE_SERVER,
    counters: (4, 8),
    fixed: 4,
    version: 5,
    // Family 6, model 6AH.
    signature: 0x606a6,
    events: events_intel::ICELAKE_SERVER,
};

/// What is alike in AMD's.
const AMD: Profile = Profile {
    name: "zen4",
    vendor: Vendor::Amd,
    geometry: Geometry::ZEN4,
    counters: (6, 6),
    fixed: 0,
    version: 2,
    // Family 19H, model 11H.
    signature: 0xa1_0f11,
    events: events_amd::ZEN4,
};

impl Profile {
    /// Every profile there is.
    pub const ALL: &[Profile] = &[INTEL, AMD];

    /// The profile of that name.
    pub fn find(name: &str) -> Option<Profile> {
        Profile::ALL.iter().find(|profile| profile.name == name).copied()
    }

    /// The events of its fixed counters, in their order.
    pub fn fixed_events(&self) -> &'static [Event] {
        &FIXED[..usize::from(self.fixed)]
    }

    /// The event that an encoding names: exactly, or none.
    pub fn event(
        &self,
        code: u16,
        umask: u8,
        cmask: u8,
        inv: bool,
        edge: bool,
    ) -> Option<&'static Event> {
        self.events.iter().find(|event| {
            (event.code, event.umask, event.cmask, event.inv, event.edge)
                == (code, umask, cmask, inv, edge)
        })
    }
}
