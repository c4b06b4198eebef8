//! The processors that the virtual PMU implements.

use tally_model::Geometry;

use crate::{counter::FIXED, event::Event, offcore};

/// Maximum number of general counters of version 6.
const MAX_GENERAL: u8 = 10;

/// The vendor whose architecture a profile implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Intel architectural performance monitoring.
    Intel,
    /// AMD core performance counters.
    Amd,
}

impl Vendor {
    /// The vendor's name in CPUID leaves 0 and 8000_0000H.
    pub const fn cpuid(self) -> &'static str {
        match self {
            Vendor::Intel => "GenuineIntel",
            Vendor::Amd => "AuthenticAMD",
        }
    }
}

/// The machine of QEMU for a profile.
#[derive(Clone, Copy, Debug)]
pub struct QemuMachine {
    /// Name in `cargo xtask run --pmu`.
    pub name: &'static str,
    /// QEMU's processor model, without RDRAND and RDSEED, so that the same seed gives the same run.
    pub cpu: &'static str,
    /// General counters of the virtual PMU.
    pub counters: u8,
    /// Further plugin options with which `cargo xtask vpmu-check` checks the profile, each a list
    /// joined by commas. Together the profiles use every pipeline and mode.
    pub checks: &'static [&'static str],
}

/// PEBS by the processor that has it. Records are of format 4 on the first two (Linux's log of Ice
/// Lake and of Alder Lake: "PEBS fmt4+-baseline"), and of format 6 on Lunar Lake (its log).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PebsKind {
    IceLake,
    /// With precise distribution on general counter 0, and two latencies of an access.
    SapphireRapids,
    /// With retire latencies and values of counters in records, and other sources of loads.
    LunarLake,
    /// Architectural: in a buffer at a physical address, without a debug store.
    PantherLake,
}

/// Last branch records by their registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LbrKind {
    /// Intel's older ones, with information beside both addresses.
    Legacy,
    /// Intel's architectural ones.
    Architectural,
    /// AMD's LbrExtV2.
    Amd,
}

/// IBS by the core that has it: Zen 4's has a filter by the last-level cache, and finer sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IbsKind {
    Zen3,
    Zen4,
}

/// A processor: its model and its PMU.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Name in the options.
    pub name: &'static str,
    /// Vendor.
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
    /// Intel's PEBS, if there is one.
    pub(crate) pebs: Option<PebsKind>,
    /// AMD's IBS, if there is one.
    pub(crate) ibs: Option<IbsKind>,
    /// Last branch records, if there are any.
    pub(crate) lbr: Option<LbrKind>,
    /// Intel: architectural version; AMD: 1 without and 2 with PerfMonV2.
    pub version: u8,
    /// The time-stamp counter's frequency in Hz, if CPUID reports it.
    pub(crate) tsc_hz: Option<u32>,
    /// Description in one line.
    pub about: &'static str,
    /// The machine that tests and runs boot.
    pub machine: QemuMachine,
    /// CPUID leaf 1, EAX: family, model and stepping.
    pub signature: u32,
    /// CPUID leaf 1AH, EAX: core type and native model; 0 without core types.
    pub kind: u32,
    /// Tables of the events that the profile counts.
    pub(crate) tables: &'static [&'static [Event]],
}

