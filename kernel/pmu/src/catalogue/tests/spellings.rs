//! Events as perf, libpfm4 and PAPI spell them.

use alloc::format;

use super::*;

/// Encodings of libpfm4 4.13, without the interrupt bit, which counting does not use.
const LIBPFM: [(&str, u64, u64); 24] = [
    ("icx::MEM_LOAD_RETIRED:L1_MISS:u", 0x4108d1, 0x0),
    ("icx::MEM_LOAD_RETIRED:L1_MISS:u:k:c=1:i:e", 0x1c708d1, 0x0),
    ("icx::BR_INST_RETIRED:ALL_BRANCHES:k", 0x4200c4, 0x0),
    ("icx::CYCLE_ACTIVITY:STALLS_TOTAL:u", 0x44104a3, 0x0),
    ("icx::L2_RQSTS:ALL_DEMAND_DATA_RD", 0x41e124, 0x0),
    ("icx::LONGEST_LAT_CACHE:MISS:u=1:k=1", 0x43412e, 0x0),
    ("icx::UOPS_ISSUED:STALL_CYCLES", 0x1c1010e, 0x0),
    ("skx::MEM_LOAD_RETIRED:L1_MISS:u", 0x4108d1, 0x0),
    ("skx::MEM_LOAD_RETIRED:L3_MISS:k", 0x4220d1, 0x0),
    ("skx::L2_RQSTS:ALL_DEMAND_DATA_RD:c=3", 0x341e124, 0x0),
    ("skx::L1D:REPLACEMENT", 0x410151, 0x0),
    ("skx::IDQ_UOPS_NOT_DELIVERED:CORE", 0x41019c, 0x0),
    ("skx::FRONTEND_RETIRED:DSB_MISS", 0x4101c6, 0x11),
    ("skx::FRONTEND_RETIRED:ITLB_MISS", 0x4101c6, 0x14),
    ("spr::MEM_LOAD_RETIRED:L1_MISS:u", 0x4108d1, 0x0),
    ("spr::TOPDOWN:SLOTS_P", 0x4101a4, 0x0),
    ("spr::BR_MISP_RETIRED:COND", 0x4111c5, 0x0),
    ("spr::DTLB_LOAD_MISSES:WALK_COMPLETED:k:c=1:i", 0x1c20e12, 0x0),
    ("amd64_fam19h_zen3::RETIRED_BRANCH_INSTRUCTIONS:u", 0x4100c2, 0x0),
    ("amd64_fam19h_zen3::LS_DISPATCH:LD_ST_DISPATCH:STORE_DISPATCH:LD_DISPATCH", 0x410729, 0x0),
    ("amd64_fam19h_zen4::L1_DTLB_MISS:TLB_RELOAD_4K_L2_HIT:k:c=2:i:e", 0x2c60145, 0x0),
    ("amd64_fam19h_zen4::REQUESTS_TO_L2_GROUP1:RD_BLK_L:RD_BLK_X", 0x41c060, 0x0),
    ("amd64_fam19h_zen4::P0_FREQ_CYCLES_NOT_IN_HALT:P0_FREQ_CYCLES", 0x100410120, 0x0),
    ("amd64_fam19h_zen4::RETIRED_BRANCH_MISPREDICTED_DIRECTION_MISMATCH", 0x1004100c7, 0x0),
];

#[test]
fn libpfm_encodes_the_same() {
    for (word, select, value) in LIBPFM {
        let pmu = word.split_once("::").unwrap().0;
        let catalogue =
            catalogues().find(|catalogue| catalogue.pfm_names().contains(&pmu)).unwrap();
        let demand = one(catalogue, word).unwrap().demand;
        assert_eq!(demand.selector.0, select, "{word}");
        assert_eq!(demand.extra.map_or(0, |extra| extra.value), value, "{word}");
    }
}

