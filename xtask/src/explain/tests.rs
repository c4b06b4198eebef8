//! Tests of printed plans and refusals.

use expect_test::expect;
use tally_abi::{ExitStatus, SessionConfig, Slice};

use super::*;
use crate::machine::{self, Pmu};
use clap::ValueEnum;

fn found(pmu: Pmu, options: &[&str]) -> DetectedPmu {
    let options: Vec<String> = options.iter().map(|option| (*option).into()).collect();
    detect(&machine::virtual_pmu_of(pmu, &options).unwrap()).unwrap()
}

fn asked(events: &str) -> Asked {
    Asked { events: events.into(), config: SessionConfig::default(), paranoid: Some(2) }
}

#[test]
fn the_default_plan_of_every_machine_has_80_columns() {
    for pmu in Pmu::value_variants() {
        let machine = machine::virtual_pmu_of(*pmu, &[]).unwrap();
        let profile = machine.profile();
        let events = events::default_list(profile.signature);
        // The first CPU of a hybrid processor can be of either kind.
        let is_hybrid = profile.kind != 0;
        assert_eq!(events == events::DEFAULT_STAT, is_hybrid, "{}", profile.name);
        let explained = explain(&detect(&machine).unwrap(), &asked(events)).unwrap();
        let text = text(&explained);
        assert!(explained.optimal, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for word in events::words(events) {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn a_plan_is_printed_by_group_and_counter() {
    let events = "INST_RETIRED.ANY,L1D.REPLACEMENT@3,BR_INST_RETIRED.COND,r02c4,\
                  OCR.DEMAND_DATA_RD.L3_HIT";
    let text = text(&explain(&found(Pmu::Intel, &["counters=2"]), &asked(events)).unwrap());
    expect![[r#"
        Intel architectural performance monitoring, version 5
        catalogue                icelakex
        general counters         2
        events                   5 events
        groups                   2 (optimal: no plan has fewer)
        round                    4 slices
        pinned, instructions     INST_RETIRED.ANY
        group 0, 3 slices
          counter 0              OCR.DEMAND_DATA_RD.L3_HIT
          counter 1              L1D.REPLACEMENT
          extra register 0       0x3f803c0001
        group 1
          counter 0              BR_INST_RETIRED.COND
          counter 1              r02c4
    "#]]
    .assert_eq(&text);
}

#[test]
fn metrics_take_no_counter() {
    let events = "L1D.REPLACEMENT,BR_INST_RETIRED.COND,topdown-retiring,topdown-be-bound";
    let explained = explain(&found(Pmu::Intel, &["counters=2"]), &asked(events)).unwrap();
    assert_eq!((explained.groups.len(), explained.pinned.len()), (1, 2));
    let without = found(Pmu::Intel, &["fixed=3"]);
    let refused = explain(&without, &asked(events)).unwrap_err();
    assert!(refused[0].detail.contains("shows none with this unit mask"), "{}", refused[0].detail);
}

#[test]
fn events_between_braces_are_in_one_group() {
    let pmu = found(Pmu::Intel, &["counters=4"]);
    let general = "BR_INST_RETIRED.COND,{cycles,L1D.REPLACEMENT,r02c4,r04c4},\
                   {cycles,instructions},r08c4,{r20c4,r10c4}";
    let text = text(&explain(&pmu, &asked(general)).unwrap());
    let of = text.lines().skip_while(|line| !line.starts_with("group 0"));
    expect![[r#"
        group 0
          counter 0              BR_INST_RETIRED.COND
          counter 1              r04c4
          counter 2              r02c4
          counter 3              L1D.REPLACEMENT
        group 1
          counter 0              r08c4
          counter 1              r10c4
          counter 2              r20c4
        together, in group 0     cycles L1D.REPLACEMENT r02c4 r04c4
        together, in every slice cycles instructions
        together, in group 1     r20c4 r10c4
    "#]]
    .assert_eq(&of.map(|line| format!("{line}\n")).collect::<String>());
    let all = "cycles,{cycles,r01c4,r02c4,r08c4,r10c4,r20c4},r04c4";
    expect![[r#"
        66: {cycles,r01c4,r02c4,r08c4,r10c4,r20c4}: these events need 5 general counters at once, and this machine leaves 4 to events: put fewer events between the braces
        78: '}': no braces are open: add '{' or remove it
    "#]]
    .assert_eq(&refusals(&pmu, &[asked(all), asked("cycles}")]));
}

/// The refused events on `pmu`, a line for each, with its exit status.
fn refusals(pmu: &DetectedPmu, asked: &[Asked]) -> String {
    let of = |asked| planned(pmu, asked).expect_err("it is refused");
    let line = |why: ResolveError| format!("{}: {why}\n", u8::from(why.error.exit_status()));
    asked.iter().flat_map(of).map(line).collect()
}

fn of_cpus(events: &str) -> Asked {
    let config = SessionConfig { scope: Scope::Cpus, ..SessionConfig::default() };
    Asked { config, ..asked(events) }
}

#[test]
fn refusals_are_those_of_a_run() {
    let mut short = asked("cycles");
    short.config.slice = Slice::Cycles(9);
    let text = refusals(
        &found(Pmu::Intel, &[]),
        &[
            asked("cycles,BR_INST_RETIRED.ALL_BRANCHE,cpu/event=0x100/"),
            asked(&vec!["cycles"; tally_abi::session::MAX_EVENTS + 1].join(",")),
            asked("cycles,uncore_imc_0/event=4,umask=3/"),
            asked(" "),
            asked("L1D.REPLACEMENT:k"),
            of_cpus("L1D.REPLACEMENT"),
            of_cpus("L1D.REPLACEMENT:k"),
            short,
        ],
    );
    expect![[r#"
        65: BR_INST_RETIRED.ALL_BRANCHE: the catalogue icelakex has no such event; nearest: BR_INST_RETIRED.ALL_BRANCHES, BR_MISP_RETIRED.ALL_BRANCHES, BR_INST_RETIRED.FAR_BRANCH
        78: cpu/event=0x100/: 'event=0x100': more than 0xff
        66: 1025 events were asked for; a plan holds 1024
        78: uncore_imc_0/event=4,umask=3/: 'uncore_imc_0': the only PMU here is cpu, as in cpu/event=0xd1,umask=0x08/
        78: the list of events is empty; name at least one
        78: counting in ring 0 is not permitted: run with --paranoid 1
        78: counting whole CPUs is not permitted: run with --paranoid 0
        78: whole CPUs are counted in ring 3: leave out --kernel and :k
        67: a slice of 9 is out of range: use 1800 to 1073741824
    "#]].assert_eq(&text);
}

#[test]
fn around_a_program_ring_0_is_permitted() {
    let around = Asked { paranoid: None, ..asked("L1D.REPLACEMENT:k") };
    assert!(planned(&found(Pmu::Intel, &[]), &around).is_ok());
}

#[test]
fn a_pmu_that_is_too_old_is_refused() {
    let too_old = machine::virtual_pmu_of(Pmu::Intel, &["version=1".into()]).unwrap();
    let refused = detect(&too_old).unwrap_err();
    assert_eq!(refused.status, ExitStatus::NoPmu);
    expect!["the PMU is of architectural version 1; Tally needs version 2, with fixed counters"]
        .assert_eq(&refused.message);
}

/// Such events must share a group, so that the records of slices show how their errors are
/// correlated.
#[test]
fn events_that_parts_are_differences_of_are_in_one_group() {
    for pmu in [Pmu::Intel, Pmu::SapphireRapids, Pmu::Amd] {
        let machine = machine::virtual_pmu_of(pmu, &[]).unwrap();
        let signature = machine.profile().signature;
        let stack = tally_breakdown::stack_of(signature).unwrap();
        let short = tally_breakdown::short_stack_of(signature).unwrap();
        let by_default = short.before(events::words(events::default_list(signature)));
        let lists = [(stack, stack.events()), (stack, stack.of_cycles()), (short, by_default)];
        for (stack, events) in lists {
            let (_, plan) = plan_of(&machine, &asked(&events.join(","))).unwrap();
            let group_of = |name: &&str| {
                let index = events.iter().position(|event| event == name).unwrap();
                match plan.assignments[index] {
                    tally_engine::plan::CounterAssignment::General { group, .. } => group,
                    other => panic!("{name}: {other:?}"),
                }
            };
            for together in stack.groups {
                let counted = together.iter().filter(|name| events.contains(name));
                let mut groups: Vec<u16> = counted.map(group_of).collect();
                groups.dedup();
                assert!(groups.len() <= 1, "{pmu:?}: {together:?}");
            }
        }
    }
}
