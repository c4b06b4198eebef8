//! Several runs of one program, merged into one table.

use std::sync::OnceLock;

use xtask::{
    machine,
    repeat::{self, Merged, Repeated},
    report::{EventReport, Kind, Report},
    run::RunArgs,
};

use crate::{artefacts, machine_permit};

const RUN: &str = "cargo xtask run --repeat 3 --seed 7 --slice 20000 --events \
    INST_RETIRED.ANY,BR_INST_RETIRED.COND,BR_INST_RETIRED.COND_TAKEN,BR_MISP_RETIRED.COND,\
    MEM_INST_RETIRED.ALL_LOADS,MEM_INST_RETIRED.ALL_STORES,L1D.REPLACEMENT,UOPS_RETIRED.SLOTS,\
    BR_INST_RETIRED.NEAR_CALL -- rounds 1 60000";

fn args() -> RunArgs {
    RunArgs::of(RUN).expect("it is a run")
}

/// Results of the runs, remembered even if one fails.
fn merged() -> &'static Merged {
    static MERGED: OnceLock<Option<Merged>> = OnceLock::new();
    let run = || {
        let requests = args().requests().expect("the options are valid");
        let _permit = machine_permit();
        match repeat::repeat(&artefacts(), &requests) {
            Ok(Repeated::Merged(merged)) => merged,
            Ok(Repeated::Failed(boot, _)) => panic!("{}", boot.outcome),
            Err(failure) => panic!("{failure}"),
        }
    };
    let run = || std::panic::catch_unwind(run).ok();
    MERGED.get_or_init(run).as_ref().expect("the runs end well")
}

/// The runs are independent: the half width of their mean is √Σh² / 3.
#[test]
fn three_runs_know_more_than_one() {
    let merged = merged();
    assert_eq!((merged.runs, merged.first_seed, merged.status), (3, Some(7), 0));
    let requests = args().requests().expect("the options are valid");
    let single = |request| {
        let _permit = machine_permit();
        let boot = machine::boot(&artefacts(), request, &mut |_| {}).expect("it boots");
        Report::of(&boot).first.expect("it has a session").events
    };
    let singles: Vec<_> = requests.iter().map(single).collect();
    let events = &merged.sessions[0].events;
    assert_eq!((merged.sessions.len(), events.len()), (1, singles[0].len()));
    for (index, event) in events.iter().enumerate() {
        let of_one = |single: &Vec<EventReport>| single[index].half_width_95.unwrap();
        let squares: f64 = singles.iter().map(|single| of_one(single).powi(2)).sum();
        let (expected, three) = (squares.sqrt() / 3.0, event.half_width_95.unwrap());
        assert!((three - expected).abs() <= 1e-9 * expected, "{}: {three}, {expected}", event.name);
    }
}

#[test]
fn exact_counts_of_all_runs_are_their_true_mean() {
    let exact = merged().sessions[0].events.iter().filter(|event| event.kind == Kind::Exact);
    let errors: Vec<_> = exact.map(|event| event.relative_error()).collect();
    assert!(!errors.is_empty() && errors.iter().all(|error| *error == Some(0.0)), "{errors:?}");
}
