//! On-line phases of a program with phases known by construction, compared with the truth's series.

use std::time::Duration;

use tally_abi::phase::Bottleneck;
use xtask::{
    machine, phases,
    report::{PhaseReport, Report, Series, stack_of},
    run::RunArgs,
};

use crate::{assert_success, boot};

/// Time limit of a machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Boots `run --phases` with these options on the machine, with a series. Returns the phases of the
/// first session and the series.
fn tracked(
    machine: &str,
    pmu: machine::Pmu,
    options: &str,
    program: &str,
) -> (PhaseReport, Series) {
    let path =
        std::env::temp_dir().join(format!("tally-phases-{}-{machine}.csv", std::process::id()));
    let series = format!("series={},every=20000i", path.display());
    let command = format!("cargo xtask run --pmu {machine} --vpmu {series} {options} -- {program}");
    let args = RunArgs::of(&command).unwrap();
    let request = machine::Request { time_limit: LIMIT, ..args.request().unwrap() };
    let boot = boot(&request);
    assert_success(&boot);
    let report = Report::with(&boot, args.plan().unwrap().as_ref(), &args.additions());
    let instructions = stack_of(pmu.signature()).expect("this processor has a stack").instructions;
    let series = Series::read(&path, 1, instructions);
    for suffix in ["", "-metadata.json"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    let phases = report.first.and_then(|first| first.phases).expect("phases are tracked");
    (phases, series.unwrap())
}

#[test]
fn phases_are_those_of_the_truth() {
    for (machine, pmu) in [("intel", machine::Pmu::Intel), ("amd", machine::Pmu::Amd)] {
        let options = "--phases=1000000 --slice 20000 --budget 50";
        let program = "bottleneck 6 chase 300000 branch 300000 divide 150000";
        let (found, series) = tracked(machine, pmu, options, program);
        let pmu = machine::virtual_pmu_of(pmu, &[]).unwrap();
        let events = phases::events(&pmu).unwrap();
        let (model, events) =
            phases::costs(&pmu).unwrap().model_of(|event| events.contains(&event));
        let truth = series.counted(&found.intervals, &events).expect("the series has all events");
        let judged = found.judge(&model, &truth);
        let what = format!("{machine}: {judged:?}, {:?}, {:?}", found.phases, found.predictors);
        println!("{what}");
        assert_eq!(judged.replayed_otherwise, 0, "{what}");
        assert!(judged.intervals > 30 && judged.sure * 2 > judged.intervals, "{what}");
        assert!(judged.same * 100 >= judged.sure * 95, "{what}");
        assert!(judged.held * 100 >= judged.bars * 85, "{what}");
        assert!(judged.bottleneck * 100 >= judged.intervals * 90, "{what}");
        // Each of the three kinds of work is a phase.
        for kind in [
            Bottleneck::Dl2Miss,
            Bottleneck::DirectMisprediction,
            Bottleneck::ExpensiveInstructions,
        ] {
            let of = found.phases.iter().filter(|phase| phase.bottleneck == kind);
            assert!(of.map(|phase| phase.intervals).sum::<u64>() > 3, "{kind:?}, {what}");
        }
        assert!(found.missing.contains(&Bottleneck::ResourceContention), "{what}");
    }
}
