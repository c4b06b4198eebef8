//! The tables are complete, and lists of events are converted to the inputs of planner and PMU.

use alloc::{string::String, vec, vec::Vec};
use tally_abi::{Error, Mode};
use tally_engine::{Pinned, Selector};

use super::*;
use crate::intel;

mod bounds;
mod extra_registers;
mod precise;
mod spellings;

/// Every processor's catalogue, and those of processors without a table.
fn catalogues() -> impl Iterator<Item = Catalogue> {
    Catalogue::all().chain([Catalogue::intel(6, 0x0f, 0, 0), Catalogue::amd(0x15, 0x02)])
}

fn icelake() -> Catalogue {
    Catalogue::intel(6, 0x6a, 6, 0)
}

fn zen4() -> Catalogue {
    Catalogue::amd(0x19, 0x11)
}

fn one(catalogue: Catalogue, word: &str) -> Result<Resolved, ResolveError> {
    catalogue.resolve(word, Mode::User).map(|mut all| all.remove(0))
}

fn selector(catalogue: Catalogue, word: &str, bits: u64, counters: u16) {
    let demand = one(catalogue, word).unwrap().demand;
    assert_eq!(
        (demand.selector.0, demand.counters, demand.pinned),
        (bits, counters, None),
        "{word}"
    );
}

fn refused(catalogue: Catalogue, list: &str) -> (String, Error, String) {
    let error = catalogue.resolve(list, Mode::User).unwrap_err();
    (error.event, error.error, error.detail)
}

/// The numbers of events are those of the vendors' files, which `tally-catalogue` counted.
#[test]
fn every_line_is_read_and_every_name_is_there_once() {
    let lines = include_str!("processors.tsv").lines().filter(|line| !line.starts_with('#'));
    let fields = lines.map(|line| line.split('\t').collect::<Vec<_>>());
    let wanted: Vec<(&str, usize)> = fields.map(|it| (it[0], it[4].parse().unwrap())).collect();
    let found: Vec<(&str, usize)> =
        Catalogue::all().map(|it| (it.name(), it.entries().count())).collect();
    assert_eq!(found, wanted);
    for catalogue in catalogues() {
        let names = catalogue.entries().map(|entry| entry.name.to_ascii_uppercase());
        let names: Vec<String> = names.collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{}", catalogue.name());
    }
    let counts = |name| Catalogue::named(name).unwrap().entries().count();
    // Golden: from the vendors' files by another program.
    let golden =
        [("haswell", 376), ("skylake", 564), ("cascadelakex", 328), ("emeraldrapids", 404)];
    let more = [("graniterapids", 398), ("lunarlake_skymont", 309), ("novalake_arcticwolf", 123)];
    for (name, count) in golden.into_iter().chain(more) {
        assert_eq!(counts(name), count, "{name}");
    }
}

#[test]
fn default_lists_are_resolved_on_their_processors() {
    for catalogue in Catalogue::all() {
        let [signature, _] = catalogue.cpuid();
        let list = tally_abi::events::default_list(signature);
        let resolved = catalogue.resolve(list, Mode::User);
        let resolved = resolved.unwrap_or_else(|why| panic!("{}: {why}", catalogue.name()));
        assert!(resolved.len() >= 6, "{}", catalogue.name());
    }
}

