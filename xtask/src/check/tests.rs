//! Tests with made-up reports: their findings, their text, and refused files.

use std::{fs, path::PathBuf};

use expect_test::expect;
use tally_abi::{
    ExitStatus,
    check::{Cost, Counter, Event, Span, VERSION},
};

use super::{
    CheckReport, Machine,
    diff::{self, CheckDiff},
    findings, render,
};
use crate::machine::{CheckedCpu, OfflineCpu};

fn counter(cpu: u32, name: &str) -> Counter {
    Counter {
        cpu,
        counter: name.into(),
        least: 20_000,
        most: 20_100,
        alone: 20_008,
        together: 20_008,
        session: Some(20_000),
        stopped: Some(0),
        width_bits: Some(48),
        raised: 16,
        arrived: 16,
        interrupts: 16,
        skid: vec![2, 3, 150],
    }
}

fn event(name: &str, on: &[(u8, u32, u64)]) -> Event {
    let on = on.iter().map(|(counter, cpu, count)| Span::of(*counter, *cpu, *count)).collect();
    Event { event: name.into(), work: "far loads".into(), least: 5_000, most: 11_200, on }
}

/// A machine of one CPU with two counters, where everything is right.
fn right() -> CheckReport {
    let mut report = CheckReport {
        tally_check: VERSION,
        machine: Machine {
            vendor: "GenuineIntel".into(),
            family: 6,
            model: 106,
            stepping: 6,
            hypervisor: false,
            cpus: 1,
            tsc_hz: 2_000_000_000,
            pmu: "Intel architectural performance monitoring, version 5".into(),
            catalogue: "icelakex".into(),
            general: 1,
            pinned: 1,
            width_bits: 48,
        },
        at_boot: vec![CheckedCpu {
            cpu: 0,
            failure: None,
            overcount: 0,
            rdmsr_centicycles: Some(20_990),
            wrmsr_centicycles: None,
        }],
        counters: vec![counter(0, "general-0"), counter(0, "instructions")],
        costs: vec![Cost { switch_cycles: Some(1_975), interrupts: 105, ..Cost::default() }],
        events: vec![
            event("LOADS", &[(0, 0, 8_000)]),
            event("MEM_INST_RETIRED.STLB_MISS_STORES", &[(0, 0, 8_873)]),
        ],
        not_checked: vec!["LD_BLOCKS.STORE_FORWARD".into(), "LD_BLOCKS.NO_SR".into()],
        ..CheckReport::default()
    };
    report.findings = findings(&report);
    report
}

fn wrong_of(change: impl FnOnce(&mut CheckReport)) -> Vec<String> {
    let mut report = right();
    change(&mut report);
    findings(&report).wrong
}

#[test]
fn the_text_has_every_part() {
    let mut report = right();
    report.counters[1].arrived = 12;
    report.findings = findings(&report);
    let text = render(&report);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    expect![[r#"
        processor  GenuineIntel, family 6, model 106, stepping 6, without a hypervisor
        PMU        Intel architectural performance monitoring, version 5
        events     icelakex
        counters   1 general of 48 bits, 1 pinned
        CPUs       1, time-stamp counter 2,000,000,000 Hz

        counter      CPU     alone  together   session stopped arrived bits  skid
        general-0      0    20,008    20,008    20,000       0   16/16   48  2 3 150
        instructions   0    20,008    20,008    20,000       0   12/16   48  2 3 150 *

        cost in cycles CPU     RDMSR     WRMSR     RDPMC  interrupt    switch overcount
                         0     209.9         -         -          -     1,975     0.000

        event                             at least                 counted     at most
        LOADS                                5,000                   8,000      11,200
        MEM_INST_RETIRED.STLB_MISS_STORES
                                             5,000                   8,873      11,200

        not checked, as no loop raises them for certain: 2
          LD_BLOCKS.STORE_FORWARD LD_BLOCKS.NO_SR

        wrong: CPU 0, counter instructions: 12 of 16 overflow interrupts came
        1 wrong
    "#]]
    .assert_eq(&text);
}

#[test]
fn what_is_wrong_with_a_counter_is_named() {
    assert_eq!(wrong_of(|_| {}), [""; 0]);
    let counter = |change: fn(&mut Counter)| wrong_of(|report| change(&mut report.counters[0]));
    for (found, what) in [
        (counter(|of| of.alone = 0), "alone it counted 0, where 20000 to 20100 happened"),
        (counter(|of| of.together = 20_101), "with all others it counted 20101, where"),
        (counter(|of| of.session = Some(19_999)), "in a session it counted 19999, where"),
        (counter(|of| of.session = None), "no session can count with it"),
        (counter(|of| of.stopped = Some(7)), "it counted 7 after it was stopped"),
        (counter(|of| of.arrived = 15), "15 of 16 overflow interrupts came"),
        (counter(|of| of.interrupts = 19), "16 overflows raised 19 interrupts"),
        (counter(|of| of.width_bits = Some(40)), "it has 40 bits, where CPUID says 48"),
    ] {
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        assert!(found[0].starts_with(&format!("CPU 0, counter general-0: {what}")), "{found:?}");
    }
    let found = wrong_of(|report| report.counters.truncate(1));
    assert_eq!(found, ["CPU 0: 1 counters can be had of 2"]);
}

#[test]
fn what_is_wrong_with_an_event_or_a_cpu_is_named() {
    let counted = |on: &'static [(u8, u32, u64)]| {
        wrong_of(move |report| report.events[0] = event("LOADS", on))
    };
    let found = counted(&[(0, 0, 0), (1, 0, 8_000)]);
    let why =
        "LOADS: general-0 of CPU 0 counted 0 of the loop `far loads`, which raises 5000 to 11200";
    assert_eq!(found, [why]);
    assert!(counted(&[(0, 0, 11_201)])[0].contains("counted 11201"));
    assert_eq!(counted(&[]), ["LOADS: no counter counted it"]);
    // A counter that counts nothing is named once.
    let found = wrong_of(|report| {
        report.counters[0].alone = 0;
        report.events[0] = event("LOADS", &[(0, 0, 0)]);
    });
    assert_eq!(found.len(), 1, "{found:?}");
    let found = wrong_of(|report| {
        report.offline = vec![OfflineCpu { apic_id: 7, why: "it did not start".into() }];
        report.at_boot[0].failure = Some("a counter stands still".into());
        report.costs[0].lost = 3;
    });
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[0], "the CPU with APIC ID 7 is offline: it did not start");
}

