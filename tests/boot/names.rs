//! Functions of programs and libraries by name, of the files that ran and of no other build.

use std::{fs, path::PathBuf};

use serde_json::Value;
use tally_abi::ExitStatus;

use crate::command::{guest, run, tally, text};

/// Functions of `shares` with their shares of the instructions: it executes one loop, so that they
/// are known.
const SHARES: [(&str, f64); 3] =
    [("in_loaded", 1.0 / 2.0), ("in_library", 1.0 / 3.0), ("in_program", 1.0 / 6.0)];

/// A folder with copies of `shares` and its libraries, and the trace of a run of it.
struct Recorded(PathBuf);

impl Recorded {
    fn of(name: &str) -> Recorded {
        let folder =
            std::env::temp_dir().join(format!("tally-names-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let recorded = Recorded(folder);
        for file in ["shares", "libshares.so", "loaded.so"] {
            recorded.put(&guest(file), file);
        }
        let loaded = recorded.path("loaded.so");
        let file = format!("{loaded}:{loaded}");
        let head = ["-q", "--file", &file, "--trace", &recorded.path("trace"), "--"];
        let record = ["record", "-g", "-e", "instructions", "-c", "20011", "--budget", "20"];
        let program = recorded.path("shares");
        let given = format!("{program}:{program}");
        let words = [&["--file", &given], &head[..], &record, &[&program, &loaded]].concat();
        let ran = run(&words);
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        recorded
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Copies a file into the folder, instead of one of this name.
    fn put(&self, from: &str, name: &str) {
        fs::copy(from, self.0.join(name)).unwrap();
    }

    /// The shares of functions by name, and what the command says.
    fn report(&self, words: &[&str]) -> (Vec<(String, f64)>, String) {
        let output = tally("report", &[&[&*self.path("trace"), "--json"], words].concat());
        let errors = text(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let functions = report[0]["functions"].as_array().unwrap().iter();
        let share = |of: &Value| {
            (of["function"].as_str().unwrap().to_owned(), of["share"].as_f64().unwrap())
        };
        (functions.map(share).collect(), errors)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // The folder may be gone already.
        _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn functions_of_a_program_and_its_libraries_have_their_shares() {
    let recorded = Recorded::of("shares");
    let (functions, said) = recorded.report(&[]);
    assert_eq!(said, "");
    for ((name, share), (expected, truth)) in functions.iter().zip(SHARES) {
        assert_eq!(name, expected, "{functions:?}");
        // Six standard errors of some 2,000 samples, and what the loader executes.
        assert!((share - truth).abs() < 0.07, "{functions:?}");
    }
    // Each call is from `main`, across the files.
    let (functions, _) = recorded.report(&["--children"]);
    let main = functions.iter().find(|(name, _)| name == "main");
    assert!(main.is_some_and(|(_, share)| *share > 0.95), "{functions:?}");
}

#[test]
fn static_functions_of_one_name_are_two() {
    let program = guest("same");
    let trace = std::env::temp_dir().join(format!("tally-names-{}-same", std::process::id()));
    let trace = trace.to_str().unwrap();
    let file = format!("{program}:same");
    let options = ["-q", "--file", &file, "--trace", trace, "--", "record"];
    let words = ["-e", "instructions", "-c", "20011", "--budget", "20", "same"];
    let ran = run(&[&options[..], &words].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let report: Value =
        serde_json::from_slice(&tally("report", &[trace, "--json"]).stdout).unwrap();
    let functions = &report[0]["functions"];
    for (at, (name, truth)) in
        [("helper (same.c)", 0.9), ("helper (same_other.c)", 0.1)].into_iter().enumerate()
    {
        let share = functions[at]["share"].as_f64().unwrap();
        assert_eq!(functions[at]["function"], name, "{functions}");
        // Six standard errors of some 1,000 samples, and what the loader executes.
        assert!((share - truth).abs() < 0.07, "{functions}");
        let annotated = text(&tally("annotate", &[trace, name]).stdout);
        assert!(annotated.starts_with(&format!("# {name}\n")), "{annotated}");
    }
    fs::remove_file(trace).unwrap();
}

#[test]
fn a_file_that_has_changed_gives_no_names() {
    let recorded = Recorded::of("stale");
    recorded.put(&guest("shares-other"), "shares");
    let (functions, said) = recorded.report(&[]);
    let is_named = |name| functions.iter().any(|(function, _)| function == name);
    assert!(is_named("in_loaded") && is_named("in_library") && !is_named("in_program"));
    assert!(said.contains("shares has changed since it ran"), "{said}");
    // The file that ran, from elsewhere.
    let original = guest("shares");
    let (functions, said) = recorded.report(&["--symbols", &original]);
    assert!(functions.iter().any(|(function, _)| function == "in_program"), "{functions:?}");
    assert_eq!(said, "");
    // Another program's file is no file of the run.
    let other = guest("speaks");
    let (functions, said) = recorded.report(&["--symbols", &original, "--symbols", &other]);
    assert!(functions.iter().any(|(function, _)| function == "in_program"), "{functions:?}");
    assert!(said.contains("speaks: no file of the programs that were sampled"), "{said}");
}

#[test]
fn a_file_of_another_build_is_refused() {
    let recorded = Recorded::of("refused");
    let folder = recorded.0.join("other");
    fs::create_dir_all(&folder).unwrap();
    let other = folder.join("shares");
    fs::copy(guest("shares-other"), &other).unwrap();
    let words = [&*recorded.path("trace"), "--symbols", other.to_str().unwrap()];
    for task in ["report", "annotate"] {
        let output = tally(task, &words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(u8::from(ExitStatus::Usage).into()), "{said}");
        assert!(said.contains("another build than the one that ran: it has build id"), "{said}");
    }
}