#[test]
fn spellings_of_perf_are_understood() {
    let check = |word, bits, counters| selector(icelake(), word, bits, counters);
    check("cpu/event=0xd1,umask=0x08,cmask=1/", 0x141_08d1, 0xf);
    check("cpu/event=0xd1,umask=8,cmask=1,inv,edge,any=0,pc=0/k", 0x1c6_08d1, 0xf);
    check("CPU/event=209,umask=8/:uk", 0x43_08d1, 0xf);
    check("cpu/mem_load_retired.l1_miss,cmask=2,inv=1,edge=0/", 0x2c1_08d1, 0xf);
    check("cpu/config=0x18408d1/u", 0x1c5_08d1 & !0x40_0000 | 0x40_0000, 0xf);
    check("r08d1:k", 0x42_08d1, 0xf);
    check("r8d1/u", 0x41_08d1, 0xf);
    check("mem_load_retired.l1_miss/uk", 0x43_08d1, 0xf);
    // A unit mask that no table has can use the counters that all events of its code can use.
    check("r03a3", 0x41_03a3, 0xf);
    let all = icelake().resolve("cpu/event=0xd1,umask=0x08,name=misses/u@3,cycles/u", Mode::Full);
    let all = all.unwrap();
    let told: Vec<_> = all.iter().map(|e| (e.name.as_str(), e.mode, e.demand.share)).collect();
    assert_eq!(told, [("misses", Mode::User, 3), ("cycles/u", Mode::User, 1)]);
    assert_eq!(all[0].native, Some("MEM_LOAD_RETIRED.L1_MISS"));
    let share = icelake().resolve("inst_retired.any@4 r08d1:u@2", Mode::User).unwrap();
    assert_eq!((share[0].name.as_str(), share[0].demand.share), ("INST_RETIRED.ANY", 4));
    assert_eq!((share[1].name.as_str(), share[1].demand.share), ("r08d1:u", 2));
    let group = icelake().resolve("{branches,branch-misses}:k,branches", Mode::Full).unwrap();
    let told: Vec<_> = group.iter().map(|e| (e.name.as_str(), e.mode, e.demand.together)).collect();
    let inside =
        [("branches:k", Mode::Kernel, Some(0)), ("branch-misses:k", Mode::Kernel, Some(0))];
    assert_eq!((&told[..2], told[2]), (&inside[..], ("branches", Mode::Full, None)));
}

/// Applies to events that a fixed counter would count, too.
#[test]
fn a_counter_can_be_chosen() {
    let check = |catalogue, word, bits, counters| selector(catalogue, word, bits, counters);
    check(icelake(), "cpu/MEM_LOAD_RETIRED.L1_MISS,counter=2/", 0x41_08d1, 1 << 2);
    check(icelake(), "cpu/event=0xc0,counter=7/", 0x41_00c0, 1 << 7);
    check(icelake(), "cpu/instructions,counter=0/u", 0x41_00c0, 1);
    check(zen4(), "cpu/cycles,counter=5/", 0x41_0076, 1 << 5);
    for (word, part) in [
        (
            "cpu/MEM_LOAD_RETIRED.L1_MISS,counter=4/",
            "counter 4 cannot count it; those of the mask 0xf",
        ),
        ("cpu/event=0xc0,counter=8/", "counter 8 cannot count it"),
        ("cpu/ref-cycles,counter=0/", "only a fixed counter counts it"),
    ] {
        let (_, error, detail) = refused(icelake(), word);
        assert_eq!(error, Error::EventNotSupported, "{word}: {detail}");
        assert!(detail.contains(part), "{word}: {detail}");
    }
    let (_, error, detail) = refused(icelake(), "cpu/event=0xc0,counter=1,counter=2/");
    assert_eq!(error, Error::BadArgument, "{detail}");
}

#[test]
fn a_word_behind_an_event_that_is_neither_unit_mask_nor_modifier_is_named() {
    let (event, error, why) = refused(icelake(), "cycles:z");
    assert_eq!((event.as_str(), error), ("cycles:z", Error::UnknownEvent), "{why}");
    assert!(why.starts_with("'z' is no unit mask of cycles; modifiers are u"), "{why}");
}