#[test]
fn processors_are_found_by_their_signatures() {
    let intel = |model, stepping, kind| Catalogue::intel(6, model, stepping, kind).name();
    assert_eq!(intel(0x55, 4, 0), "skylakex");
    assert_eq!(intel(0x55, 7, 0), "cascadelakex");
    assert_eq!(intel(0x8f, 8, 0), "sapphirerapids");
    assert_eq!(intel(0xcf, 2, 0), "emeraldrapids");
    assert_eq!(intel(0xad, 1, 0), "graniterapids");
    assert_eq!(intel(0x9e, 13, 0), "skylake");
    // Hybrid processors, by CPUID leaf 1AH.
    assert_eq!(intel(0x97, 2, 0x4000_0001), "alderlake_goldencove");
    assert_eq!(intel(0x97, 2, 0x2000_0001), "alderlake_gracemont");
    assert_eq!(intel(0xc5, 2, 0x2000_0003), "arrowlake_skymont");
    assert_eq!(intel(0xc5, 2, 0x2000_0002), "arrowlake_crestmont");
    // Not listed native model; no leaf.
    assert_eq!(intel(0x97, 2, 0x4000_0009), "alderlake_goldencove");
    assert_eq!(intel(0x97, 2, 0), "alderlake_goldencove");
    assert_eq!(intel(0xbe, 0, 0), "alderlake_gracemont");
    assert_eq!(Catalogue::intel(18, 1, 0, 0x4000_0005).name(), "novalake_coyotecove");
    assert_eq!(intel(0x0f, 0, 0), "architectural");
    let amd = |family, model| Catalogue::amd(family, model).name();
    let models = [(0x17, 0x01, "zen1"), (0x17, 0x31, "zen2"), (0x19, 0x21, "zen3")];
    let later = [(0x19, 0x61, "zen4"), (0x1a, 0x02, "zen5"), (0x1a, 0x50, "zen6")];
    for (family, model, name) in models.into_iter().chain(later) {
        assert_eq!(amd(family, model), name, "{family:x} {model:x}");
    }
    assert_eq!(amd(0x15, 0x02), "architectural");
    for catalogue in Catalogue::all() {
        let [leaf_1, leaf_1a] = catalogue.cpuid();
        let (family, model) = crate::detect::family_and_model(leaf_1);
        let found = if catalogue.is_intels() {
            Catalogue::intel(family, model, leaf_1 as u8 & 0xf, leaf_1a)
        } else {
            Catalogue::amd(family, model)
        };
        assert_eq!(found.name(), catalogue.name());
    }
    let by_name = |name| Catalogue::named(name).map(|it| it.name());
    assert_eq!(by_name("icx"), Some("icelakex"));
    assert_eq!(by_name("graniterapids"), Some("graniterapids"));
    assert_eq!([by_name("tally"), by_name("architectural"), by_name("z80")], [None; 3]);
}

