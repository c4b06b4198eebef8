//! Tests of every hardware event and hardware-cache event that Linux 6.12 defines for the profiles.
//!
//! The encodings are from `arch/x86/events/intel/core.c` (`intel_perfmon_event_map`,
//! `skl_hw_cache_event_ids` and `_extra_regs` with the changes for Ice Lake,
//! `glc_hw_cache_event_ids` and `_extra_regs`) and `arch/x86/events/amd/core.c`
//! (`amd_zen2_perfmon_event_map`, `amd_zen4_perfmon_event_map`, `amd_hw_cache_event_ids_f17h`).
//! Names are perf's. Events that Linux itself refuses (encodings 0 and -1) are not here.

use super::{Unmodelled, VirtualPmu, access::select};
use crate::{event::Event, offcore, profile::Profile};

/// Reason why an event counts nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absent {
    /// Another socket's memory: the machine has one socket.
    RemoteMemory,
    /// Hardware prefetchers: the profile has no event for them.
    Prefetchers,
    /// The processor itself does not have the event: Linux removed it from its table later (commit
    /// "perf/x86/amd/core: Fix Family 17h+ instruction cache events").
    Processor,
}

use Absent::{Prefetchers, Processor, RemoteMemory};

/// An event: perf's name, unit mask and code as in Linux, the off-core filter that Linux writes,
/// and the reason if the event counts nothing.
type Entry = (&'static str, u64, u64, Option<Absent>);

/// A plain event.
const fn plain(name: &'static str, encoding: u64) -> Entry {
    (name, encoding, 0, None)
}

/// Events of both of Intel's profiles.
const INTEL: &[Entry] = &[
    plain("cpu-cycles", 0x003c),
    plain("instructions", 0x00c0),
    plain("cache-references", 0x4f2e),
    plain("cache-misses", 0x412e),
    plain("branch-instructions", 0x00c4),
    plain("branch-misses", 0x00c5),
    plain("bus-cycles", 0x013c),
    plain("L1-dcache-loads", 0x81d0),
    plain("L1-dcache-stores", 0x82d0),
    plain("dTLB-loads", 0x81d0),
    plain("dTLB-stores", 0x82d0),
];

const ICELAKE_SERVER: &[Entry] = &[
    plain("L1-dcache-load-misses", 0x0151),
    plain("L1-icache-load-misses", 0x0283),
    ("LLC-loads", 0x01b7, 0x3f_c001_0001, None),
    ("LLC-load-misses", 0x01b7, 0x3f_fc02_0001, None),
    ("LLC-stores", 0x01b7, 0x3f_c001_0002, None),
    ("LLC-store-misses", 0x01b7, 0x3f_fc02_0002, None),
    plain("dTLB-load-misses", 0x0e08),
    plain("dTLB-store-misses", 0x0e49),
    plain("iTLB-load-misses", 0x0e85),
    plain("branch-loads", 0x00c4),
    plain("branch-load-misses", 0x00c5),
    ("node-loads", 0x01b7, 0x1f_c400_0001, None),
    ("node-load-misses", 0x01b7, 0x1f_f800_0001, Some(RemoteMemory)),
    ("node-stores", 0x01b7, 0x1f_c400_0002, None),
    ("node-store-misses", 0x01b7, 0x1f_f800_0002, Some(RemoteMemory)),
    ("LLC-loads, corrected", 0x01b7, 0x1_0001, None),
    ("LLC-load-misses, corrected", 0x01b7, 0x3f_bfc0_0001, None),
    ("LLC-stores, corrected", 0x01b7, 0x3f_3ffc_0002, None),
    ("LLC-store-misses, corrected", 0x01b7, 0x3f_3fc0_0002, None),
    ("node-loads, corrected", 0x01b7, 0x1_0400_0001, None),
    ("node-load-misses, corrected", 0x01b7, 0x7_3000_0001, Some(RemoteMemory)),
    ("node-stores, corrected", 0x01b7, 0x1_0400_0002, None),
    ("node-store-misses, corrected", 0x01b7, 0x7_3000_0002, Some(RemoteMemory)),
];

const SAPPHIRE_RAPIDS: &[Entry] = &[
    plain("L1-dcache-load-misses", 0xe124),
    plain("L1-icache-load-misses", 0xe424),
    ("LLC-loads", 0x012a, 0x1_0001, None),
    ("LLC-load-misses", 0x012a, 0x3f_bfc0_0001, None),
    ("LLC-stores", 0x012a, 0x3f_3ffc_0002, None),
    ("LLC-store-misses", 0x012a, 0x3f_3fc0_0002, None),
    plain("dTLB-load-misses", 0x0e12),
    plain("dTLB-store-misses", 0x0e13),
    plain("iTLB-load-misses", 0x0e11),
    plain("branch-loads", 0x04c4),
    plain("branch-load-misses", 0x04c5),
    ("node-loads", 0x012a, 0x1_0c00_0001, None),
    ("node-load-misses", 0x012a, 0x3f_b300_0001, Some(RemoteMemory)),
    ("node-loads, corrected", 0x012a, 0x1_0400_0001, None),
    ("node-load-misses, corrected", 0x012a, 0x7_3000_0001, Some(RemoteMemory)),
];

/// Events of both of AMD's profiles.
const AMD: &[Entry] = &[
    plain("cpu-cycles", 0x0076),
    plain("instructions", 0x00c0),
    plain("cache-references", 0xff60),
    plain("cache-misses", 0x0964),
    plain("branch-instructions", 0x00c2),
    plain("branch-misses", 0x00c3),
    plain("stalled-cycles-frontend", 0x00a9),
    plain("L1-dcache-loads", 0x0040),
    plain("L1-dcache-load-misses", 0xc860),
    ("L1-dcache-prefetches", 0xff5a, 0, Some(Prefetchers)),
    ("L1-icache-loads", 0x0080, 0, Some(Processor)),
    ("L1-icache-load-misses", 0x0081, 0, Some(Processor)),
    plain("L1-icache-load-misses, later", 0x1060),
    plain("dTLB-loads", 0xff45),
    plain("dTLB-load-misses", 0xf045),
    plain("iTLB-loads", 0x0084),
    plain("iTLB-load-misses", 0xff85),
    plain("branch-loads", 0x00c2),
    plain("branch-load-misses", 0x00c3),
];

const ZEN4: &[Entry] = &[plain("ref-cycles", 0x1_0000_0120)];

/// Linux' events of each profile.
const LINUX: [(&str, [&[Entry]; 2]); 6] = [
    ("icelake-server", [INTEL, ICELAKE_SERVER]),
    ("sapphire-rapids", [INTEL, SAPPHIRE_RAPIDS]),
    // `intel_pmu_init_lnc` takes Golden Cove's.
    ("lunar-lake", [INTEL, SAPPHIRE_RAPIDS]),
    // From the version on that knows it.
    ("panther-lake", [INTEL, SAPPHIRE_RAPIDS]),
    ("zen3", [AMD, &[]]),
    ("zen4", [AMD, ZEN4]),
];

/// The events that the first counter counts with this select and off-core filter, and the reports
/// of unmodelled ones.
fn selected(
    profile: Profile,
    encoding: u64,
    filter: u64,
) -> (Vec<&'static Event>, Vec<Unmodelled>) {
    let mut pmu = VirtualPmu::new(profile, profile.counters.0);
    pmu.extra[0] = filter;
    pmu.selects[0] = encoding | select::USR | select::EN;
    let source = pmu.source(0);
    (source.events, pmu.take_unmodelled())
}

#[test]
fn every_event_of_linux_counts_or_is_known_not_to() {
    assert_eq!(
        LINUX.map(|(name, _)| name),
        [0, 1, 2, 3, 4, 5].map(|index| Profile::ALL[index].name)
    );
    for (name, entries) in LINUX {
        let profile = Profile::find(name).expect("there is one");
        for (event, encoding, filter, absent) in entries.into_iter().flatten() {
            let (events, reported) = selected(profile, *encoding, *filter);
            let signals = events.iter().map(|event| event.signals.len()).sum::<usize>();
            let what = format!("{name}: {event} ({encoding:#x}): {reported:?}");
            assert_eq!(signals == 0, absent.is_some(), "{what}");
            assert!(absent.is_none() || !reported.is_empty(), "{what}: it is not reported");
            let is_offcore = profile.offcore.contains(&(*encoding as u16 & 0xff));
            assert_eq!(is_offcore && *filter & !offcore::VALID == 0, *filter != 0, "{what}");
        }
    }
}

#[test]
fn an_event_that_nothing_models_is_reported() {
    let profile = Profile::find("zen4").expect("there is one");
    let (events, reported) = selected(profile, 0x00fe, 0);
    assert!(events.is_empty());
    assert!(matches!(reported[..], [Unmodelled::Select(_)]));
}