#[test]
fn what_is_wrong_in_a_spelling_is_said() {
    let long = std::format!("cpu/event=1,name={}/", "x".repeat(300));
    let wrong = |word, error, part: &str| {
        let (event, found, detail) = refused(icelake(), word);
        assert_eq!((event.as_str(), found), (word, error), "{detail}");
        assert!(detail.contains(part) && !detail.contains('\n'), "{detail}");
    };
    let bad = |word, part| wrong(word, Error::BadArgument, part);
    bad("cycles:pppp", "'p': p is for precise samples, up to three times");
    bad("cycles:G", "'G': hypervisors");
    bad("cycles/x", "'x': modifiers are u");
    for braces in ["{cycles", "cycles}", "{cycles}u", "cpu/event=0xd1/}", "{cycles,{cycles}}"] {
        let (event, error, detail) = refused(icelake(), braces);
        assert_eq!((event.as_str(), error), ("", Error::BadArgument), "{braces}");
        assert!(detail.contains("brace"), "{detail}");
    }
    wrong("page-faults", Error::EventNotSupported, "use `tally stat -e page-faults`");
    wrong("page-fault", Error::UnknownEvent, "nearest: page-faults");
    bad("cycles:S", "'S': modifiers are u and k; events between braces");
    bad("cpu/event=0xd1,umsk=3/", "'umsk=3': terms are event,");
    bad("cpu/event=0xd1,umask=300/", "'umask=0x12c': this processor's unit masks");
    bad("cpu/event=0x1d1/", "'event=0x1d1': more than 0xff");
    bad("cpu/event=+1/", "'+1' is no number");
    bad("cpu/event=0xd1", "no second slash");
    bad("cpu//", "names no event");
    bad("cpu/event=0xd1,umask=8,any/", "other thread");
    bad("uncore_imc/clockticks/", "the only PMU here is cpu");
    bad("MEM_LOAD_RETIRED:L1_MISS:c=x", "'x' is no number");
    bad("MEM_LOAD_RETIRED:L1_MISS:z=1", "attributes are u, k, c=N, i and e");
    bad("cycles@0", "1 to 64");
    bad(&long, "at most 255 bytes");
    bad("cycles@x", "after @ goes a number");
    bad("r01b7", "it counts nothing without offcore_rsp= (register 0x1a6)");
    bad("cpu/event=0xb7,umask=1,frontend=1/", "'frontend': this event takes offcore_rsp");
    bad("cpu/event=0xb7,umask=1,offcore_rsp=0x4000000000/", "has no bits 0x4000000000");
    bad("cpu/event=0xd1,umask=8,offcore_rsp=1/", "it takes no value in an extra register");
    let unknown = |word, part| wrong(word, Error::UnknownEvent, part);
    unknown("skx::INST_RETIRED:ANY_P", "'skx::' is not this processor");
    unknown("MEM_LOAD_RETIRED:L1_MIS:u", "nearest: MEM_LOAD_RETIRED.L1_MISS,");
    unknown("branch-mises", "nearest: branch-misses,");
}

#[test]
fn numeric_terms_of_another_pmu_are_refused_whole() {
    for other in ["imc_0/event=4,umask=3/", "cpu_core/event=0xd1,umask=8/", "amd_l3/event=4/"] {
        for list in [other.into(), format!("cpu/event=0xd1,umask=8/u,{{cycles/u,{other}}}")] {
            let (event, error, detail) = refused(icelake(), &list);
            assert_eq!((event.as_str(), error), (other, Error::BadArgument), "{detail}");
            assert!(detail.contains("the only PMU here is cpu"), "{detail}");
        }
    }
}

/// For example, `cycles :u` is two words.
#[test]
fn what_names_no_event_or_two_is_refused() {
    let wrong = |word, part: &str| {
        let (event, found, detail) = refused(icelake(), word);
        assert_eq!((event.as_str(), found), (word, Error::BadArgument), "{detail}");
        assert!(detail.contains(part), "{word}: {detail}");
    };
    for word in [":u", ":u@2", "cpu//u", "icx::", "cpu/name=x/", "cpu/umask=8/", ":foo", "/k"] {
        wrong(word, "it names no event");
    }
    wrong("cycles:", "nothing after the colon");
    wrong("r00c4:kernel", "'kernel': a select in numbers has its unit mask");
    wrong("r00c4:user", "'user': a select in numbers");
    wrong("icx::r00c4:foo", "'foo': a select in numbers");
    wrong(
        "cpu/r00c5,BR_INST_RETIRED.ALL_BRANCHES/",
        "'BR_INST_RETIRED.ALL_BRANCHES': the event is",
    );
    wrong("cpu/BR_INST_RETIRED.ALL_BRANCHES,r00c5/", "'r00c5': the event is");
    wrong("cpu/MEM_LOAD_RETIRED.L1_MISS,cycles/", "'cycles': the event is");
    wrong("cpu/MEM_LOAD_RETIRED.L1_MISS,event=1/", "'event=1': the event is");
    wrong("cpu/umask=1,MEM_LOAD_RETIRED.L1_MISS/", "'MEM_LOAD_RETIRED.L1_MISS': the event is");
    wrong("cpu/config=0xc4,umask=1/", "'umask=1': the event is");
    wrong("cpu/config=0xc4,config=0xc5/", "'config=0xc5': the event is");
}