impl Profile {
    /// The events of the general counters that the selected pipeline counts: the vendor's, then
    /// Tally's own.
    pub fn events(&self) -> impl Iterator<Item = &'static Event> + use<> {
        let geometry = self.geometry;
        let all = self.tables.iter().copied().flatten();
        all.filter(move |event| event.needs.is_none_or(|need| need.is_met(&geometry)))
    }

    /// Sets another version of Intel's architecture, 1 to 6; `None` for AMD. Version 1 has no fixed
    /// counters, and only version 6 reaches more than eight general ones.
    pub fn with_version(self, version: u8) -> Option<Profile> {
        let known = self.vendor == Vendor::Intel && (1..=6).contains(&version);
        let fixed = if version == 1 { 0 } else { self.fixed };
        let (default, most) = self.counters;
        let most = if version >= 6 { MAX_GENERAL } else { most.min(8) };
        let counters = (default.min(most), most);
        known.then_some(Profile { version, fixed, counters, ..self })
    }

    /// Makes CPUID report the time-stamp counter's frequency in Hz, as Intel's processors can.
    pub(crate) fn with_tsc(self, text: &str) -> Result<Profile, String> {
        let hz = text.parse().ok().filter(|hz| *hz > 0 && self.vendor == Vendor::Intel);
        let why =
            || format!("tsc={text} is not supported: Intel's profiles have 1 to {}", u32::MAX);
        Ok(Profile { tsc_hz: Some(hz.ok_or_else(why)?), ..self })
    }

    /// Sets another number of Intel's fixed counters, 0 to 4; `None` for AMD and for version 1.
    pub fn with_fixed(self, fixed: u8) -> Option<Profile> {
        let known = self.vendor == Vendor::Intel && self.version > 1 && fixed <= 4;
        known.then_some(Profile { fixed, ..self })
    }

    /// Sets the width of Intel's counters, 32 to 48 bits; `None` for AMD, whose CPUID does not
    /// contain the width.
    pub fn with_width(self, width: u8) -> Option<Profile> {
        let known = self.vendor == Vendor::Intel && (32..=48).contains(&width);
        known.then_some(Profile { width, ..self })
    }

    /// The share of each of `threads` hardware threads, 1 or 2, in the processor's core. Each of
    /// two threads has four of Ice Lake's eight general counters (SDM vol. 3, "Performance
    /// Monitoring for Processors Based on Ice Lake Microarchitecture").
    pub fn with_threads(self, threads: u8) -> Option<Profile> {
        let (default, _) = self.counters;
        match threads {
            1 => Some(self),
            2 => Some(Profile {
                geometry: self.geometry.half_of_core(),
                counters: (default, default),
                ..self
            }),
            _ => None,
        }
    }

    /// Returns whether the profile has PERF_METRICS, which needs the fourth fixed counter.
    pub fn has_metrics(&self) -> bool {
        self.vendor == Vendor::Intel && self.version >= 5 && self.fixed >= 4
    }

    /// Returns whether the profile has precise event-based sampling: with the version that the
    /// records' format belongs to.
    pub fn has_pebs(&self) -> bool {
        self.vendor == Vendor::Intel && self.pebs.is_some_and(|kind| kind.version() == self.version)
    }

    /// The last branch records: of versions 5 and, if they are architectural, 6 of Intel's
    /// architecture, and of AMD's with PerfMonV2.
    pub(crate) fn lbr_kind(&self) -> Option<LbrKind> {
        self.lbr.filter(|kind| match kind {
            LbrKind::Legacy => self.version == 5,
            LbrKind::Architectural => self.version >= 5,
            LbrKind::Amd => self.version == 2,
        })
    }

    /// Returns whether precise samples of cycles can be taken: by PEBS, or by IBS.
    pub fn has_precise_samples(&self) -> bool {
        self.has_pebs() || self.ibs.is_some()
    }

    /// Returns whether the profile has last branch records.
    pub fn has_branch_records(&self) -> bool {
        self.lbr_kind().is_some()
    }

    /// Returns whether its branch records can be a stack of calls.
    pub fn has_call_stack(&self) -> bool {
        self.lbr_kind().is_some_and(|kind| kind != LbrKind::Amd)
    }

    /// Returns whether its branch records have the cycles between branches.
    pub fn has_branch_cycles(&self) -> bool {
        self.lbr_kind().is_some_and(|kind| kind != LbrKind::Amd)
    }

    /// The off-core responses that the filter registers can select, each under the vendor's name of
    /// a filter that selects it alone.
    pub fn offcore_events(&self) -> &'static [Event] {
        if self.vendor == Vendor::Intel { &offcore::EVENTS } else { &[] }
    }

    /// The events of the fixed counters, in their order.
    pub fn fixed_events(&self) -> &'static [Event] {
        &FIXED[..usize::from(self.fixed)]
    }

    /// The event with exactly this encoding, if there is one.
    pub fn event(
        &self,
        code: u16,
        umask: u16,
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
