//! A program of `tests/guests` under `tally record`, and the output of commands on its trace.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::Command,
    sync::{Mutex, PoisonError},
};

use xtask::{
    machine::{self, Artefacts, Boot, Request},
    project::Project,
    report::Report,
    trace::run::Run,
    trace_file::Trace,
};

use crate::{artefacts, assert_success, export::xtask_task, machine_permit, on_host};

/// Machine in which a program was sampled.
pub struct Recorded {
    /// Result of the machine's run.
    pub boot: Boot,
    /// Path of the trace, in the machine's folder.
    pub trace: PathBuf,
    program: PathBuf,
}

impl Recorded {
    /// Boots a machine that runs `tally record` with these words on the program `name`.
    pub fn of(name: &str, words: &str, request: Request) -> Recorded {
        let program = program(name);
        let artefacts = Artefacts { on_demand: vec![program.clone()], ..artefacts() };
        let line = format!("wire trace -- tally record {words}");
        let permit = machine_permit();
        let request = Request { command_line: line, ..request };
        let boot = machine::boot(&artefacts, &request, &mut |_| {});
        drop(permit);
        let boot = boot.unwrap_or_else(|failure| panic!("{failure}"));
        assert_success(&boot);
        let trace = boot.folder.file("recorded");
        let run = Run::of(&boot, &Report::of(&boot), name);
        fs::write(&trace, Trace::with_run(&boot.transcript.trace, &run.json())).unwrap();
        Recorded { boot, trace, program }
    }

    /// Output of a task of xtask on the trace, with the program's symbols.
    pub fn print(&self, task: &str, words: &[&str]) -> String {
        let mut xtask = xtask_task(task);
        xtask.arg(&self.trace).arg("--symbols").arg(&self.program).args(words);
        let output = xtask.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Path of the program, built once, with symbols.
fn program(name: &str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = built.get(name) {
        return program.clone();
    }
    let project = Project::here();
    let program = project.target.join("guest").join(name);
    let source = project.root.join("tests/guests").join(name).with_extension("c");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-g", "-static"]);
    // Frame pointers next to unwind information, to compare the two.
    cc.args(["-fno-omit-frame-pointer", "-o"]).arg(&program).arg(source);
    let compiled = on_host(&mut cc);
    assert!(compiled.status.success(), "{compiled:?}");
    built.insert(name.into(), program.clone());
    program
}
