//! Programs read their logical counters, stop them, arm them, sample by them, and measure each other.

use tally_abi::truth::RegionKind;
use xtask::{
    machine::{Boot, Outcome, Pmu, Request},
    report::{Kind, Report},
};

use crate::{assert_success, boot, run};

/// Of either vendor: instructions, cycles, conditional branches, loads, and a list that takes turns.
const THRESHOLDS: [(Pmu, &str, &str); 3] = [
    (
        Pmu::Intel,
        "INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD,BR_INST_RETIRED.COND,MEM_INST_RETIRED.ALL_LOADS",
        "BR_INST_RETIRED.ALL_BRANCHES,MEM_INST_RETIRED.ALL_STORES,BR_INST_RETIRED.COND_TAKEN,\
         MEM_LOAD_RETIRED.L1_HIT,MEM_INST_RETIRED.ANY",
    ),
    (
        Pmu::Amd,
        "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT,RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS,\
         LS_DISPATCH.LD_DISPATCH",
        "RETIRED_BRANCH_INSTRUCTIONS,LS_DISPATCH.STORE_DISPATCH,RETIRED_TAKEN_BRANCH_INSTRUCTIONS,\
         RETIRED_OPS",
    ),
    // It has no register that says what has overflowed.
    (
        Pmu::Zen3,
        "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT,RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS,\
         LS_DISPATCH:LD_DISPATCH",
        "RETIRED_BRANCH_INSTRUCTIONS,LS_DISPATCH:STORE_DISPATCH,RETIRED_TAKEN_BRANCH_INSTRUCTIONS",
    ),
];

/// Panics unless one program crashed, and nothing else went wrong.
fn assert_one_fault(boot: &Boot) {
    let [Outcome::Faulted { .. }] = boot.transcript.troubles[..] else {
        panic!("{:#?}", boot.transcript.troubles)
    };
    assert!(
        boot.transcript.panicked.is_none() && boot.transcript.done.is_some(),
        "{}",
        boot.outcome
    );
}

#[test]
fn logical_counters_are_read_without_system_calls() {
    for (pmu, exact, events) in [
        (
            Pmu::Intel,
            "INST_RETIRED.ANY",
            "MEM_INST_RETIRED.ALL_LOADS,MEM_INST_RETIRED.ALL_STORES,BR_INST_RETIRED.COND,\
             BR_INST_RETIRED.ALL_BRANCHES,BR_MISP_RETIRED.COND,L1D.REPLACEMENT",
        ),
        (
            Pmu::Amd,
            "RETIRED_INSTRUCTIONS",
            "LS_DISPATCH.LD_DISPATCH,LS_DISPATCH.STORE_DISPATCH,RETIRED_BRANCH_INSTRUCTIONS,\
             RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS,RETIRED_TAKEN_BRANCH_INSTRUCTIONS,\
             RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED",
        ),
    ] {
        // Beside one that counts too. The right to use RDPMC is the one program's, whoever runs beside it.
        let job = format!("wire -- bank {exact} {events} -- share 1 {exact} 1000 -- crash rdpmc");
        let boot = boot(&Request { pmu, ..Request::new(job) });
        for program in ["bank", "share"] {
            assert!(boot.transcript.exits.contains(&(program.into(), 0)), "{}", boot.outcome);
        }
        assert_one_fault(&boot);
    }
}

#[test]
fn a_word_of_the_programs_own_starts_and_stops_its_counters() {
    const PAIRS: u64 = 4_000;
    for (pmu, events) in [
        (Pmu::Intel, "INST_RETIRED.ANY,MEM_INST_RETIRED.ALL_LOADS,BR_INST_RETIRED.COND"),
        (
            Pmu::Amd,
            "RETIRED_INSTRUCTIONS,LS_DISPATCH.LD_DISPATCH,RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS",
        ),
    ] {
        // One whose slices its own word ends, and one whose slices end in between too, and turns with them.
        let job = format!(
            "wire -- switch 200000 {events} -- switch 5000 {events} -- share 1 {events} 300000"
        );
        let boot = boot(&Request { pmu, ..Request::new(job) });
        assert_success(&boot);
        println!("{}", boot.transcript.text());
        let truth = boot.truth.as_ref().expect("the virtual PMU writes it");
        let report = Report::of(&boot);
        let sessions = boot.transcript.sessions.values().zip(report.sessions());
        let switches: Vec<_> = sessions.filter(|(known, _)| known.program == "switch").collect();
        assert_eq!(switches.len(), 2);
        for (known, report) in switches {
            let slice = known.config.slice.length();
            let region = truth.region(RegionKind::Marked, slice as u32);
            for event in &report.events {
                let counted = event.estimate.expect("it is exact");
                let truth = region.expect("it was open").events[&event.name].user;
                println!("slices of {slice}: {} counted {counted}, truth {truth}", event.name);
                // Stopping and starting are in the counts, at each counter's own edges.
                assert_eq!(event.kind, Kind::Exact);
                assert!((truth..truth + 200 * PAIRS).contains(&counted), "{event:?} {truth}");
            }
        }
    }
}

