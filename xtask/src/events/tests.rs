//! Tests of the list of events.

use expect_test::expect;

use super::*;
use tally_abi::SessionConfig;

use crate::machine::ProfileName;

fn args(pattern: &str, pmu: Pmu) -> EventsArgs {
    let pattern = pattern.split_whitespace().map(str::to_owned).collect();
    EventsArgs { pattern, pmu, processor: ProcessorArgs::default(), json: false, list: false }
}

fn all(pmu: Pmu) -> Vec<Listed> {
    listed(pmu, &[]).unwrap().1
}

#[test]
fn every_event_that_the_virtual_pmu_counts_is_listed_with_its_definition() {
    let with_version_6 = [Pmu::LunarLake, Pmu::PantherLake];
    let others = [Pmu::Intel, Pmu::SapphireRapids, Pmu::Zen3, Pmu::Amd];
    for pmu in with_version_6.into_iter().chain(others) {
        let all = all(pmu);
        for event in pmu.profile().events().filter(|event| !event.is_unlisted) {
            let found = all.iter().find(|other| other.name == event.name);
            let definition = found.and_then(|found| found.definition);
            assert_eq!(definition, Some(event.about), "{}: {}", pmu.profile().name, event.name);
        }
        assert!(all.iter().all(|event| lines(event).lines().all(|line| line.len() <= COLUMNS)));
    }
    assert_eq!(ProfileName::ALL.len(), 6, "there is a machine for each");
}

#[test]
fn all_words_of_the_pattern_are_looked_for_in_names_and_definitions() {
    let text = |pattern, pmu| {
        let args = super::tests::args(pattern, pmu);
        let found = all(pmu).into_iter().filter(|event| args.wants(event));
        found.map(|event| lines(&event)).collect::<String>()
    };
    let both = text("rfo Missed", Pmu::Intel);
    assert!(both.contains("L2_RQSTS.RFO_MISS\n") && !both.contains("ALL_RFO"), "{both}");
    expect![[r#"
        branch-misses
              BR_MISP_RETIRED.ALL_BRANCHES. Branches retired that were mispredicted.
    "#]]
    .assert_eq(&text("branch-misses", Pmu::Intel));
    expect![[r#"
        PAPI_L1_DCA
              Several of the vendor's events together, by their unit masks.
        PAPI_L1_DCM
              Several of the vendor's events together, by their unit masks.
    "#]]
    .assert_eq(&text("papi_l1", Pmu::Amd));
    expect![[r#"
        PAPI_MEM_WCY
              RESOURCE_STALLS.SB. Cycles for which a full store queue kept an
              instruction from issuing. With --vpmu pipeline=ooo.
        RESOURCE_STALLS.SB
              Cycles for which a full store queue kept an instruction from issuing. With
              --vpmu pipeline=ooo.
        RESOURCE_STALLS.SCOREBOARD
              Cycles in which a serialising operation kept others from issuing.
    "#]]
    .assert_eq(&text("RESOURCE_STALLS", Pmu::Intel));
}

#[test]
fn events_of_no_vendor_are_marked() {
    let all = all(Pmu::Zen3);
    let tallys = all.iter().filter(|event| event.is_tallys).collect::<Vec<_>>();
    assert!(tallys.iter().all(|event| event.name.starts_with("tally.")));
    let named = |name| *tallys.iter().find(|event| event.name == name).unwrap();
    expect![[r#"
        tally.fmt.branch
              Cycles for mispredicted branches, by the frontend miss event table. Not
              the vendor's: the virtual PMU's own. With --vpmu pipeline=ooo,stacks=yes.
    "#]]
    .assert_eq(&lines(named("tally.fmt.branch")));
    let [stall, resumed] = ["tally.stall.l1i", "tally.resume.l1i"].map(named);
    assert_eq!([stall.needs, resumed.needs], [None, Some("pipeline=ooo")]);
}

#[test]
fn lists_have_every_event_of_the_vendors_that_counts_without_options() {
    for pmu in [Pmu::Intel, Pmu::SapphireRapids, Pmu::Zen3, Pmu::Amd] {
        let list = names(&all(pmu)).unwrap();
        let virtual_pmu = machine::virtual_pmu_of(pmu, &[]).unwrap();
        let asked = explain::Asked {
            events: list.clone(),
            config: SessionConfig::default(),
            paranoid: None,
        };
        let (resolved, _) = explain::plan_of(&virtual_pmu, &asked).unwrap();
        assert!(resolved.len() > 40, "{list}");
        for event in resolved {
            let is_modelled = explain::is_modelled(&virtual_pmu, &event);
            assert!(is_modelled, "{}", event.name);
        }
    }
    let ooo: Vec<Listed> =
        all(Pmu::Amd).into_iter().filter(|event| event.needs.is_some()).collect();
    assert_eq!(names(&ooo).unwrap_err().status, ExitStatus::UnknownEvent);
}

#[test]
fn an_event_is_modelled_in_the_list_exactly_if_a_run_counts_it() {
    for pmu in [Pmu::Intel, Pmu::SapphireRapids, Pmu::Zen3, Pmu::Amd] {
        let (_, all) = listed(pmu, &[]).unwrap();
        let plain = machine::virtual_pmu_of(pmu, &[]).unwrap();
        let found = explain::detect(&plain).unwrap();
        for event in all.iter().filter(|event| event.needs.is_none() && !event.is_tallys) {
            let counts = event.refused.is_some() || explain::models(&plain, &found, &event.name);
            let says = event.refused.is_some() || event.definition.is_some();
            assert_eq!(says, counts, "{pmu:?}: {}", event.name);
        }
    }
}

#[test]
fn nothing_found_names_what_is_near() {
    let failure =
        main(&Project::here(), &args("br_inst_retired.al_branches", Pmu::Intel)).unwrap_err();
    assert_eq!(failure.status, ExitStatus::UnknownEvent);
    assert!(failure.message.contains("BR_INST_RETIRED.ALL_BRANCHES"), "{failure:?}");
}

#[test]
fn a_pattern_without_a_match_has_no_advice_to_use_this_command() {
    let of = |pattern| no_match(&listed(Pmu::Intel, &[]).unwrap().0, pattern).message;
    assert_eq!(of("zzzz"), "no event of icelakex has 'zzzz' in its name or definition");
    let near = of("cyclos");
    assert!(near.contains("; as a name: ") && near.contains("nearest: cycles"), "{near}");
}
