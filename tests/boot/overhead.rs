//! Costs of the engine: for each session, and by the clock that limits them.

use tally_abi::session::MIN_SLICE;
use tally_lab::study::overhead;
use xtask::{
    machine::{Pmu, Request},
    report::Report,
};

use crate::{
    assert_exact_counts_are_true, assert_success, boot, command::guest, output_of, run, session_of,
};

/// Factor by which a share may exceed its budget: the engine adapts during the first 16 slices.
const TOLERANCE: f64 = 1.05;

#[test]
fn the_engines_share_is_within_the_budget() {
    for (pmu, slice, percent) in [
        (Pmu::Intel, "auto", 1),
        (Pmu::Intel, "5000", 1),
        (Pmu::Intel, "5000", 5),
        (Pmu::Amd, "auto", 2),
        (Pmu::Amd, "5000", 2),
    ] {
        let line = format!("wire -- deflate --level 1 --slice {slice} --budget {percent}");
        let boot = boot(&Request { pmu, ..Request::new(line) });
        assert_success(&boot);
        let session = Report::of(&boot).first.expect("the job has a session");
        // The truth of the handlers excludes the folding of slices, the budget includes it.
        let share = session.handler_cycle_share.unwrap();
        let budget = f64::from(percent) / 100.0;
        assert!(share > budget / 2.0 && share <= TOLERANCE * budget, "{percent}: {session:?}");
        assert_eq!(session.lengthened > Some(0), slice != "auto", "{session:?}");
    }
}

/// Work of the kernel for the program is not charged to the engine: a program that spends a tenth
/// of its time on page faults, in every slice, pays for colder caches and not for the faults.
#[test]
fn page_faults_are_no_cost_of_switches() {
    const INTEL: &str = "BR_INST_RETIRED.COND_TAKEN,BR_MISP_RETIRED.COND,L1D.REPLACEMENT,\
                         MEM_LOAD_RETIRED.L1_MISS,MEM_LOAD_RETIRED.L2_MISS";
    const AMD: &str = "RETIRED_BRANCH_INSTRUCTIONS,RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED,\
                       RETIRED_NEAR_RETURNS,RETIRED_OPS,RETIRED_TAKEN_BRANCH_INSTRUCTIONS,\
                       RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS,RETIRED_INDIRECT_BRANCH_INSTRUCTIONS";
    for (pmu, events) in [("intel", INTEL), ("amd", AMD)] {
        let of = |faults: u64, steps: u64| {
            let options = format!("--pmu {pmu} --events {events} --file {}", guest("faults"));
            let run = format!("cargo xtask run {options} -- faults {faults} {steps}");
            let session = session_of(&run);
            [session.cycles_per_switch.unwrap() as f64, session.cycles_per_slice.unwrap()]
        };
        let ([switch, slice], [least_switch, least_slice]) = (of(12_800, 1_500), of(64, 300_000));
        // Charged faults would be a tenth of each slice, and slices are lengthened as switches cost
        // more. Colder caches cost a part of that.
        let charged = slice / 10.0;
        let what = format!("{pmu}: {switch} of {slice}, {least_switch} of {least_slice}");
        assert!(switch - least_switch < charged / 2.0, "{what}");
        assert!(slice / least_slice < charged / 2.0 / least_switch, "{what}");
    }
}

#[test]
fn stat_prints_the_engines_share_of_the_report() {
    let boot = run("", "tally stat -e instructions,branches deflate --level 1");
    assert_success(&boot);
    let text: String = [1, 2].map(|fd| output_of(&boot, 0, fd)).concat();
    let (_, line) = text.split_once("the engine took ").expect(&text);
    let (printed, _) = line.split_once(" %").expect(line);
    let share = Report::of(&boot).first.and_then(|session| session.engine_share);
    let percent = 100.0 * share.expect("tally opens a session");
    let printed: f64 = printed.parse().expect(printed);
    assert!((printed - percent).abs() < 0.01, "{printed} {percent}");
}

#[test]
fn each_session_has_its_own_cost() {
    let boot =
        run("", "switches INST_RETIRED.ANY 20000 user 200 -- deflate --level 1 --slice 20000");
    assert_success(&boot);
    let report = Report::of(&boot);
    let costs: Vec<_> = report
        .sessions()
        .map(|s| [s.instructions_per_switch, s.engine_share, s.handler_cycle_share])
        .collect();
    assert_eq!(costs.len(), 2, "{report:?}");
    for (first, second) in costs[0].iter().zip(&costs[1]) {
        assert!(first.is_some() && second.is_some() && first != second, "{costs:?}");
    }
}

/// Without a budget every slice of ring 3 has the requested shortest length. Where ring 0 is
/// counted too, slices are longer: an overflow stays pending while the kernel works.
#[test]
fn the_shortest_slices_are_taken() {
    for pmu in [Pmu::Intel, Pmu::Amd] {
        for (mode, most) in [("", MIN_SLICE + MIN_SLICE / 20), (" --kernel", 3 * MIN_SLICE)] {
            let job = format!("tally stat{mode} --slice {MIN_SLICE} --budget 100");
            let line = format!("wire paranoid=1 -- {job} -e cycles,instructions rounds 1 60000");
            let boot = boot(&Request { pmu, ..Request::new(line) });
            assert_success(&boot);
            let report = Report::of(&boot);
            assert_exact_counts_are_true(&report);
            let session = report.first.expect("tally opens a session");
            assert_eq!(session.lengthened, Some(0));
            let cycles = session.events[0].estimate.expect("cycles are pinned");
            let length = cycles / session.slices.expect("the session ended");
            assert!((MIN_SLICE - 10..most).contains(&length), "{pmu:?}{mode}: {length}");
        }
    }
}

/// Checks a short run of the study, which begins with shorter slices.
#[test]
fn switches_at_200_khz_cost_about_what_the_papers_do() {
    let paper = (200, 22.0);
    for pmu in [Pmu::Intel, Pmu::Amd] {
        let run = |slice| {
            let boot = boot(&overhead::request(pmu, "1 20000", slice));
            assert_success(&boot);
            boot
        };
        let row = overhead::compare(&run(None), &run(Some(9_000)), paper).unwrap();
        let parts = row.cycles_per_switch;
        assert!(row.switches > 100 && row.overhead < 1.15 * row.paper, "{pmu:?}: {row:?}");
        let all = [parts.delivery, parts.registers, parts.handler, parts.kernel, parts.program];
        assert!(all.into_iter().all(|part| part > 0.0), "{pmu:?}: {row:?}");
    }
}
