//! `cargo xtask linux -- COMMAND`: runs a shell command under an unmodified Debian kernel with
//! perf, on the same virtual PMU as Tally's kernel.
//!
//! The guest has busybox, perf and the user's files. Its console goes to standard output, and the
//! command's status is the exit status.

mod initramfs;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result, build,
    machine::{self, Folder, Pmu},
    output::ProgramWriter,
    process::Child,
    project::{self, Project},
    ramdisk, setup,
};

/// Interval at which the machine is polled.
const POLL: Duration = Duration::from_millis(20);

/// Options of `cargo xtask linux`.
#[derive(Args, Clone, Debug)]
pub struct LinuxArgs {
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// Number of CPUs
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=16))]
    cpus: u16,
    /// Require virtual time that counts instructions, one nanosecond each, as under Tally's kernel:
    /// equal commands then print the same. It is so with one CPU
    #[arg(long)]
    icount: bool,
    /// Put a file of this machine into the guest, under its name, in the folder in which the
    /// command runs and before all others in PATH: a static program, or its input
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// More options of the virtual PMU, such as series=FILE,every=1000000i (see qemu/README.md)
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', conflicts_with = "no_pmu")]
    vpmu: Vec<String>,
    /// Run without the virtual PMU, to compare
    #[arg(long)]
    no_pmu: bool,
    /// Show the kernel's own messages too
    #[arg(long)]
    verbose: bool,
    /// Stop the machine after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300,
          value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
    /// The shell command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command and prints its output.
///
/// # Errors
/// A part cannot be fetched, built or started, the machine does not end by itself, or standard
/// output cannot be written.
pub fn main(project: &Project, args: &LinuxArgs) -> Result<u8> {
    check(args)?;
    let qemu = setup::qemu(project)?;
    let linux = setup::linux(project)?;
    let plugin = build::plugin(project)?;
    let guest = machine::LinuxGuest {
        qemu: &qemu,
        linux: &linux,
        plugin: (!args.no_pmu).then_some(plugin.as_path()),
        vpmu: &args.vpmu,
        pmu: args.pmu,
        cpus: args.cpus.into(),
        files: &args.file,
        verbose: args.verbose,
        time_limit: Duration::from_secs(args.time_limit),
    };
    let mut writer = ProgramWriter::new(false);
    let status = run(&guest, &args.command.join(" "), &mut |line| {
        writer.write(1, format!("{line}\n").as_bytes());
    });
    writer.end()?;
    status
}

/// Checks the options before anything is built.
fn check(args: &LinuxArgs) -> Result<()> {
    if args.icount && args.cpus > 1 {
        let why = format!(
            "--icount needs one CPU, as QEMU gives plugins wrong CPU numbers otherwise: omit \
             --icount or --cpus {}",
            args.cpus
        );
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    machine::check_vpmu(args.pmu, &args.vpmu, args.cpus)?;
    ramdisk::check_files(&args.file, &[])?;
    initramfs::check_size(&args.file)
}

/// Runs a shell command, passes each line of its output to `show`, and returns its status.
///
/// # Errors
/// The machine cannot be started, or does not end by itself.
pub fn run(
    guest: &machine::LinuxGuest<'_>,
    command: &str,
    show: &mut dyn FnMut(&str),
) -> Result<u8> {
    let mut folder = Folder::make(&Project::here())?;
    let initramfs = folder.file("initramfs.cpio");
    project::write(
        &initramfs,
        &initramfs::make(guest.linux, guest.files, command, guest.verbose)?,
    )?;
    let mut command = machine::linux(guest, &initramfs, &folder);
    let log = folder.log();
    File::create(&log).map_err(|error| Failure::io("write", &log, &error))?;
    let mut child = machine::start(&mut command, &folder)?;
    let end = follow(&mut child, &log, guest.time_limit, show)?;
    drop(child);
    machine::check_options(&folder)?;
    let (status, why) = match end {
        GuestEnd::ByItself(Some(status)) => return Ok(status),
        GuestEnd::ByItself(None) => {
            let said = std::fs::read_to_string(folder.errors()).unwrap_or_default();
            let why = format!("the machine ended before the command:\n{said}");
            (ExitStatus::MachineFailed, why.trim_end().to_owned())
        }
        GuestEnd::OutOfTime => (ExitStatus::TimedOut, machine::out_of_time(guest.time_limit)),
    };
    let kept = folder.keep().display();
    Err(Failure::new(status, format!("{why}\nconsole log: {kept}")))
}

/// The machine's end.
enum GuestEnd {
    /// The machine ended by itself; with the command's status if the console has it.
    ByItself(Option<u8>),
    OutOfTime,
}

/// Reads the console until the machine has ended.
fn follow(
    child: &mut Child,
    log: &Path,
    limit: Duration,
    show: &mut dyn FnMut(&str),
) -> Result<GuestEnd> {
    let lost = |error: io::Error| Failure::io("read", log, &error);
    let mut console = File::open(log).map_err(lost)?;
    let mut lines = Console::default();
    let start = Instant::now();
    loop {
        let ended = child.try_wait().map_err(lost)?.is_some();
        let mut new = Vec::new();
        console.read_to_end(&mut new).map_err(lost)?;
        lines.append(&new, show);
        if ended {
            return Ok(GuestEnd::ByItself(lines.status));
        }
        if start.elapsed() > limit {
            return Ok(GuestEnd::OutOfTime);
        }
        std::thread::sleep(POLL);
    }
}

/// Splits the console's output into lines and selects the command's lines.
#[derive(Default)]
struct Console {
    rest: Vec<u8>,
    shown: bool,
    status: Option<u8>,
}

impl Console {
    fn append(&mut self, new: &[u8], show: &mut dyn FnMut(&str)) {
        self.rest.extend(new);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.line(String::from_utf8_lossy(&line).trim_end(), show);
        }
    }

    fn line(&mut self, line: &str, show: &mut dyn FnMut(&str)) {
        if line == initramfs::BEGIN {
            self.shown = true;
        } else if self.shown {
            let ends = line.rsplit_once(initramfs::STATUS);
            let ends = ends.and_then(|(last, status)| Some((last, status.parse().ok()?)));
            match ends {
                None => show(line),
                Some((last, status)) => {
                    (self.status, self.shown) = (Some(status), false);
                    if !last.is_empty() {
                        show(last);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_s_output_and_status_are_selected() {
        let mut console = Console::default();
        let mut shown = String::new();
        let mut append = |console: &mut Console, bytes: &[u8]| {
            console.append(bytes, &mut |line| shown += line);
        };
        append(&mut console, b"SeaBIOS\r\n");
        append(&mut console, format!("{}\r\nout\r\n", initramfs::BEGIN).as_bytes());
        assert!(console.shown);
        append(&mut console, format!("{}3", initramfs::STATUS).as_bytes());
        assert_eq!(console.status, None);
        append(&mut console, b"\r\n");
        assert_eq!((console.status, console.shown), (Some(3), false));
        assert_eq!(shown, "out");
    }

    #[test]
    fn the_status_follows_output_without_a_newline() {
        let (mut console, mut shown) = (Console::default(), Vec::new());
        let (begin, status) = (initramfs::BEGIN, initramfs::STATUS);
        let text = format!("{begin}\r\n{status}of what?\r\nlast words{status}7\r\nreboot\r\n");
        console.append(text.as_bytes(), &mut |line| shown.push(line.to_owned()));
        assert_eq!((console.status, console.shown), (Some(7), false));
        assert_eq!(shown, [format!("{status}of what?"), "last words".to_owned()]);
    }
}