#[test]
fn what_is_said_twice_is_refused() {
    let wrong = |word, part: &str| {
        let (event, found, detail) = refused(icelake(), word);
        assert_eq!((event.as_str(), found), (word, Error::BadArgument), "{detail}");
        assert!(detail.contains(part), "{word}: {detail}");
    };
    for (word, second) in [
        ("cpu/event=0xd1,umask=8,umask=1/", "umask=1"),
        ("cpu/event=0xd1,event=0xd1,umask=8/", "event=0xd1"),
        ("cpu/r08d1,cmask=1,cmask=2/", "cmask=2"),
        ("cpu/r08d1,inv,inv=0/", "inv=0"),
        ("cpu/r08d1,name=a,name=b/", "name=b"),
        ("cpu/r1b7,offcore_rsp=1,config1=2/", "config1=2"),
        ("MEM_LOAD_RETIRED:L1_MISS:c=1:c=2", "c=2"),
        ("MEM_LOAD_RETIRED:L1_MISS:e:e=0", "e=0"),
        ("branches:u:u=0", "u=0"),
        ("branches:u/u", "u"),
        ("branches:kuk", "k"),
    ] {
        wrong(word, &std::format!("'{second}': it is given twice"));
    }
    wrong("r10008d1:c=2", "the numeric select has that already");
    wrong("r8408d1:i=0", "the numeric select has that already");
    wrong("r408d1:e", "the numeric select has that already");
    wrong("cpu/r08d1,name=/", "'name=': it has no name to give");
}

#[test]
fn privileges_are_the_ones_asked_for_or_what_is_left_of_the_sessions() {
    let mode = |word, session| match icelake().resolve(word, session) {
        Ok(all) => Ok(all[0].mode),
        Err(why) => Err((why.error, why.detail)),
    };
    for (word, of_user, of_full) in [
        ("branches:u", Mode::User, Mode::User),
        ("branches:k", Mode::Kernel, Mode::Kernel),
        ("branches:u:k", Mode::Full, Mode::Full),
        ("branches:u=1:k=0", Mode::User, Mode::User),
        ("branches:k=0", Mode::User, Mode::User),
        ("branches:u=0:k", Mode::Kernel, Mode::Kernel),
    ] {
        assert_eq!(mode(word, Mode::User), Ok(of_user), "{word}");
        assert_eq!(mode(word, Mode::Full), Ok(of_full), "{word}");
    }
    assert_eq!(mode("branches:u=0", Mode::Full), Ok(Mode::Kernel));
    assert_eq!(mode("branches:u=0", Mode::Kernel), Ok(Mode::Kernel));
    for (word, session) in [
        ("branches:u=0", Mode::User),
        ("branches:k=0", Mode::Kernel),
        ("branches:u=0:k=0", Mode::Full),
    ] {
        let (error, detail) = mode(word, session).unwrap_err();
        assert_eq!(error, Error::BadArgument);
        assert!(detail.contains("no privilege is left"), "{detail}");
    }
}

/// Fragments from which spellings are composed.
fn pieces() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let piece = prop_oneof![
        prop::sample::select(vec![
            "cpu/",
            "CPU/",
            "event=",
            "umask=",
            "offcore_rsp=",
            "name=",
            "0x",
            "1",
            "ff",
            "/",
            ":",
            ",",
            "@",
            "u",
            "k",
            "p",
            "c=",
            "i",
            "e",
            "::",
            "icx",
            "r",
            "MEM_LOAD_RETIRED",
            "L1_MISS",
            "cycles",
            " ",
            "=",
            "99999999999999999999",
        ])
        .prop_map(String::from),
        "\\PC",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

#[test]
fn white_space_of_several_bytes_separates() {
    for catalogue in catalogues() {
        assert!(catalogue.resolve("\u{205f}/", Mode::User).is_err());
    }
}

proptest::proptest! {
    // The search for similar names is slow in unoptimized builds.
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(12))]
    #[test]
    fn no_spelling_panics(list in pieces(), any in "\\PC*") {
        for catalogue in catalogues() {
            for text in [&list, &any] {
                if let Err(why) = catalogue.resolve(text, Mode::User) {
                    proptest::prop_assert!(!why.detail.is_empty() && !why.detail.contains('\n'));
                }
            }
        }
    }

    #[test]
    fn numbers_come_back(
        code in 1..=0xff_u64,
        umask in 0..=0xff_u64,
        cmask in 1..=0xff_u64,
        inv in 0..=1_u64,
        edge in 0..=1_u64,
    ) {
        let config = code | umask << 8 | edge << 18 | inv << 23 | cmask << 24;
        let terms = std::format!(
            "cpu/event={code:#x},umask={umask},cmask={cmask},inv={inv},edge={edge}/k"
        );
        let by_terms = icelake().resolve(&terms, Mode::User);
        let by_config = icelake().resolve(&std::format!("r{config:x}:k"), Mode::User);
        match (by_terms, by_config) {
            (Ok(terms), Ok(raw)) => {
                proptest::prop_assert_eq!(terms[0].demand, raw[0].demand);
                let select = raw[0].demand.selector.0;
                proptest::prop_assert_eq!(select, config | 1 << 22 | 1 << 17);
            }
            (Err(terms), Err(raw)) => proptest::prop_assert_eq!(terms.detail, raw.detail),
            other => proptest::prop_assert!(false, "{other:?}"),
        }
    }
}
