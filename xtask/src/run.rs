//! `cargo xtask run`: everything, from nothing to the table.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use tally_abi::{
    ExitStatus, Shares,
    boot::{DEFAULT_PARANOID, Delivery, MAX_CPUS},
    session::{MAX_SLICE, MIN_SLICE},
};

use crate::{
    Failure, Result,
    explain::{self, Asked},
    machine::{self, Accel, Artefacts, Boot, Outcome, Pmu, Request},
    output,
    project::Project,
    report::{Report, table},
};

/// What runs on the machine.
#[derive(Args, Clone, Debug)]
pub struct Job {
    /// Programs to run at the same time, by their names in the ramdisk
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "deflate")]
    pub program: Vec<String>,
    /// Events to count, separated by commas; without it, the program's own list
    #[arg(long, value_name = "LIST")]
    pub events: Option<String>,
    /// Length of a time slice, in cycles [default: 200000]
    #[arg(long, value_name = "CYCLES")]
    pub slice: Option<u64>,
    /// The share of the program's time that the engine may take before it lengthens slices, in
    /// percent [default: 2]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub budget: Option<f64>,
    /// Which groups of events get how many slices: planned, each its own share, or adaptive, more
    /// for the less certain [default: planned]
    #[arg(long, value_name = "KIND", value_parser = shares)]
    pub shares: Option<Shares>,
    /// Seed of every random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Processors to use
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=MAX_CPUS as i64))]
    pub cpus: u16,
    /// What programs may count, as perf_event_paranoid: 2, their own user mode and that of programs
    /// they loaded; 1, ring 0 too; 0, any program, and with counters of their own
    #[arg(long, value_name = "LEVEL", default_value_t = DEFAULT_PARANOID,
          value_parser = clap::value_parser!(u8).range(0..=i64::from(DEFAULT_PARANOID)))]
    pub paranoid: u8,
    /// How overflow interrupts come: fixed, as vectors, which wait while the kernel runs; nmi, at once
    #[arg(long, value_name = "HOW", default_value = "fixed", value_parser = delivery)]
    pub overflows: Delivery,
}

/// Options of `cargo xtask run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    job: Job,
    /// Whose PMU the machine shows
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// What executes the guest
    #[arg(long, value_enum, default_value_t)]
    accel: Accel,
    /// More options of the virtual PMU, such as series=FILE,every=1000000i (see qemu/README.md)
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',')]
    vpmu: Vec<String>,
    /// Say which event would be on which counter in which group, and boot nothing
    #[arg(long, conflicts_with = "trace")]
    explain: bool,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
    /// Write a record of every slice, threshold and sample to this file, for `cargo xtask trace`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Of the trace keep only each CPU's last 128 KiB, which go out when all programs have ended
    #[arg(long, requires = "trace")]
    trace_last: bool,
    /// Put a file of this machine into the ramdisk, under its own name: a static program, or what
    /// it reads
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// A program in the ramdisk and its arguments, instead of --program; --events counts around the
    /// whole of it. `stat -e EVENTS PROGRAM ARGUMENTS` counts as perf stat does
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<String>,
    /// Stop the machine after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = machine::DEFAULT_TIME_LIMIT.as_secs(),
          value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
}