#[test]
fn ways_that_tally_handles_are_notes() {
    let mut report = right();
    report.at_boot[0].overcount = 1;
    report.costs[0].overcount = 104;
    report.counters[0].skid = vec![1, 2, 6_000];
    let mut span = Span::of(0, 0, 5_000);
    span.add(1, 11_000);
    report.events[0].on = vec![span];
    let found = findings(&report);
    assert!(found.wrong.is_empty(), "{:?}", found.wrong);
    let notes = found.notes.join("\n");
    for note in [
        "an interrupt in ring 3 counts as up to 1 instructions",
        "104 instructions were counted beyond those of a loop",
        "an interrupt came 6000 events after its overflow",
        "general-0 counted 5000 on CPU 0 and 11000 on CPU 1",
    ] {
        assert!(notes.contains(note), "{notes}");
    }
}

#[test]
fn reports_differ_where_one_is_right_and_the_other_is_not() {
    let (a, mut b) = (right(), right());
    // The second report is right, too.
    b.counters[0].alone += 50;
    b.events[0].on[0].add(0, 5_001);
    assert_eq!(CheckDiff::of(&a, &b), CheckDiff::default());
    b.machine.stepping = 7;
    b.counters[0].stopped = Some(9);
    b.events[1].on[0] = Span::of(0, 0, 3);
    b.not_checked.push("NEW".into());
    b.costs[0].switch_cycles = Some(4_000);
    let text = diff::render(&CheckDiff::of(&a, &b));
    expect![[r#"
        processor
          A: GenuineIntel, family 6, model 106, stepping 6
          B: GenuineIntel, family 6, model 106, stepping 7
        CPU 0, counter general-0
          A: right
          B: it counted 9 after it was stopped
        MEM_INST_RETIRED.STLB_MISS_STORES on general-0
          A: right
          B: general-0 of CPU 0 counted 3 of the loop `far loads`, which raises 5000 to 11200
        NEW
          A: not there
          B: not checked
        CPU 0, cycles of a switch
          A: 1975
          B: 4000
        4 differ beyond the bounds
    "#]]
    .assert_eq(&text);
}

/// A reference may have fewer CPUs than the machine.
#[test]
fn cpus_that_only_one_report_has_are_compared_with_the_first_of_the_other() {
    let (a, mut b) = (right(), right());
    b.machine.cpus = 2;
    b.costs.push(Cost { cpu: 1, ..b.costs[0].clone() });
    b.counters.extend([counter(1, "general-0"), counter(1, "instructions")]);
    assert_eq!(CheckDiff::of(&a, &b).differences, []);
    b.counters[3].arrived = 0;
    for diff in [CheckDiff::of(&a, &b), CheckDiff::of(&b, &a)] {
        let what: Vec<&str> = diff.differences.iter().map(|it| it.what.as_str()).collect();
        assert_eq!(what, ["CPU 1, counter instructions"]);
    }
}

fn read(name: &str, text: &str) -> (ExitStatus, String) {
    let path: PathBuf = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
    fs::write(&path, text).unwrap();
    let failure = CheckReport::read(&path).unwrap_err();
    fs::remove_file(path).unwrap();
    (failure.status, failure.message)
}

#[test]
fn files_that_are_no_reports_and_other_versions_are_refused() {
    let path = std::env::temp_dir().join(format!("xtask-report-{}", std::process::id()));
    fs::write(&path, serde_json::to_vec(&right()).unwrap()).unwrap();
    assert_eq!(CheckReport::read(&path), Ok(right()));
    fs::remove_file(&path).unwrap();
    assert_eq!(CheckReport::read(&path).unwrap_err().status, ExitStatus::HostError);

    for text in ["", "no JSON", "{}", "[1]", r#"{"tally_check":1}"#] {
        let (status, why) = read("none", text);
        assert_eq!(status, ExitStatus::NoReport, "{text}: {why}");
        assert!(why.contains("not the report of a check"), "{why}");
    }
    let (status, why) = read("other", r#"{"tally_check":2,"new":[]}"#);
    assert_eq!(status, ExitStatus::OtherReport);
    assert!(why.contains("a report of version 2, but this tool reads version 1"), "{why}");
}
