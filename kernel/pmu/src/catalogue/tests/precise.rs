//! Precise events, and those whose samples have memory accesses.

use alloc::format;

use tally_engine::Precision;

use super::*;

/// Selects as Linux writes them for perf's `:pp` on Ice Lake, without the interrupt bit: bit 34 is
/// that of adaptive records.
#[test]
fn precise_events_have_the_adaptive_bit_and_the_counters_of_their_precision() {
    let sapphire = Catalogue::intel(6, 0x8f, 6, 0);
    let demand = |catalogue, word| one(catalogue, word).unwrap().demand;
    for (catalogue, word, bits, counters) in [
        (icelake(), "cycles:pp", 0x4_0041_003c, 0xff),
        (icelake(), "MEM_LOAD_RETIRED.L1_MISS:p", 0x4_0041_08d1, 0x0f),
        (icelake(), "br_misp_retired.all_branches:ppp", 0x4_0041_00c5, 0xff),
        (icelake(), "cpu/event=0xd1,umask=0x08/pp", 0x4_0041_08d1, 0x0f),
        (icelake(), "cycles:P", 0x4_0041_003c, 0xff),
        (sapphire, "MEM_LOAD_RETIRED.L1_MISS:ppp", 0x4_0041_08d1, 0x01),
        (sapphire, "MEM_LOAD_RETIRED.L1_MISS:upp", 0x4_0041_08d1, 0x0f),
    ] {
        let found = demand(catalogue, word);
        let expected = (bits, counters, None);
        assert_eq!((found.selector.0, found.counters, found.pinned), expected, "{word}");
        let most_lost = found.precise.map(|precision| precision.most_lost);
        assert_eq!(most_lost, Some(if word.starts_with("cycles") { 512 } else { 0 }), "{word}");
    }
    for word in ["instructions:p", "instructions:ppp", "INST_RETIRED.ANY:pp"] {
        let found = demand(icelake(), word);
        let needs_nothing = Some(Precision::default());
        assert_eq!((found.pinned, found.precise), (Some(Pinned::Instructions), needs_nothing));
    }
    assert_eq!(demand(icelake(), "instructions").precise, None);
    for (catalogue, word) in [(zen4(), "branches:P"), (icelake(), "ref-cycles:P")] {
        let plain = demand(catalogue, word.trim_end_matches(":P"));
        assert_eq!(demand(catalogue, word), plain, "{word}: as precise as can be had");
    }
}

#[test]
fn precise_events_are_refused_where_no_record_can_be_had() {
    let skylake = Catalogue::intel(6, 0x55, 4, 0);
    for (catalogue, word, part) in [
        (zen4(), "branch-misses:pp", "cycles:p, ex_ret_ops:p"),
        (zen4(), "cycles:ppp", "write pp"),
        (zen4(), "cpu/event=0x76,cmask=1/p", "of cycles and of ops alone"),
        (zen4(), "mem-loads:P", "record -d"),
        (zen4().with_precise(false), "cycles:pp", "need IBS"),
        (Catalogue::amd(0x17, 0x31), "cycles:pp", "need IBS"),
        (skylake, "cycles:pp", "need PEBS with adaptive records"),
        (icelake().with_precise(false), "cycles:pp", "or a hypervisor, does not show"),
        (icelake(), "ref-cycles:p", "reference cycles have no precise samples"),
        (icelake(), "topdown-retiring:p", "metrics have no samples"),
    ] {
        let (_, _, detail) = refused(catalogue, word);
        assert!(detail.contains(part), "{word}: {detail}");
    }
}

/// The op sampler's events take the first counter of groups, so that two are never counted in the
/// same slice.
#[test]
fn on_amd_cycles_and_ops_are_sampled_precisely_by_one_sampler() {
    for (word, bits, accesses) in [
        ("cycles:pp", 0x41_0076, false),
        ("cycles:P", 0x41_0076, false),
        ("r76:p", 0x41_0076, false),
        ("ex_ret_ops:p", 0x41_00c1, true),
        ("rc1:upp", 0x41_00c1, true),
    ] {
        for catalogue in [zen4(), Catalogue::amd(0x19, 1)] {
            let found = one(catalogue, word).unwrap().demand;
            assert_eq!((found.selector.0, found.counters, found.pinned), (bits, 0b100, None));
            let expected = Some(Precision { accesses, ..Precision::default() });
            assert_eq!(found.precise, expected, "{word}");
        }
    }
}

/// On Golden Cove the event of slow loads takes a second counter.
#[test]
fn samples_of_loads_and_stores_have_accesses_and_those_of_slow_loads_a_latency() {
    let sapphire = Catalogue::intel(6, 0x8f, 6, 0);
    let demand = |catalogue, word| one(catalogue, word).unwrap().demand;
    for (word, cycles) in [
        ("mem-stores:pp", 0),
        ("MEM_LOAD_RETIRED.L3_MISS:p", 0),
        ("mem-loads:P", 3),
        ("cpu/mem-loads,ldlat=30/P", 30),
        ("cpu/event=0xcd,umask=1,ldlat=0x80/pp", 128),
        ("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_64:p", 64),
    ] {
        let precision = demand(icelake(), word).precise.expect(word);
        assert_eq!((precision.accesses, precision.slow_load_cycles), (true, cycles), "{word}");
        assert_eq!((precision.most_lost, demand(icelake(), word).pair), (0, None), "{word}");
        let paired = demand(sapphire, word);
        let (second, counters) = (Some(Selector(0x41_8203)), 0b10);
        let expected = if cycles == 0 { (None, 0x0f) } else { (second, counters) };
        assert_eq!((paired.pair, paired.counters), expected, "{word}");
    }
    // Lion Cove's needs no other event, and counters from the third on have it.
    let lunar = Catalogue::intel(6, 0xbd, 1, 0x4000_0003);
    let slow = demand(lunar, "cpu/mem-loads,ldlat=30/P");
    assert_eq!((slow.pair, slow.counters, slow.selector.0), (None, 0x3fc, 0x4_0041_01cd));
    assert_eq!(demand(lunar, "MEM_LOAD_RETIRED.L2_MISS:ppp").counters, 1);
    let no_access = demand(icelake(), "BR_MISP_RETIRED.ALL_BRANCHES:pp").precise.unwrap();
    assert!(!no_access.accesses);
}

#[test]
fn slow_loads_of_a_list_have_one_latency() {
    let list = |second: &str| format!("mem-stores:P,cpu/mem-loads,ldlat=30/P,{second}");
    let resolve = |list: String| icelake().resolve(&list, Mode::User);
    assert_eq!(resolve(list("cpu/mem-loads,ldlat=30/pp")).unwrap().len(), 3);
    let refused = resolve(list("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_64:pp")).unwrap_err();
    assert!(refused.detail.contains("above 64 cycles, and above 30"), "{}", refused.detail);
}

#[test]
fn what_is_wrong_with_a_latency_is_said() {
    for (word, part) in [
        ("cpu/event=0xcd,umask=1,ldlat=3/", "the number says nothing"),
        ("cpu/mem-loads,ldlat=2/pp", "a latency is 3 to 65535 cycles"),
        ("cpu/mem-loads,ldlat=65536/pp", "a latency is 3 to 65535 cycles"),
        ("MEM_LOAD_RETIRED:L1_MISS:ldlat=3", "write cpu/mem-loads,ldlat=N/pp"),
        ("cpu/event=0xd1,umask=8,ldlat=3/", "it takes no value in an extra register"),
    ] {
        let (_, _, detail) = refused(icelake(), word);
        assert!(detail.contains(part), "{word}: {detail}");
    }
}
