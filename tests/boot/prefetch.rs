//! Hardware prefetchers of the virtual PMU: a stream misses while they are off. `cargo xtask
//! vpmu-check` tests that software turns them off by the processor's own register.

use xtask::report::{EventReport, Kind, SessionReport};

use crate::{exact, session_of};

/// Passes of a load from 4 MiB in order.
const PROGRAM: &str = "bottleneck stream 2000000";
/// Lines that the program loads.
const LINES: u64 = 2_000_000 * 4 / 64;

fn run(pmu: &str, vpmu: &str, options: &str) -> SessionReport {
    session_of(&format!("cargo xtask run --pmu {pmu} --vpmu {vpmu} {options} -- {PROGRAM}"))
}

#[test]
fn a_stream_misses_without_prefetchers_alone() {
    let intel = "MEM_LOAD_RETIRED.L1_MISS,MEM_LOAD_RETIRED.L2_MISS,L1D.REPLACEMENT";
    let amd = "DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LOCAL_CCX,MAB_ALLOCATION_BY_TYPE.LS,\
               REQUESTS_TO_L2_GROUP1.RD_BLK_L";
    for (pmu, pipeline, list, cycles) in [
        ("intel", "interval", intel, "CPU_CLK_UNHALTED.THREAD"),
        ("intel", "ooo", intel, "CPU_CLK_UNHALTED.THREAD"),
        ("amd", "ooo", amd, "CYCLES_NOT_IN_HALT"),
    ] {
        let of = |prefetch: &str| {
            let options = format!("--events {list},{cycles}");
            run(pmu, &format!("pipeline={pipeline},prefetch={prefetch}"), &options)
        };
        let [off, on] = ["off", "on"].map(of);
        let names: Vec<&str> = list.split(',').collect();
        let counts = |name: &str| [&off, &on].map(|session| exact(session, name));
        // Events of demand loads, which exclude prefetches.
        for demand in &names[..2] {
            let [off, on] = counts(demand);
            assert!(off > LINES * 9 / 10 && on < off / 10, "{pmu}: {demand}: {off}, {on}");
        }
        // Events of lines and requests, which include prefetches.
        let [fewer, more] = counts(names[2]);
        assert!(fewer.abs_diff(more) < fewer / 5, "{pmu}: {}: {fewer}, {more}", names[2]);
        // Out-of-order execution alone hides nearly all of a stream's latency. In the other
        // pipeline, which samples, the gain is below the noise.
        let [slow, fast] = counts(cycles);
        let noise = if pipeline == "ooo" { 0 } else { slow / 100 };
        assert!(fast < slow + noise, "{pmu}: {slow}, {fast}");
    }
}

#[test]
#[ignore = "long"]
fn estimates_with_prefetchers_are_as_good_as_without() {
    let intel = "MEM_LOAD_RETIRED.L1_HIT,MEM_LOAD_RETIRED.L2_MISS,L1D.REPLACEMENT,L2_LINES_IN.ALL,\
                 LONGEST_LAT_CACHE.REFERENCE,LONGEST_LAT_CACHE.MISS,L2_RQSTS.ALL_DEMAND_DATA_RD,\
                 OFFCORE_REQUESTS.ALL_DATA_RD,BR_INST_RETIRED.COND,MEM_INST_RETIRED.ALL_STORES";
    let amd = "LS_DISPATCH.LD_DISPATCH,MAB_ALLOCATION_BY_TYPE.LS,REQUESTS_TO_L2_GROUP1.RD_BLK_L,\
               ANY_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2,LS_DISPATCH.STORE_DISPATCH,\
               DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LOCAL_CCX,RETIRED_BRANCH_INSTRUCTIONS,\
               CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS.LS_RD_BLK_L_HIT_X,\
               CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS.LS_RD_BLK_C,RETIRED_TAKEN_BRANCH_INSTRUCTIONS";
    for (pmu, list) in [("intel", intel), ("amd", amd)] {
        let session = run(pmu, "prefetch=on", &format!("--events {list} --slice 20000"));
        let estimated: Vec<_> =
            session.events.iter().filter(|event| event.kind == Kind::Estimated).collect();
        assert!(estimated.len() >= 6, "{pmu}: {}", estimated.len());
        let holds = |event: &&&EventReport| {
            let (estimate, truth) = (event.estimate.unwrap() as f64, event.truth.unwrap() as f64);
            (estimate - truth).abs() <= 2.0 * event.half_width_95.unwrap().max(20.0)
        };
        let held = estimated.iter().filter(holds).count();
        assert!(held * 10 >= estimated.len() * 9, "{pmu}: {held} of {}", estimated.len());
    }
}