/// At the count and once, whether it is counted all the time or takes turns; and no threshold outlives its
/// program, however that ends. All beside another program, so that turns end while thresholds are set.
#[test]
fn thresholds_fire_once_at_the_count_and_go_with_their_program() {
    for (pmu, exact, others) in THRESHOLDS {
        let guest = format!("thresholds {exact}");
        let programs = format!(
            "{guest} -- {guest},{others} -- {guest} armed -- {guest} fault -- share 1 {exact} 200000"
        );
        let boot = boot(&Request { pmu, ..Request::new(format!("wire trace -- {programs}")) });
        let told = boot.transcript.text();
        println!("{told}");
        assert_one_fault(&boot);
        assert!(boot.transcript.exits.contains(&("share".into(), 0)), "{told}");
        let good = boot.transcript.exits.iter().filter(|exit| **exit == ("thresholds".into(), 0));
        assert_eq!((good.count(), told.matches("thresholds: done").count()), (3, 2), "{told}");
        assert!(!told.contains("survived"), "{told}");
        let records = &boot.transcript.thresholds;
        assert!(records.iter().all(|record| record.count >= record.threshold), "{records:?}");
        let many = |session: &&u32| records.iter().filter(|r| r.session == **session).count() >= 4;
        assert_eq!(boot.transcript.sessions.keys().filter(many).count(), 2, "{records:?}");
        // Preloading loses nothing: what was counted all the time is the truth.
        for session in Report::of(&boot).sessions() {
            for event in session.events.iter().filter(|event| event.kind == Kind::Exact) {
                assert_eq!(event.estimate, event.truth, "{event:?}");
            }
        }
    }
}

#[test]
fn samples_say_where_a_program_was() {
    for (pmu, event) in
        [(Pmu::Intel, "branches"), (Pmu::Amd, "branches"), (Pmu::Zen3, "instructions")]
    {
        let job =
            format!("wire trace -- tally record --budget 100 -e {event} -c 10000 rounds 1 60000");
        let boot = boot(&Request { pmu, ..Request::new(job) });
        assert_success(&boot);
        let told = boot.transcript.text();
        let report = Report::of(&boot).first.expect("tally opens a session");
        // Sampling loses nothing.
        for event in report.events.iter().filter(|event| event.kind == Kind::Exact) {
            assert_eq!(event.estimate, event.truth, "{event:?}");
        }
        let samples = &boot.transcript.samples;
        let all = report.events[0].truth.expect("the model counts it");
        let (taken, expected) = (samples.len() as u64, all / 10_000);
        assert!(taken.abs_diff(expected) <= 1 + expected / 50, "{taken}, {expected}: {told}");
        for two in samples.windows(2) {
            let gap = two[1].count - two[0].count;
            // A skid beyond the latest count that there could be.
            assert!((8_750..11_300).contains(&gap), "{two:?}");
            assert!(two[1].user && (0x20_0000..0x30_0000).contains(&two[1].address), "{two:?}");
        }
        let line = format!(" {taken} samples of ");
        assert!(told.replace(',', "").contains(&line), "{told}");
    }
}

/// A bank has a word that stops the counters: its program's own, and nobody else's.
#[test]
fn a_program_that_another_samples_cannot_stop_its_counters() {
    let boot = run("", "writable -- tally record -e branches -c 1000 writable");
    assert_success(&boot);
    let told = boot.transcript.text();
    assert_eq!(told.matches("writable 1\n").count(), 2, "{told}");
}

