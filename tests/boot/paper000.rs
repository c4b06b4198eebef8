//! The study of paper 000 in its quick form, with a program of `tests/benchmarks`.

use serde_json::Value;
use tally_abi::ExitStatus;
use tally_lab::study::paper000;
use xtask::project::Project;

use crate::{artefacts, shared::machine_permit};

/// Output of the study for these words, as JSON and as text.
fn study(words: &str) -> (Value, String) {
    let _permit = machine_permit();
    let words = format!("{words} --quick --program qhull --jobs 1");
    let (json, text) = paper000::run_words(&Project::here(), &artefacts(), &words)
        .unwrap_or_else(|failure| panic!("{words}: {failure}"));
    let is_long = |line: &&str| line.chars().count() > 80;
    assert_eq!(text.lines().find(is_long), None);
    (json, text)
}

/// Distance of the first program in the row of this name.
fn distance(grid: &Value, name: &str) -> Option<f64> {
    let rows = grid["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name).expect(name);
    row["cells"][0]["distance"].as_f64()
}

fn check_rounds(pmu: &str) {
    let (json, text) = study(&format!("table2 figure5 figure7 --pmu {pmu}"));
    let grid = |name: &str| json["table_2"][name].clone();
    let [scaled, predicted, short] = ["scaled", "predicted", "short_predicted"].map(grid);
    // Instructions are counted in every slice, and the truth between two rows of the series is
    // interpolated in proportion to them. In scaled estimates one slice stands for a round.
    assert!(distance(&predicted, "Instructions") < Some(1e-5), "{text}");
    assert!(distance(&scaled, "Instructions") > Some(0.0), "{text}");
    for event in ["L1D loads", "L1D stores", "Mispredictions"] {
        let of = [&scaled, &predicted, &short].map(|grid| distance(grid, event).expect(event));
        assert!(of[1] < of[0] && of[1] < 0.05 && of[2] < 0.05, "{event} {of:?}: {text}");
    }
    let share = |slices: usize| json["table_2"]["handlers"][slices][0].as_f64().unwrap();
    assert!(share(0) > 0.01 && share(1) > 5.0 * share(0), "{text}");
    let figure = &json["figure_5"];
    let rounds = json["programs"][0]["rounds"].as_u64().unwrap() as usize;
    assert_eq!(figure["middle_cycles"].as_array().unwrap().len(), rounds);
    assert!(rounds > 20 && text.contains("Figure 7: where the cycles of qhull went"), "{text}");
}

#[test]
fn sampled_counts_are_near_the_full_ones_round_by_round() {
    check_rounds("intel");
}

#[test]
#[ignore = "long"]
fn sampled_counts_are_near_the_full_ones_round_by_round_on_amd() {
    check_rounds("amd");
}

#[test]
fn stalls_of_all_modes_are_aligned_by_instructions() {
    let (json, text) = study("table3");
    let table = &json["table_3"];
    for mode in ["single", "inorder"] {
        let known = ["L1D miss", "Misprediction", "FPU latency"];
        let of = known.map(|cause| distance(&table[mode], cause).expect(cause));
        assert!(of.iter().all(|distance| (0.0..10.0).contains(distance)), "{of:?}: {text}");
    }
    let grids = ["single", "single_from_real", "inorder", "inorder_from_real"];
    for (at, grid) in grids.iter().enumerate() {
        assert!(grids[..at].iter().all(|other| table[*other] != table[*grid]), "{grid}: {text}");
    }
    assert!(text.contains("38 of 47") && text.contains("37 of 47"), "{text}");
}

#[test]
fn a_program_that_is_too_short_is_named() {
    let _permit = machine_permit();
    let words = "table2 --program qhull --instructions 1 --jobs 1";
    let failure = paper000::run_words(&Project::here(), &artefacts(), words).unwrap_err();
    assert_eq!(failure.status, ExitStatus::TooShort, "{failure}");
    let why = &failure.message;
    assert!(why.starts_with("qhull: ") && why.contains("use more --instructions"), "{why}");
}
