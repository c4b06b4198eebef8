//! The study of paper 004 with two programs of `tests/benchmarks`.

use serde_json::Value;
use tally_abi::ExitStatus;
use tally_lab::study::bottlenecks;
use xtask::project::Project;

use crate::{artefacts, shared::machine_permit};

/// Mean error of the model `way` over both programs, at a million instructions.
fn error(json: &Value, way: &str) -> f64 {
    let programs = json["programs"].as_array().unwrap();
    let of = |program: &Value| {
        let models = program["models"].as_array().unwrap();
        let model = models.iter().find(|model| model["way"] == way).expect(way);
        model["judged"][0]["error"].as_f64().unwrap()
    };
    programs.iter().map(of).sum::<f64>() / programs.len() as f64
}

/// Costs of two programs on this machine, each predicted with penalties fitted to the other.
fn check_penalties(pmu: &str) {
    let _permit = machine_permit();
    let words = format!("--programs qhull,lame --instructions 40000000 --jobs 1 --pmu {pmu}");
    let (json, text) = bottlenecks::run_words(&Project::here(), &artefacts(), &words)
        .unwrap_or_else(|failure| panic!("{words}: {failure}"));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(error(&json, "cycles") < 0.8 * error(&json, "catalogue"), "{text}");
    for program in json["programs"].as_array().unwrap() {
        assert!(program["intervals"].as_u64() > Some(30), "{text}");
        let models = program["models"].as_array().unwrap();
        let penalties = models.iter().flat_map(|model| model["penalties"].as_array().unwrap());
        assert!(penalties.into_iter().all(|penalty| penalty.as_f64() >= Some(0.0)), "{text}");
        let right = |index: usize| program["hash"][index]["right"][0].as_f64().unwrap();
        assert!(right(0) < right(6), "a larger unit is easier to predict: {text}");
    }
}

#[test]
#[ignore = "long"]
fn costs_with_penalties_fitted_to_another_program_are_nearer_to_the_cycles() {
    check_penalties("intel");
}

#[test]
#[ignore = "long"]
fn costs_with_penalties_fitted_to_another_program_are_nearer_to_the_cycles_on_amd() {
    check_penalties("amd");
}

#[test]
#[ignore = "long"]
fn costs_stand_beside_perfect_structures_and_a_table_serves_the_largest() {
    let _permit = machine_permit();
    let words = "--programs lame,qhull --instructions 12000000 --jobs 1 --structures";
    let (json, text) = bottlenecks::run_words(&Project::here(), &artefacts(), words)
        .unwrap_or_else(|failure| panic!("{words}: {failure}"));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for program in json["programs"].as_array().unwrap() {
        let worth = &program["structures"];
        let saved = |name: &str| {
            let all = worth["saved"].as_array().unwrap();
            let one = all.iter().find(|one| one["structure"] == name).expect(name);
            one["saved"].as_f64().unwrap()
        };
        // Both programs mispredict. A structure that is perfect in both is worth more than in one.
        assert!(saved("branch+indirect+returns") > 0.05, "{text}");
        assert!(saved("branch+indirect+returns") >= saved("branch"), "{text}");
        assert!(saved("l1i") >= saved("l2i"), "{text}");
        let table = &worth["table"];
        let numbers = |name: &str| -> Vec<f64> {
            table[name].as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect()
        };
        let best = table["best"].as_f64().unwrap();
        assert!(numbers("alone").iter().all(|alone| *alone <= best), "{text}");
        assert!(table["adaptive"].as_f64() > Some(0.0), "{text}");
        let chosen: f64 = numbers("chosen").iter().sum();
        assert!(chosen > 0.8 && chosen < 1.0, "the first interval has none: {text}");
    }
}

#[test]
fn a_processor_without_costs_is_refused_and_so_is_one_program() {
    for (words, why, status) in [
        ("--programs qhull,bzip2 --pmu zen3", "no cost model", ExitStatus::EventNotSupported),
        ("--programs qhull", "name at least two", ExitStatus::Usage),
    ] {
        let failure = bottlenecks::run_words(&Project::here(), &artefacts(), words).unwrap_err();
        assert!(failure.message.contains(why) && failure.status == status, "{failure}");
    }
}