/// The kernel runs with interrupts off: a fixed interrupt comes when it has returned, an NMI at once.
#[test]
fn as_nmis_overflows_see_code_that_runs_with_interrupts_off() {
    for (pmu, overflows) in [(Pmu::Intel, "fixed"), (Pmu::Intel, "nmi"), (Pmu::Amd, "nmi")] {
        let program = "tally stat -e branches rounds 1 100";
        let job = format!("tally record --budget 100 --kernel -e instructions:k -c 2000 {program}");
        let line = format!("wire trace paranoid=1 overflows={overflows} -- {job}");
        let boot = boot(&Request { pmu, ..Request::new(line) });
        assert_success(&boot);
        let samples = &boot.transcript.samples;
        let inside = samples.iter().filter(|sample| !sample.user && sample.address != 0).count();
        match overflows {
            "nmi" => assert!(inside > 50, "{inside} of {}", samples.len()),
            _ => assert!(inside == 0 && !samples.is_empty(), "{inside} of {}", samples.len()),
        }
    }
}

/// Each instruction is asked for: the budget leaves the program its time all the same.
#[test]
fn a_period_of_one_leaves_the_program_most_of_the_machine() {
    for (pmu, budget, share) in [(Pmu::Intel, 2, 0.25), (Pmu::Amd, 20, 0.5)] {
        let job = format!("tally record --budget {budget} -e instructions -c 1 rounds 1 60000");
        let boot = boot(&Request { pmu, ..Request::new(format!("wire trace -- {job}")) });
        assert_success(&boot);
        let report = Report::of(&boot).first.expect("tally opens a session");
        assert!(report.engine_share.is_some_and(|taken| taken < share), "{report:?}");
        assert!(boot.transcript.samples.len() > 100);
        assert!(
            boot.transcript.samples.last().is_some_and(|sample| sample.period_multiplier > 100)
        );
        let [estimate, truth] = [report.events[0].estimate, report.events[0].truth];
        assert_eq!(estimate, truth);
        let each = truth.expect("the model counts it") / boot.transcript.samples.len() as u64;
        let told = boot.transcript.text().replace(',', "");
        let line = format!("requested: one per 1 events taken: one per {each}\n");
        assert!(told.contains(&line), "{line}: {told}");
    }
}

#[test]
fn programs_look_after_their_counters_themselves() {
    for (pmu, instructions, branches) in [
        (Pmu::Intel, "INST_RETIRED.ANY", "BR_INST_RETIRED.ALL_BRANCHES"),
        (Pmu::Amd, "RETIRED_INSTRUCTIONS", "RETIRED_BRANCH_INSTRUCTIONS"),
        (Pmu::Zen3, "RETIRED_INSTRUCTIONS", "RETIRED_BRANCH_INSTRUCTIONS"),
    ] {
        let direct =
            |turns| format!("direct {instructions},{branches},r01c2,r02c2,branch-misses {turns}");
        // Longer than the scheduler's turns, and with another's overflow interrupts in between.
        let programs = [direct(500_000), direct(350_000), format!("share 3 {instructions} 100000")];
        let boot = boot(&Request {
            pmu,
            ..Request::new(format!("wire paranoid=0 -- {}", programs.join(" -- ")))
        });
        assert_success(&boot);
        let told = boot.transcript.text();
        assert_eq!(told.matches("direct: done").count(), 2, "{told}");
    }
}

#[test]
fn programs_measure_programs_that_they_load() {
    for (pmu, events, cpus, turns) in [
        (Pmu::Intel, "INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD", 1, 20_000_000),
        (Pmu::Amd, "RETIRED_INSTRUCTIONS,CYCLES_NOT_IN_HALT", 1, 20_000_000),
        (Pmu::Intel, "INST_RETIRED.ANY", 3, 60_000_000),
    ] {
        let line = format!("wire -- family {events} {turns}");
        let boot = boot(&Request { pmu, cpus, ..Request::new(line) });
        let told = boot.transcript.text();
        assert!(told.contains("family: done") && !told.contains("FAILED"), "{told}");
        // A crash of a program that another loaded is that one's affair.
        assert_eq!(boot.transcript.done, Some(0), "{}\n{told}", boot.outcome);
        let report = Report::of(&boot);
        let sessions: Vec<_> = report.first.iter().chain(&report.others).collect();
        assert_eq!(sessions.len(), 3, "{sessions:#?}");
        // The first one's program never let it count. What the second and the third counted, the latter
        // after its owner had ended, is the truth to the one.
        for session in &sessions[1..] {
            assert_eq!(session.program, "family");
            let counted = &session.events[0];
            assert!(counted.estimate > Some(10_000_000), "{counted:#?}");
            assert_eq!(counted.estimate, counted.truth, "{counted:#?}");
        }
    }
}
