//! CPI stacks: events that no vendor has are counted like others, and shadow cores change nothing.

use tally_abi::{
    ExitStatus,
    truth::{RegionKind, Truth},
};
use xtask::{
    machine::{Boot, Pmu, Request},
    report::{Kind, Report},
    run::RunArgs,
};

use crate::{assert_success, boot};

/// Program that marks a region of the truth with tag 3.
const PROGRAM: &str = "seed=1 wire -- region=3 rounds 1 2000";

fn with(pmu: Pmu, vpmu: &[&str]) -> Boot {
    let vpmu = vpmu.iter().map(|option| (*option).to_owned()).collect();
    let boot = boot(&Request { pmu, vpmu, ..Request::new(PROGRAM) });
    assert_success(&boot);
    boot
}

fn events(command: &str) -> Boot {
    boot(&RunArgs::of(command).and_then(|args| args.request()).expect("it is a run"))
}

#[test]
fn events_of_no_vendor_are_counted_as_others_are() {
    for (pmu, vpmu, list) in [
        ("zen3", "pipeline=interval", "tally.stall.l1i,tally.stall.mispredict"),
        (
            "intel",
            "pipeline=ooo",
            "tally.stall.l1_hit,tally.resume.integer,tally.resume.mispredict",
        ),
        ("amd", "pipeline=ooo,stacks=yes", "tally.fmt.branch,tally.sfmt.l2i,tally.power5.branch"),
    ] {
        let command =
            format!("cargo xtask run --pmu {pmu} --vpmu {vpmu} --events {list} -- rounds 1 2000");
        let boot = events(&command);
        assert_success(&boot);
        let session = Report::of(&boot).first.unwrap_or_else(|| panic!("{command}: no session"));
        for name in list.split(',') {
            let event = session.events.iter().find(|event| event.name == name).unwrap();
            assert_eq!((event.kind, event.estimate), (Kind::Exact, event.truth), "{event:?}");
            assert!(event.truth > Some(0), "{event:?}");
        }
    }
}

#[test]
fn an_event_that_the_options_leave_out_is_refused() {
    for list in ["tally.fmt.branch", "tally.resume.memory"] {
        let boot = events(&format!("cargo xtask run --events {list} -- rounds 1 1"));
        assert_eq!(boot.outcome.status(), u8::from(ExitStatus::EventNotSupported), "{list}");
    }
}

/// Truth without the truth of the shadows.
fn own(boot: &Boot) -> Truth {
    Truth { shadows: Vec::new(), ..boot.truth.clone().expect("there is the virtual PMU") }
}

#[test]
fn shadow_cores_change_nothing_of_the_machine_s_own() {
    let ooo = "pipeline=ooo";
    for pmu in [Pmu::Intel, Pmu::Amd] {
        let alone = with(pmu, &[ooo, "stacks=yes"]);
        let beside = with(pmu, &[ooo, "stacks=yes", "shadows=none/l1i+l1d/branch"]);
        assert_eq!(own(&alone), own(&beside));
        let truth = beside.truth.as_ref().unwrap();
        let regions: Vec<_> = truth
            .shadows
            .iter()
            .map(|shadow| (&*shadow.perfect, shadow.region(RegionKind::Marked, 3).unwrap()))
            .collect();
        assert_eq!(
            regions.iter().map(|it| it.0).collect::<Vec<_>>(),
            ["none", "l1i+l1d", "branch"]
        );
        let real = truth.region(RegionKind::Marked, 3).unwrap();
        // A shadow without perfect structures equals the real core.
        assert_eq!(regions[0].1.events, real.events);
        let slots = |region: &tally_abi::truth::Region| region.events["tally.stall.memory"].user;
        assert!(slots(regions[1].1) < slots(real));
        assert_eq!(regions[2].1.events["tally.stall.mispredict"].user, {
            // Returns and indirect branches are still mispredicted.
            let only = with(pmu, &[ooo, "stacks=yes", "perfect=branch"]);
            own(&only).region(RegionKind::Marked, 3).unwrap().events["tally.stall.mispredict"].user
        });
    }
}
