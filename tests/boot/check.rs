//! Long check of a machine's counters and events, and its report.

use std::time::Duration;

use tally_abi::ExitStatus;
use xtask::{
    check::{self, CheckReport, diff::CheckDiff},
    docs,
    job::Job,
    machine::{Boot, Pmu, Request},
    project::Project,
    run::RunArgs,
};

use crate::{
    SharedBoot, assert_output, assert_success, boot,
    screen::{imported, photographed},
};

/// Kernel command line of `run --check`.
fn line() -> String {
    Job { check: true, ..Job::default() }.command_line("wire")
}

/// Kernel command line of a check of the counters alone.
fn counters_line() -> String {
    line().replace("tally-check", "tally-check counters")
}

/// Command whose output is quoted in pages.
pub(crate) const CHECK: &str = "cargo xtask run --check";

static INTEL: SharedBoot =
    SharedBoot::new(|| RunArgs::of(CHECK).and_then(|args| args.request()).expect("it is a run"));
static AMD: SharedBoot = SharedBoot::new(|| Request { pmu: Pmu::Amd, ..Request::new(line()) });
/// Boot of a check of the counters alone.
static AMD_COUNTERS: SharedBoot =
    SharedBoot::new(|| Request { pmu: Pmu::Amd, ..Request::new(counters_line()) });

