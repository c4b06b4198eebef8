//! The tables are whole, and lists of events become what the planner and the PMU need.

use alloc::{string::String, vec::Vec};
use std::collections::BTreeSet;

use tally_abi::{Error, Mode};
use tally_engine::Always;

use super::*;

const ALL: [(u16, u8, bool); 6] = [
    (6, 0x6a, true),
    (6, 0x8f, true),
    (6, 0x55, true),
    (0x19, 0x01, false),
    (0x19, 0x11, false),
    (0x1a, 0x02, false),
];

fn catalogues() -> impl Iterator<Item = Catalogue> {
    ALL.into_iter().map(|(family, model, intel)| match intel {
        true => Catalogue::intel(family, model),
        false => Catalogue::amd(family, model),
    })
}

fn icelake() -> Catalogue {
    Catalogue::intel(6, 0x6a)
}

fn zen4() -> Catalogue {
    Catalogue::amd(0x19, 0x11)
}

fn one(catalogue: Catalogue, word: &str) -> Result<Resolved, ResolveError> {
    catalogue.resolve(word, Mode::User).map(|mut all| all.remove(0))
}

fn selector(catalogue: Catalogue, word: &str, bits: u64, counters: u8) {
    let demand = one(catalogue, word).unwrap().demand;
    assert_eq!(
        (demand.selector.0, demand.counters, demand.always),
        (bits, counters, None),
        "{word}"
    );
}

fn refused(catalogue: Catalogue, list: &str) -> (String, Error, String) {
    let error = catalogue.resolve(list, Mode::User).unwrap_err();
    (error.event, error.error, error.detail)
}

#[test]
fn every_line_is_read_and_every_name_is_there_once() {
    let names =
        ["icelake-server", "sapphire-rapids", "architectural", "zen3", "zen4", "architectural"];
    assert!(catalogues().map(|catalogue| catalogue.name()).eq(names));
    for catalogue in catalogues() {
        let lines = catalogue.table.lines().filter(|line| !line.starts_with('#')).count();
        let entries: BTreeSet<&str> = catalogue.entries().map(|entry| entry.name).collect();
        assert_eq!(entries.len(), lines, "{}", catalogue.name);
        assert!(lines >= 6);
    }
}

#[test]
fn every_event_is_countable_or_says_why_not() {
    for catalogue in catalogues() {
        for entry in catalogue.entries() {
            match catalogue.resolve(entry.name, Mode::Full) {
                Ok(all) => assert_eq!((all.len(), all[0].name.as_str()), (1, entry.name)),
                Err(why) => assert_eq!(why.error, Error::EventNotSupported, "{why:?}"),
            }
        }
    }
}

#[test]
fn selectors_are_the_vendors_own() {
    selector(icelake(), "BR_INST_RETIRED.ALL_BRANCHES", 0x41_00c4, 0xff);
    selector(icelake(), "l2_rqsts.all_demand_miss", 0x41_2724, 0x0f);
    selector(icelake(), "CYCLE_ACTIVITY.STALLS_TOTAL", 0x0441_04a3, 0xff);
    selector(zen4(), "LS_DISPATCH.LD_DISPATCH", 0x41_0129, 0x3f);
    selector(zen4(), "P0_FREQ_CYCLES_NOT_IN_HALT.P0_FREQ_CYCLES", 0x1_0041_0120, 0x3f);
    let modes = [(Mode::User, 1), (Mode::Kernel, 2), (Mode::Full, 3)];
    for (mode, privilege) in modes {
        let demand = icelake().resolve("r00c4", mode).unwrap()[0].demand;
        assert_eq!(demand.selector.0 >> 16 & 3, privilege);
    }
}

#[test]
fn what_the_driver_always_counts_needs_no_counter() {
    let always = |catalogue, word| one(catalogue, word).unwrap().demand.always;
    assert_eq!(always(icelake(), "INST_RETIRED.ANY"), Some(Always::Instructions));
    assert_eq!(always(icelake(), "CPU_CLK_UNHALTED.THREAD"), Some(Always::Cycles));
    assert_eq!(always(icelake(), "CPU_CLK_UNHALTED.REF_TSC"), Some(Always::Reference));
    assert_eq!(always(icelake(), "INST_RETIRED.ANY_P"), None);
    assert_eq!(always(zen4(), "RETIRED_INSTRUCTIONS"), Some(Always::Instructions));
    assert_eq!(always(zen4(), "CYCLES_NOT_IN_HALT"), Some(Always::Cycles));
}

#[test]
fn raw_events_take_their_counters_from_the_table() {
    selector(icelake(), "r2724", 0x41_2724, 0x0f);
    selector(icelake(), "r01fe", 0x41_01fe, 0xff);
    selector(zen4(), "r100000120", 0x1_0041_0120, 0x3f);
    let (event, error, _) = refused(icelake(), "r1004100c4");
    assert_eq!((event.as_str(), error), ("r1004100c4", Error::BadArgument));
}

#[test]
fn what_cannot_be_counted_says_why() {
    let why = |word, part: &str| {
        let (_, error, detail) = refused(icelake(), word);
        assert_eq!(error, Error::EventNotSupported);
        assert!(detail.contains(part), "{detail}");
    };
    why("OCR.DEMAND_DATA_RD.ANY_RESPONSE", "an off-core response register (0x1a6)");
    why("FRONTEND_RETIRED.DSB_MISS", "the front-end event register");
    why("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128", "load-latency");
    why("TOPDOWN.SLOTS", "fixed counter 3");
    why("INST_RETIRED.PREC_DIST", "fixed counter 0");
}

#[test]
fn unknown_names_give_the_nearest() {
    let (event, error, detail) =
        refused(icelake(), "INST_RETIRED.ANY, BR_INST_RETIRED.ALL_BRANCHS");
    assert_eq!((event.as_str(), error), ("BR_INST_RETIRED.ALL_BRANCHS", Error::UnknownEvent));
    assert!(detail.contains("nearest: BR_INST_RETIRED.ALL_BRANCHES,"), "{detail}");
    let (.., detail) = refused(zen4(), "retired_instrs");
    assert!(detail.contains("RETIRED_INSTRUCTIONS"), "{detail}");
}

#[test]
fn lists_are_split_and_counted() {
    let all = icelake().resolve(" r00c4,\n inst_retired.any ,,r00c5", Mode::User).unwrap();
    let names: Vec<&str> = all.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["r00c4", "INST_RETIRED.ANY", "r00c5"]);
    assert_eq!(refused(icelake(), " , ").1, Error::NoEvents);
    assert_eq!(refused(icelake(), &"r00c4 ".repeat(1025)).1, Error::TooManyEvents);
}