#[test]
fn every_event_is_countable_or_says_why_not() {
    for catalogue in catalogues() {
        for entry in catalogue.entries() {
            match catalogue.resolve(entry.name, Mode::Full) {
                Ok(all) => {
                    assert_eq!((all.len(), all[0].name.as_str()), (1, entry.name));
                    let native = catalogue.find(all[0].native.unwrap()).unwrap();
                    assert_eq!((native.code, native.extra), (entry.code, entry.extra));
                }
                // Of Skylake's tables: the event that the others give values to.
                Err(why) if entry.name == "OFFCORE_RESPONSE" => {
                    assert!(why.detail.contains("nothing without offcore_rsp="), "{why:?}");
                }
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
    let always = |catalogue, word| one(catalogue, word).unwrap().demand.pinned;
    assert_eq!(always(icelake(), "INST_RETIRED.ANY"), Some(Pinned::Instructions));
    assert_eq!(always(icelake(), "CPU_CLK_UNHALTED.THREAD"), Some(Pinned::Cycles));
    assert_eq!(always(icelake(), "CPU_CLK_UNHALTED.REF_TSC"), Some(Pinned::Reference));
    // A fixed counter counts its twins on general counters too.
    assert_eq!(always(icelake(), "INST_RETIRED.ANY_P"), Some(Pinned::Instructions));
    assert_eq!(always(icelake(), "r3c"), Some(Pinned::Cycles));
    assert_eq!(always(icelake(), "cycles:u"), Some(Pinned::Cycles));
    assert_eq!(always(icelake(), "cycles:k"), None);
    assert_eq!(always(icelake(), "instructions:c=2"), None);
    assert_eq!(always(zen4(), "RETIRED_INSTRUCTIONS"), Some(Pinned::Instructions));
    assert_eq!(always(zen4(), "CYCLES_NOT_IN_HALT"), Some(Pinned::Cycles));
}

#[test]
fn raw_events_take_their_counters_from_the_table() {
    selector(icelake(), "r2724", 0x41_2724, 0x0f);
    // Codes that no table has: counters 4 to 7 support fewer events.
    selector(icelake(), "r01fe", 0x41_01fe, 0x0f);
    selector(icelake(), "cpu/event=0xe7,umask=1,cmask=1/", 0x141_01e7, 0x0f);
    selector(Catalogue::intel(6, 0x0f, 2, 0), "r01d1", 0x41_01d1, 0x0f);
    selector(zen4(), "r0000000fe", 0x41_00fe, 0x3f);
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
    why("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128", "Sample it: record -e with :pp");
    why("INST_RETIRED.PREC_DIST", "fixed counter 0");
    why("CPU_CLK_UNHALTED.REF_TSC:k", "fixed counter 2 in Kernel mode");
    why("CPU_CLK_UNHALTED.REF_TSC:c=1", "a modified event");
    why("stalled-cycles-backend", "top-down");
    why("PAPI_L1_TCM", "count L1D.REPLACEMENT and L2_RQSTS.ALL_CODE_RD");
    let skylake = Catalogue::named("skx").unwrap();
    assert!(refused(skylake, "CPU_CLK_UNHALTED.THREAD_P_ANY").2.contains("other thread"));
}

/// In every spelling: the tables' names, numbers with any unit mask, PAPI's presets. Encodings are
/// Linux's (`AMD_MERGE_EVENT_ENABLE`, `even_ctr_mask`).
#[test]
fn what_happens_more_than_15_times_a_cycle_takes_two_counters_of_amds() {
    const MERGE: Selector = Selector(0xf << 32 | 1 << 22 | 0xff);
    for catalogue in [Catalogue::amd(0x17, 0x31), Catalogue::amd(0x19, 1), zen4()] {
        for (word, select) in [
            ("r0f03", 0x41_0f03),
            ("cpu/event=3,umask=0x63/k", 0x42_6303),
            ("RETIRED_SSE_AVX_FLOPS.MULT_FLOPS", 0x41_0203),
            ("PAPI_FDV_INS", 0x41_0403),
        ] {
            let demand = one(catalogue, word).unwrap().demand;
            assert_eq!(demand.selector, Selector(select), "{word}");
            assert_eq!((demand.counters, demand.pair), (0x15, Some(MERGE)), "{word}");
        }
        assert_eq!(one(catalogue, "rc1").unwrap().demand.pair, None);
    }
    // The unit masks of all operations, from libpfm4's tables.
    for (model, all) in [(0x17, 0xff), (0x31, 0x0f)] {
        selector(Catalogue::amd(0x17, model), "PAPI_FP_OPS", 0x41_0003 | all << 8, 0x15);
    }
    selector(zen4(), "PAPI_FP_OPS", 0x41_1f03, 0x15);
    selector(Catalogue::amd(0x17, 0x17), "PAPI_FML_INS", 0x41_2203, 0x15);
}

#[test]
fn what_cannot_be_counted_by_two_counters_of_amds_is_refused() {
    let why = |catalogue, word, part: &str| {
        let (_, error, detail) = refused(catalogue, word);
        assert_eq!(error, Error::EventNotSupported, "{word}");
        assert!(detail.contains(part), "{word}: {detail}");
    };
    for catalogue in [Catalogue::amd(0x19, 1), zen4(), Catalogue::amd(0x15, 2)] {
        why(catalogue, "cpu/event=3,umask=0x63,cmask=2/k", "it takes two counters");
        why(catalogue, "cpu/event=0xfff/", "would change what the counter below it counts");
        why(catalogue, "rf000000ff:u", "would change what the counter below it counts");
    }
    why(Catalogue::amd(0x15, 2), "r0f03", "no table");
    // On Intel this number is a different event.
    assert!(one(icelake(), "cpu/event=3,umask=0x82/").is_ok());
}

#[test]
fn what_a_fixed_counter_does_not_count_its_twin_does() {
    selector(icelake(), "INST_RETIRED.ANY:k", 0x42_00c0, 0xff);
    selector(icelake(), "CPU_CLK_UNHALTED.THREAD:c=1:i", 0x1c1_003c, 0xff);
    selector(icelake(), "slots", 0x41_01a4, 0xff);
    selector(icelake(), "bus-cycles", 0x41_013c, 0xff);
    let spr = Catalogue::intel(6, 0x8f, 8, 0);
    selector(spr, "ref-cycles:k", 0x42_013c, 0xff);
    // The event of Ice Lake's bus cycles counts at the time-stamp counter's rate.
    let (_, error, why) = refused(spr, "bus-cycles");
    assert!(error == Error::EventNotSupported && why.contains("ref-cycles"), "{why}");
    assert!(one(icelake(), "INST_RETIRED.ANY:k").unwrap().demand.kernel);
}

#[test]
fn aliases_are_countable_or_say_why_not() {
    for catalogue in catalogues() {
        for name in aliases::aliases(&catalogue) {
            match catalogue.resolve(name, Mode::User) {
                Ok(all) => assert!(all[0].name.eq_ignore_ascii_case(name), "{name}"),
                Err(why) => {
                    assert_eq!(why.error, Error::EventNotSupported, "{} {why:?}", catalogue.name());
                    let refused = aliases::alias(&catalogue, name);
                    match catalogue.derived(name) {
                        Some(of) => {
                            assert!(catalogue.resolve(&of.terms.join(","), Mode::User).is_ok())
                        }
                        None => {
                            let is_so = match refused {
                                Some(aliases::Alias::Refused(_)) => true,
                                Some(aliases::Alias::Event(of)) => {
                                    catalogue.resolve(of, Mode::User).is_err()
                                }
                                _ => false,
                            };
                            assert!(is_so, "{why:?}");
                        }
                    }
                }
            }
        }
    }
    let one = |catalogue, word| one(catalogue, word).unwrap();
    assert_eq!(one(icelake(), "PAPI_BR_MSP").native, Some("BR_MISP_RETIRED.COND"));
    assert_eq!(
        one(zen4(), "branch-misses").native,
        Some("RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED")
    );
    // perf's own names. The codes are AMD's: PMCx0C3, PMCx076, PMCx064 with mask 8.
    for (name, of) in [
        ("ex_ret_brn_misp", "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED"),
        ("ls_not_halted_cyc", "CYCLES_NOT_IN_HALT"),
        ("l2_cache_req_stat.ls_rd_blk_c", "CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS.LS_RD_BLK_C"),
    ] {
        assert_eq!(one(zen4(), name).native, Some(of));
    }
    assert_eq!(one(icelake(), "L1-DCACHE-LOADS").native, Some("MEM_INST_RETIRED.ALL_LOADS"));
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
fn names_of_other_processors_and_tracepoints_are_said_to_be_that() {
    let why = |of, name| refused(of, name).2;
    let of_intel = why(zen4(), "INST_RETIRED.ANY");
    assert!(of_intel.starts_with("it is an event of other processors ("), "{of_intel}");
    assert!(of_intel.ends_with(", …), not of zen4; here: instructions"), "{of_intel}");
    let of_amd = why(icelake(), "EX_RET_INSTR");
    assert!(of_amd.contains("zen1") && of_amd.ends_with("; here: instructions"), "{of_amd}");
    let misses = why(icelake(), "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED");
    assert!(misses.ends_with("; here: branch-misses"), "{misses}");
    assert!(why(zen4(), "mem_load_retired:l3_miss").ends_with("…), not of zen4"));
    let (_, error, detail) = refused(icelake(), "syscalls:sys_enter_read");
    assert_eq!(error, Error::EventNotSupported);
    assert!(detail.contains("no tracepoints"), "{detail}");
    assert!(
        why(icelake(), "mem_load_retired:l1_mis").contains("nearest: MEM_LOAD_RETIRED.L1_MISS")
    );
    assert!(
        why(icelake(), "qwertz.zuiop")
            .ends_with(" no such event: `cargo xtask events TEXT` searches them")
    );
}

#[test]
fn lists_are_split_and_counted() {
    let all = icelake().resolve(" r00c4,\n inst_retired.any ,,r00c5", Mode::User).unwrap();
    let names: Vec<&str> = all.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["r00c4", "INST_RETIRED.ANY", "r00c5"]);
    assert_eq!(refused(icelake(), " , ").1, Error::NoEvents);
    assert_eq!(refused(icelake(), &"r00c4 ".repeat(1025)).1, Error::TooManyEvents);
}

#[test]
fn tally_s_own_events_are_there_under_its_virtual_pmu_only() {
    for catalogue in catalogues() {
        let (_, error, why) = refused(catalogue, "tally.fmt.branch");
        assert_eq!(error, Error::EventNotSupported);
        assert!(why.contains("cargo xtask run"), "{why}");
        let there = catalogue.with_tallys();
        let event = one(there, "TALLY.FMT.BRANCH:u").unwrap();
        assert_eq!(event.native, Some("tally.fmt.branch"));
        assert_eq!(event.demand.selector.0 & 0xffff, 0x53fd);
        assert_eq!(there.entries().count(), catalogue.entries().count());
        assert!(catalogue.entries().all(|entry| entry.code != 0xfd), "{}", catalogue.name());
    }
}