impl Job {
    /// Fails at once on what the kernel could only refuse later.
    ///
    /// # Errors
    /// A name or list that the kernel's command line cannot hold, or a slice out of range.
    pub fn check(&self) -> Result<()> {
        let words = self.program.iter().chain(&self.events);
        for word in words {
            if word.is_empty() || word.starts_with('-') || word.contains(char::is_whitespace) {
                let why = format!("'{word}' is no name: it is empty, has blanks, or begins with -");
                return Err(Failure::new(ExitStatus::Usage, why));
            }
        }
        match self.slice {
            Some(slice) if !(MIN_SLICE..=MAX_SLICE).contains(&slice) => Err(Failure::new(
                ExitStatus::SliceOutOfRange,
                format!(
                    "a slice of {slice} cycles is out of range: choose {MIN_SLICE} to {MAX_SLICE}"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The kernel's options, with `options` beside the job's own.
    fn options(&self, options: &str) -> String {
        let mut line = format!("seed={} cpus={}", self.seed, self.cpus);
        if self.paranoid != DEFAULT_PARANOID {
            line += &format!(" paranoid={}", self.paranoid);
        }
        if self.overflows == Delivery::Nmi {
            line += " overflows=nmi";
        }
        if !options.is_empty() {
            line += &format!(" {options}");
        }
        line
    }

    /// The kernel's command line for a program that need not know of Tally, with its arguments: the
    /// kernel itself counts around it.
    fn around(&self, options: &str, command: &[String]) -> Result<String> {
        if let Some(word) =
            command.iter().find(|word| word.is_empty() || word.contains(char::is_whitespace))
        {
            let why = format!("'{word}' is empty or has blanks, which no argument can have yet");
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        let mut line = self.options(options) + " --";
        if let Some(events) = &self.events {
            line += &format!(" events={events}");
        }
        if let Some(slice) = self.slice {
            line += &format!(" slice={slice}");
        }
        if let Some(budget) = self.budget {
            line += &format!(" budget={}", (budget * 10_000.0) as u32);
        }
        if let Some(shares) = self.shares {
            line += &format!(" shares={}", shares.word());
        }
        // Short for the program that does it. Two dashes alone would end its arguments here.
        let stat = command.first().is_some_and(|word| word == "stat" || word == "record");
        let tally = stat.then_some("tally");
        let words = command.iter().map(String::as_str).filter(|word| !(stat && *word == "--"));
        tally.into_iter().chain(words).for_each(|word| line += &format!(" {word}"));
        Ok(line)
    }

    /// The kernel's command line, with `options` beside the job's own.
    pub fn command_line(&self, options: &str) -> String {
        let mut line = self.options(options);
        for program in &self.program {
            line += &format!(" -- {program}");
            if let Some(events) = &self.events {
                line += &format!(" --events {events}");
            }
            if let Some(slice) = self.slice {
                line += &format!(" --slice {slice}");
            }
            if let Some(budget) = self.budget {
                line += &format!(" --budget {budget}");
            }
            if let Some(shares) = self.shares {
                line += &format!(" --shares {}", shares.word());
            }
        }
        line
    }
}

/// Does the task.
///
/// # Errors
/// The machine cannot be built or started. However it ends otherwise is in the status.
pub fn main(project: &Project, args: &RunArgs) -> Result<u8> {
    args.job.check()?;
    args.accel.check()?;
    if args.explain {
        return explained(args);
    }
    let mut trace = args.trace.as_deref().map(create).transpose()?;
    let options = match (&trace, args.trace_last) {
        (None, _) => "wire",
        (Some(_), false) => "wire trace",
        (Some(_), true) => "wire trace=last",
    };
    let line = match &*args.command {
        [] => args.job.command_line(options),
        command => args.job.around(options, command)?,
    };
    let artefacts = Artefacts::make_with(project, &args.file)?;
    let request = Request {
        pmu: args.pmu,
        accel: args.accel,
        cpus: args.job.cpus.into(),
        time_limit: Duration::from_secs(args.time_limit),
        vpmu: args.vpmu.clone(),
        ..Request::new(line)
    };
    let mut boot = machine::boot_with_progress(&artefacts, &request, &mut |output| {
        // Somebody who closes our standard error wants no output.
        let _ = io::stderr().write_all(&output.bytes);
    })?;
    let folder = boot.folder.keep().to_owned();
    machine::keep_newest(project);
    if let (Some(file), Some(path)) = (&mut trace, &args.trace) {
        let written = file.write_all(&boot.transcript.trace);
        written.map_err(|error| Failure::io("write", path, &error))?;
        if let Some(bad) = boot.transcript.bad_trace {
            eprintln!("xtask: {}: {bad}", path.display());
        }
    }
    show(&boot, args.json, &folder)
}

/// The plan alone.
fn explained(args: &RunArgs) -> Result<u8> {
    if args.accel == Accel::Kvm {
        let why = "--explain is of the virtual PMU's machines; of a run with KVM the kernel's log tells \
                   the plan";
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    let shown = machine::shown(args.pmu, &args.vpmu)?;
    let asked = Asked::of(&args.job, &args.command, shown.profile().signature)?;
    explain::main(&explain::detect(&shown)?, &asked, args.json)
}

fn percent(text: &str) -> std::result::Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let in_range = (0.0001..=100.0).contains(&percent);
    in_range.then_some(percent).ok_or_else(|| "not within 0.0001 to 100".to_owned())
}

fn shares(word: &str) -> std::result::Result<Shares, String> {
    Shares::parse(word).ok_or_else(|| "neither planned nor adaptive".to_owned())
}

fn delivery(word: &str) -> std::result::Result<Delivery, String> {
    Delivery::parse(word).ok_or_else(|| "neither fixed nor nmi".to_owned())
}

fn create(path: &Path) -> Result<File> {
    File::create(path).map_err(|error| Failure::io("write", path, &error))
}

fn show(boot: &Boot, json: bool, folder: &Path) -> Result<u8> {
    let report = Report::of(boot);
    output::print(json, &report, &table::render(&report))?;
    for ring in boot.transcript.rings.iter().filter(|ring| ring.lost > 0) {
        eprintln!("xtask: CPU {}: {} of {} trace records lost", ring.cpu, ring.lost, ring.written);
    }
    // A program that ends with a status of its own has said why itself.
    if !matches!(boot.outcome, Outcome::Done(_)) {
        eprintln!("xtask: {}", boot.outcome);
        eprintln!("xtask: the kernel's log is in {}", folder.display());
    }
    Ok(boot.outcome.status())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_abi::boot::{CommandLine, Program, Tracing};

    fn job() -> Job {
        let program = vec!["deflate".into(), "spin".into()];
        Job {
            paranoid: DEFAULT_PARANOID,
            overflows: Delivery::Fixed,
            program,
            events: Some("A,B".into()),
            slice: Some(MIN_SLICE),
            budget: Some(0.5),
            shares: Some(Shares::Adaptive),
            seed: 7,
            cpus: 2,
        }
    }

    #[test]
    fn the_kernel_reads_what_we_write() {
        let text = job().command_line("wire trace");
        let line = CommandLine::parse(&text).unwrap();
        assert_eq!(
            (line.seed, line.cpus, line.wire, line.trace),
            (7, 2, true, Some(Tracing::Stream))
        );
        let words = |program: Program<'_>| program.words.map(str::to_owned).collect::<Vec<_>>();
        let programs: Vec<_> = line.programs().map(|program| words(program.unwrap())).collect();
        assert_eq!(
            programs[0],
            "deflate --events A,B --slice 5000 --budget 0.5 --shares adaptive"
                .split(' ')
                .collect::<Vec<_>>()
        );
        assert_eq!(programs[1][0], "spin");
    }

    #[test]
    fn the_kernel_counts_around_what_does_not_know_of_it() {
        let command = ["prog", "-x", "y"].map(str::to_owned);
        let text = job().around("wire", &command).unwrap();
        let line = CommandLine::parse(&text).unwrap();
        let program = line.programs().next().unwrap().unwrap();
        assert_eq!(program.words.collect::<Vec<_>>(), ["prog", "-x", "y"]);
        let (events, config) = program.measure.unwrap();
        assert_eq!((events, config.slice.length(), config.budget_ppm), ("A,B", MIN_SLICE, 5_000));
        assert_eq!(config.shares, Shares::Adaptive);
        assert_eq!(job().around("", &["a b".into()]).unwrap_err().status, ExitStatus::Usage);
    }

    #[test]
    fn bad_jobs_are_refused_before_anything_is_built() {
        assert_eq!(job().check(), Ok(()));
        let status = |job: Job| job.check().unwrap_err().status;
        assert_eq!(status(Job { slice: Some(0), ..job() }), ExitStatus::SliceOutOfRange);
        assert_eq!(status(Job { events: Some("A B".into()), ..job() }), ExitStatus::Usage);
        assert_eq!(status(Job { program: vec!["--".into()], ..job() }), ExitStatus::Usage);
    }
}
