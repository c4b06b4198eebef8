//! `cargo xtask image` as called by a user: the requests that it refuses, the image that it writes,
//! and the counts of a machine that boots it.

use std::{fs, path::PathBuf, process::Output};

use tally_abi::ExitStatus;
use xtask::{
    machine::{self, Artefacts, Request},
    report::{Kind, Report, SessionReport},
};

use crate::{
    artefacts,
    command::{guest, tally, text},
    machine_permit, output_of,
};

/// Folder that is removed with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder =
            std::env::temp_dir().join(format!("tally-image-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().flatten();
        names.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn assert_refused(output: &Output, status: ExitStatus, words: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(u8::from(status).into()), "{said}");
    assert!(said.contains(words), "{said}");
}

#[test]
fn what_an_image_cannot_run_is_refused_before_anything_is_written() {
    let folder = Folder::new("refused");
    let out = folder.path("out.img");
    let refused = |words: &[&str], status, why: &str| {
        assert_refused(&tally("image", &[&["--out", &out], words].concat()), status, why);
        assert!(folder.names().is_empty(), "{words:?}: {:?}", folder.names());
    };
    refused(&["--events", "cyclse"], ExitStatus::UnknownEvent, "cyclse");
    refused(&["--events", "L1D.REPLACEMENT", "--pmu", "amd"], ExitStatus::UnknownEvent, "L1D.");
    refused(&["--slice", "7", "--events", "cycles"], ExitStatus::SliceOutOfRange, "slice of 7");
    refused(&["--file", "/no/such"], ExitStatus::ProgramNotFound, "/no/such: no such file");
    refused(&["--", "nobody"], ExitStatus::ProgramNotFound, "no such program");
    let text = folder.path("../Cargo.toml.tally-image");
    fs::write(&text, "no program").unwrap();
    refused(&["--file", &text, "--", "Cargo.toml.tally-image"], ExitStatus::NotRunnable, "ELF");
    fs::remove_file(text).unwrap();
    refused(&["--phases", "--", "deflate"], ExitStatus::Usage, "name it with --pmu");
    refused(&["--size", "1M"], ExitStatus::NoSpace, "MiB, and the stick 1: use a larger one");
    let full = tally("image", &["--out", "/dev/full"]);
    assert_refused(&full, ExitStatus::NoSpace, "/dev/full");
}

#[test]
fn an_image_runs_jobs_of_files_with_arguments_and_input() {
    let folder = Folder::new("jobs");
    let [out, jobs, input] = ["out.img", "jobs", "input"].map(|name| folder.path(name));
    fs::write(&jobs, "--events instructions,branches -- speaks 0 'a b'\n-- rounds 1 10\n").unwrap();
    fs::write(&input, "a line\n").unwrap();
    let speaks = guest("speaks") + ":bin/speaks";
    let words = ["--out", &out, "--jobs", &jobs, "--file", &speaks, "--stdin", &input];
    let more = ["--repeat", "2", "--seed", "5", "--wire", "--cpus", "2", "--log", "debug"];
    let made = tally("image", &[&words[..], &more].concat());
    assert!(made.status.success(), "{}", text(&made.stderr));
    let artefacts = Artefacts { disk: Some(out.into()), ..artefacts() };
    let _permit = machine_permit();
    let request = Request { from_disk: true, cpus: 2, ..Request::new("") };
    let boot = machine::boot(&artefacts, &request, &mut |_| {}).unwrap();
    crate::assert_success(&boot);
    assert!(output_of(&boot, 0, 1).starts_with("[0][a b]"), "{}", output_of(&boot, 0, 1));
    let sessions: Vec<SessionReport> = Report::of(&boot).sessions().cloned().collect();
    let jobs: Vec<_> = sessions.iter().map(|session| session.job.unwrap()).collect();
    let jobs: Vec<_> = jobs.iter().map(|job| (job.number, job.seed)).collect();
    assert_eq!(jobs, [(1, 5), (1, 6)]);
    let events: Vec<_> = sessions.iter().flat_map(|session| &session.events).collect();
    assert!(events.iter().all(|event| event.kind == Kind::Exact && event.estimate == event.truth));
    assert_eq!(boot.transcript.exits.len(), 4);
}
