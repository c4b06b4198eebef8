//! Unobserved values: estimates of the counts without interrupts.

use tally_abi::truth::{Region, RegionKind};
use xtask::{
    machine::{Boot, Pmu},
    report::Report,
    run::RunArgs,
};

use crate::{assert_success, boot};

/// Run of `rounds` with these options.
fn run(options: &str) -> (RunArgs, Boot) {
    let command = format!("cargo xtask run --budget 100 {options} -- rounds 2 60000");
    let args = RunArgs::of(&command).unwrap();
    let boot = boot(&args.request().unwrap());
    assert_success(&boot);
    (args, boot)
}

fn session(boot: &Boot) -> &Region {
    let regions = &boot.truth.as_ref().expect("there is the virtual PMU").regions;
    regions.iter().find(|region| region.kind == RegionKind::Session).expect("it has a session")
}

/// Runs the default events with interrupts for each seed on a machine. Returns for each unobserved
/// value whether its interval contains the truth of a run without interrupts.
fn judged(machine: &str, pmu: Pmu, seeds: std::ops::RangeInclusive<u32>) -> Vec<bool> {
    let list: Vec<&str> =
        tally_abi::events::words(tally_abi::events::default_list(pmu.signature())).collect();
    let options = format!("--pmu {machine} --slice 20000 --events {}", list.join(","));
    let (_, alone) = run(&format!("--pmu {machine} --slice 1073741824 --events instructions"));
    let alone = session(&alone);
    assert_eq!(alone.pmi.count, 0);
    let truth = |name: &str| alone.events[name].user;
    let of_seed = |seed| {
        let (args, with) = run(&format!("{options} --unobserved --seed {seed}"));
        assert!(session(&with).pmi.count > 200);
        let mut report = Report::of(&with);
        report.add_unobserved(&with, &args.plan().unwrap().expect("it is asked for"));
        let events = report.first.expect("it has a session").events;
        let values = events.iter().filter_map(|event| Some((event, event.unobserved?)));
        let values: Vec<bool> =
            values.map(|(event, value)| value.contains(truth(&event.name))).collect();
        assert!(values.len() >= 20, "{machine}, seed {seed}: {events:?}");
        // The value of instructions is the truth itself.
        assert_eq!(events[0].unobserved.map(|value| value.half_width_95), Some(0.0));
        assert!(values[0], "{machine}, seed {seed}: {events:?}");
        values
    };
    seeds.flat_map(of_seed).collect()
}

#[test]
fn the_unobserved_value_of_instructions_is_that_of_a_run_without_interrupts() {
    judged("intel", Pmu::Intel, 1..=1);
}

/// Values of one run share its rounds, so several runs are judged together.
#[test]
#[ignore = "long"]
fn their_intervals_contain_the_truth_of_a_run_without_interrupts() {
    let machines = [("intel", Pmu::Intel), ("amd", Pmu::Amd)];
    let of_machine = |(machine, pmu)| judged(machine, pmu, 1..=3);
    let judged: Vec<bool> = machines.into_iter().flat_map(of_machine).collect();
    let within = judged.iter().filter(|is_within| **is_within).count();
    println!("{within} of {} within", judged.len());
    assert!(within * 100 >= judged.len() * 85, "{within} of {}", judged.len());
}
