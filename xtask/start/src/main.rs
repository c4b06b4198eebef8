//! `cargo xtask`: builds the tool, which takes minutes the first time, and becomes it. For commands
//! of the laboratory it builds and becomes the laboratory's program.
//!
//! The package has no dependencies, so the first line comes seconds after the first command. The
//! program is built in this program's own profile, beside it.

use std::{
    env,
    ffi::OsString,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use xtask_start::laboratory_word;

/// The status of a tool that does not build, as `tally_abi::ExitStatus` has it.
const BUILD_FAILED: u8 = 77;
/// The time between two lines that say how far the build is.
const INTERVAL: Duration = Duration::from_secs(10);

/// A program that this one becomes.
struct Tool {
    package: &'static str,
    program: &'static str,
    /// The name in messages.
    name: &'static str,
}

const TALLY: Tool = Tool { package: "xtask", program: "tally", name: "tool" };
const LAB: Tool = Tool { package: "tally-lab", program: "lab", name: "laboratory" };

fn main() -> ExitCode {
    match start() {
        Ok(never) => match never {},
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::from(BUILD_FAILED)
        }
    }
}

/// Builds the program of the command and replaces this process with it.
fn start() -> Result<std::convert::Infallible, String> {
    let own = env::current_exe().map_err(|error| format!("the tool's folder: {error}"))?;
    let folder = own.parent().ok_or("the tool has no folder")?;
    let words = env::args_os().map(|word| word.to_string_lossy().into_owned());
    let tool = if laboratory_word(words).is_some() { LAB } else { TALLY };
    build(&tool, folder.ends_with("release"))?;
    let program = folder.join(tool.program);
    let error = Command::new(&program).args(env::args_os().skip(1)).exec();
    Err(format!("{}: {error}", program.display()))
}

/// Builds a program, with a line as soon as anything is compiled and every few seconds after that.
fn build(tool: &Tool, is_release: bool) -> Result<(), String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(["build", "--package", tool.package, "--bin", tool.program]);
    command.args(is_release.then_some("--release"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cargo cannot be started: {error}"))?;
    let (sender, lines) = mpsc::channel();
    let stderr = child.stderr.take();
    thread::spawn(move || {
        let lines = stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines());
        // The receiver ends with the last sender.
        lines.map_while(Result::ok).for_each(|line| drop(sender.send(line)));
    });
    let mut progress = Progress::new(tool.name);
    loop {
        match lines.recv_timeout(INTERVAL) {
            Ok(line) => progress.line(line),
            Err(RecvTimeoutError::Timeout) => progress.tell(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        progress.rest.iter().for_each(|line| eprintln!("{line}"));
        return Err(format!("the {} does not build: cargo's reason is above", tool.name));
    }
    progress.end();
    Ok(())
}

/// How far the build is, by cargo's lines.
struct Progress {
    /// The name of what is built.
    name: &'static str,
    start: Instant,
    /// The time of the last line that was printed; none before the first.
    printed: Option<Instant>,
    compiled: u32,
    /// Lines that explain a failure.
    rest: Vec<String>,
}

impl Progress {
    fn new(name: &'static str) -> Progress {
        Progress { name, start: Instant::now(), printed: None, compiled: 0, rest: Vec::new() }
    }

    /// Takes a line of cargo's.
    fn line(&mut self, line: String) {
        let verb = line.split_whitespace().next().unwrap_or_default();
        match verb {
            "Compiling" => self.compiled += 1,
            "Updating" | "Downloading" | "Downloaded" => (),
            "Finished" => return,
            _ => return self.rest.push(line),
        }
        if self.printed.is_none() {
            eprintln!("Building the {}, which takes minutes the first time …", self.name);
            self.printed = Some(Instant::now());
        }
        self.tell();
    }

    /// Prints how far the build is, if it began and the last line is some seconds old.
    fn tell(&mut self) {
        let Some(_) = self.printed.filter(|last| last.elapsed() >= INTERVAL) else { return };
        let seconds = self.start.elapsed().as_secs();
        eprintln!("Building the {}: {} packages in {seconds} s", self.name, self.compiled);
        self.printed = Some(Instant::now());
    }

    /// Prints the last line, if there was a first.
    fn end(&self) {
        if self.printed.is_some() {
            eprintln!("Building the {}: {:.1} s", self.name, self.start.elapsed().as_secs_f64());
        }
    }
}
