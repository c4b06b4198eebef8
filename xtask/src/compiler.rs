//! Runs of cargo and compilers, with a progress line, and with their output only if they fail.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    process::{self, Child},
    progress::Step,
};

/// Runs `command` with a progress line of this title.
///
/// # Errors
/// The command cannot be started, or fails: the message has its standard error.
pub fn run(title: &str, command: &mut Command) -> Result<()> {
    let step = Step::start(title);
    watch(title, command, |line| step.at(line))?;
    step.done();
    Ok(())
}

/// Runs `command`, and passes each line of its standard error to `at`.
fn watch(title: &str, command: &mut Command, at: impl Fn(&str)) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let refused = |error: std::io::Error| {
        Failure::new(ExitStatus::BuildFailed, format!("cannot run {name}: {error}"))
    };
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Child::spawn(command).map_err(refused)?;
    let stderr = child.take_stderr().expect("standard error is a pipe");
    let mut errors = String::new();
    for line in BufReader::new(stderr).lines() {
        let line = line.map_err(refused)?;
        at(line.trim());
        errors.push_str(&line);
        errors.push('\n');
    }
    if child.wait().map_err(refused)?.success() {
        return Ok(());
    }
    let status = if errors.contains("No space left on device") {
        ExitStatus::NoSpace
    } else {
        ExitStatus::BuildFailed
    };
    Err(Failure::new(status, format!("{title} failed:\n{}", errors.trim_end())))
}

/// Writes `executable` without its debug information to `stripped`, unless the latter is newer.
/// `root` is the project's folder, in which rustup selects the toolchain.
///
/// # Errors
/// Rust's `rust-objcopy` is missing or fails, or the host refuses a file.
pub(crate) fn strip_debug(root: &Path, executable: &Path, stripped: &Path) -> Result<()> {
    let modified = |file: &Path| fs::metadata(file).and_then(|metadata| metadata.modified());
    let built = modified(executable).map_err(|error| Failure::io("read", executable, &error))?;
    if modified(stripped).is_ok_and(|made| made > built) {
        return Ok(());
    }
    let part = stripped.with_added_extension(format!("part-{}", std::process::id()));
    let mut objcopy = objcopy(root)?;
    watch("Stripping", objcopy.arg("--strip-debug").args([executable, &part]), |_| {})?;
    fs::rename(&part, stripped).map_err(|error| Failure::io("write", stripped, &error))
}

/// Makes a call of rustc's own objcopy, which uses rustc's LLVM. `root` is the project's folder.
///
/// # Errors
/// This rustc has no objcopy.
pub(crate) fn objcopy(root: &Path) -> Result<Command> {
    let mut rustc = Command::new("rustc");
    rustc.current_dir(root).args(["--print", "sysroot", "--print", "target-libdir"]);
    let printed = process::output(&mut rustc).map(|output| output.stdout).unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed);
    let mut lines = printed.lines().map(Path::new);
    let found = lines.next().zip(lines.next()).map(|(sysroot, libraries)| {
        (sysroot.join("lib"), libraries.with_file_name("bin").join("rust-objcopy"))
    });
    let Some((llvm, program)) = found.filter(|(_, program)| program.is_file()) else {
        let why = "this rustc has no rust-objcopy: install Rust by rustup";
        return Err(Failure::new(ExitStatus::BuildFailed, why));
    };
    let mut objcopy = Command::new(program);
    objcopy.env("LD_LIBRARY_PATH", llvm);
    Ok(objcopy)
}
