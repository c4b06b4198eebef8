//! Calls of cargo and of compilers: a progress line while they run, their output only if they fail.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use tally_abi::ExitStatus;

use crate::{Failure, Result, process::Child, progress::Step};

/// Runs a call behind a progress line with this title.
///
/// # Errors
/// It cannot be started, or fails: the message ends with all that it wrote to standard error.
pub(crate) fn run(title: &str, command: &mut Command) -> Result<()> {
    let step = Step::start(title);
    let name = command.get_program().to_string_lossy().into_owned();
    let refused = |error: std::io::Error| {
        Failure::new(ExitStatus::BuildFailed, format!("cannot run {name}: {error}"))
    };
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Child::spawn(command).map_err(refused)?;
    let stderr = child.take_stderr().expect("standard error is a pipe");
    let mut said = String::new();
    for line in BufReader::new(stderr).lines() {
        let line = line.map_err(refused)?;
        step.at(line.trim());
        said.push_str(&line);
        said.push('\n');
    }
    if child.wait().map_err(refused)?.success() {
        step.done();
        return Ok(());
    }
    let status = match said.contains("No space left on device") {
        true => ExitStatus::NoSpace,
        false => ExitStatus::BuildFailed,
    };
    Err(Failure::new(status, format!("{title} failed; it said:\n{}", said.trim_end())))
}