/// Report of a check of the counters alone, on a machine with these options.
fn counters(pmu: Pmu, cpus: usize, vpmu: &str) -> CheckReport {
    let vpmu = vec![vpmu.to_owned()];
    let boot = boot(&Request { pmu, cpus, vpmu, ..Request::new(counters_line()) });
    assert_success(&boot);
    CheckReport::of(&boot).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Panics unless the check finds no defect of the modelled machine, this many general and pinned
/// counters, and at least `events` checked events. Returns the report.
fn assert_right(boot: &Boot, general: u8, pinned: u8, events: usize) -> CheckReport {
    assert_success(boot);
    let report = CheckReport::of(boot).unwrap_or_else(|failure| panic!("{failure}"));
    let text = check::render(&report);
    assert!(report.findings == check::Findings::default(), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let machine = &report.machine;
    assert_eq!((machine.general, machine.pinned, machine.cpus), (general, pinned, 1));
    assert_eq!(report.counters.len(), usize::from(general + pinned));
    assert!(report.counters.iter().all(|of| of.skid.len() == 3), "{text}");
    assert!(report.events.len() >= events, "{} events:\n{text}", report.events.len());
    assert!(report.at_boot[0].wrmsr_centicycles.is_some_and(|cost| cost > 100), "{text}");
    assert!(report.costs[0].switch_cycles > report.costs[0].interrupt_cycles, "{text}");
    report
}

/// Panics unless some events were not checked, and none of those is among the checked.
fn assert_some_events_not_checked(report: &CheckReport) {
    let checked = |name: &String| report.events.iter().any(|of| of.event == *name);
    assert!(!report.not_checked.is_empty() && !report.not_checked.iter().any(checked));
}

#[test]
fn machines_as_modelled_are_right_and_nothing_else_is_said_to_be() {
    assert_some_events_not_checked(&assert_right(INTEL.get(), 4, 3, 75));
    assert_right(AMD_COUNTERS.get(), 4, 2, 0);
}

#[test]
#[ignore = "long"]
fn events_of_a_machine_as_modelled_are_right_on_amd() {
    assert_some_events_not_checked(&assert_right(AMD.get(), 4, 2, 35));
}

#[test]
fn samples_of_the_check_on_pages_are_current() {
    let output = check::render(&CheckReport::of(INTEL.get()).unwrap());
    let stale = docs::stale_lines(&Project::here(), CHECK, &output).unwrap();
    assert!(stale.is_empty(), "run `cargo xtask docs --samples`; stale:\n{}", stale.join("\n"));
}

#[test]
fn reports_of_the_same_machine_do_not_differ_and_those_of_two_vendors_do() {
    let [intel, amd] = [&INTEL, &AMD_COUNTERS].map(|boot| CheckReport::of(boot.get()).unwrap());
    assert_eq!(CheckDiff::of(&intel, &intel), CheckDiff::default());
    let diff = CheckDiff::of(&intel, &amd);
    assert!(diff.machines.iter().any(|it| it.what == "catalogue"), "{diff:?}");
    assert!(diff.differences.iter().any(|it| it.what == "CPU 0, counter general-0"), "{diff:?}");
}

#[test]
fn a_counter_that_stands_still_is_named_and_the_others_are_right() {
    let report = counters(Pmu::Intel, 1, "held=2");
    let wrong = &report.findings.wrong;
    let names = |what: &str| wrong.iter().any(|wrong| wrong.contains(what));
    assert!(names("general counter 2 counted 0 of") && names("counter general-2: alone it"));
    assert_eq!(wrong.len(), 2, "{wrong:?}");

    let report = counters(Pmu::Amd, 1, "held=0");
    let wrong = &report.findings.wrong;
    assert!(wrong.iter().any(|wrong| wrong.contains("counter cycles: alone it")), "{wrong:?}");
    assert!(!wrong.iter().any(|wrong| wrong.contains("general-")), "{wrong:?}");
}

/// Models a stepping that lacks an event.
#[test]
#[ignore = "long"]
fn an_event_that_counts_nothing_is_named_and_no_other() {
    let vpmu = vec!["missing=MEM_LOAD_RETIRED.L2_MISS".to_owned()];
    let boot = boot(&Request { vpmu, ..Request::new(line()) });
    assert_success(&boot);
    let report = CheckReport::of(&boot).unwrap_or_else(|failure| panic!("{failure}"));
    let wrong = &report.findings.wrong;
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    let begins = "MEM_LOAD_RETIRED.L2_MISS: general-0 of CPU 0 counted 0 of the loop `far loads`";
    assert!(wrong[0].starts_with(begins) && wrong[0].contains("general-3"), "{wrong:?}");
}

#[test]
fn lost_interrupts_are_wrong_on_every_counter() {
    let report = counters(Pmu::Amd, 1, "lost=3");
    let wrong = report.findings.wrong.join("\n");
    for counter in ["general-2", "general-5", "instructions", "cycles"] {
        assert!(wrong.contains(&format!("counter {counter}: 1")), "{counter}: {wrong}");
    }
    assert!(wrong.contains("of 16 overflow interrupts came"), "{wrong}");
}

/// Tally copes with late interrupts and with interrupts that count as instructions.
#[test]
fn late_interrupts_and_those_that_count_as_instructions_are_told() {
    let late = counters(Pmu::Intel, 1, "late=20000");
    let skid = late.counters.iter().filter_map(|of| of.skid.last()).max();
    assert!(skid.is_some_and(|skid| (10_000..=20_100).contains(skid)), "{skid:?}");
    assert!(late.findings.notes.iter().any(|note| note.contains("events after its overflow")));
    assert!(late.findings.wrong.is_empty(), "{:?}", late.findings.wrong);

    let over = counters(Pmu::Intel, 1, "overcount=yes");
    let (overcount, interrupts) = (over.costs[0].overcount, over.costs[0].interrupts);
    assert!(overcount * 10 > interrupts * 9 && overcount <= interrupts, "{overcount}");
    assert_eq!(over.at_boot[0].overcount, 1);
    assert!(over.findings.wrong.is_empty(), "{:?}", over.findings.wrong);
}

#[test]
fn a_cpu_with_other_counters_is_named_and_those_alike_are_checked() {
    let report = counters(Pmu::Intel, 3, "unlike=1");
    let wrong = "the CPU with APIC ID 1 is offline: it has another PMU than the first CPU";
    assert_eq!(report.findings.wrong, [wrong]);
    let cpus = report.costs.iter().map(|of| of.cpu);
    assert_eq!(cpus.collect::<Vec<_>>(), [0, 1]);
    assert_eq!(report.counters.len(), 2 * 7);
}

#[test]
fn without_a_pmu_the_check_says_why() {
    let boot = boot(&Request { virtual_pmu: false, ..Request::new(line()) });
    assert_eq!(boot.outcome.status(), u8::from(ExitStatus::NoPmu));
    assert_output(&boot, "tally-check: the hypervisor shows no PMU");
    assert!(!check::is_check(&boot));
}

#[test]
#[ignore = "long"]
fn photographs_give_the_report() {
    // A new line on the screen scrolls all others, and the virtual PMU models each access.
    let time_limit = Duration::from_secs(400);
    let request = Request { serial_ports: false, time_limit, ..Request::new("") };
    let line = counters_line().replacen("wire", "codes=100 log=error", 1);
    let line = format!("name=opt/tally/cmdline,string={}", line.replace(',', ",,"));
    let request = Request { qemu_args: vec!["-fw_cfg".into(), line], ..request };
    let (_, shown) = photographed("check", request);
    let boot = imported(&shown.messages);
    assert!(check::is_check(&boot), "{}", boot.outcome);
    let report = CheckReport::of(&boot).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.findings.wrong.is_empty(), "{}", check::render(&report));
    assert_eq!(report.counters.len(), 7, "{}", check::render(&report));
}
