//! Halts: programs that are stopped in an interrupt handler.

use tally_abi::{
    halt::{HaltTimer, Halts},
    truth::{Region, RegionKind},
};
use xtask::{
    halts::HaltArgs,
    machine::{Boot, Pmu, Request},
    report::Report,
};

use crate::{assert_exact_counts_are_true, assert_success, boot};

/// Run of `program` with these halts, if any.
fn halted(pmu: Pmu, halt: Option<Halts>, program: &str) -> Boot {
    let args = HaltArgs { halt, halt_timer: halt.map(|_| HaltTimer::Held) };
    let boot =
        boot(&Request { pmu, ..Request::new(format!("wire{} -- {program}", args.options())) });
    assert_success(&boot);
    boot
}

fn region(boot: &Boot) -> &Region {
    let truth = boot.truth.as_ref().expect("there is the virtual PMU");
    truth.region(RegionKind::Marked, 7).expect("the kernel opens it")
}

/// Count in ring 3 of the first of these events that the machine has.
fn count(region: &Region, names: [&str; 2]) -> u64 {
    names.iter().find_map(|name| region.events.get(*name)).expect("it is modelled").user
}

const CYCLES: [&str; 2] = ["CPU_CLK_UNHALTED.THREAD", "CYCLES_NOT_IN_HALT"];
const INSTRUCTIONS: [&str; 2] = ["INST_RETIRED.ANY", "RETIRED_INSTRUCTIONS"];
const L2_MISSES: [&str; 2] =
    ["MEM_LOAD_RETIRED.L2_MISS", "DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LOCAL_CCX"];

#[test]
fn a_program_is_halted_as_often_and_as_long_as_asked_for() {
    for pmu in [Pmu::Intel, Pmu::Amd] {
        let alone = halted(pmu, None, "region=7 rounds 1 60000");
        assert!(alone.transcript.halted.is_none() && region(&alone).pmi.count == 0);
        let halts = Halts { length_cycles: 40_000, period_cycles: 50_000, footprint_bytes: 0 };
        for footprint_bytes in [0, 1 << 20] {
            let halts = Halts { footprint_bytes, ..halts };
            let boot = halted(pmu, Some(halts), "region=7 rounds 1 60000");
            let done = boot.transcript.halted.expect("the kernel reports them");
            assert_eq!((done.halts, done.timer), (halts, HaltTimer::Held));
            let truth = region(&boot);
            assert_eq!(done.count, truth.pmi.count);
            let wanted = count(truth, CYCLES) / halts.period_cycles;
            assert!(wanted > 50 && done.count.abs_diff(wanted) <= 1, "{pmu:?}: {done:?}");
            let mean = done.cycles / done.count;
            // Each line of the footprint takes about 3 cycles, in both pipelines.
            let least = 40_000.max(footprint_bytes / 64 * 29 / 10);
            assert!((least..40 * least).contains(&mean), "{pmu:?}: {done:?}");
            assert!(footprint_bytes > 0 || mean < 41_000, "{pmu:?}: {done:?}");
            assert!(truth.pmi.cycles / truth.pmi.count > mean, "{pmu:?}: {done:?}");
            assert_eq!(count(truth, INSTRUCTIONS), count(region(&alone), INSTRUCTIONS));
            let added = count(truth, L2_MISSES) as f64 / count(region(&alone), L2_MISSES) as f64;
            // A footprint of the size of the second level evicts the program's lines.
            assert_eq!(added > 1.2, footprint_bytes > 0, "{pmu:?}: {added}");
        }
    }
}

#[test]
fn sessions_count_beside_halts() {
    for pmu in [Pmu::Intel, Pmu::Amd] {
        let halts = Halts { length_cycles: 5_000, period_cycles: 30_000, footprint_bytes: 4_096 };
        let events = "events=cycles,instructions,branches,branch-misses,cache-misses,dTLB-loads";
        let program = format!("{events} slice=20000 budget=1000000 rounds 1 60000");
        let boot = halted(pmu, Some(halts), &program);
        assert!(boot.transcript.halted.is_some_and(|done| done.count > 50));
        let report = Report::of(&boot);
        assert_exact_counts_are_true(&report);
        let session = report.first.expect("it has a session");
        assert!(session.pmis > Some(50) && session.events.len() == 6, "{session:?}");
        assert!(report.halts.is_some());
    }
}
