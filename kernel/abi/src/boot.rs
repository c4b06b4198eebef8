//! The kernel's command line, and the ports through which it reaches its host.

mod log_level;
mod takeover;
mod tracing;

pub use log_level::LogLevel;
pub use takeover::Takeover;
pub use tracing::{MIN_HALTING_PAGES, TraceEvents, Tracing};

pub use crate::{
    failure::Failure,
    jobs::{Job, JobNumber},
    program::{BadOption, Program, Variables},
};
use crate::{
    halt::{HaltTimer, Halts},
    trace::RING_PAGES,
};

/// Name of the QEMU firmware-configuration file with the command line.
pub const FW_CFG_COMMAND_LINE: &str = "opt/tally/cmdline";
/// Name of the ramdisk's file with the command line, used if [`FW_CFG_COMMAND_LINE`] does not
/// exist.
pub const RAMDISK_COMMAND_LINE: &str = "cmdline";
/// I/O port of the UART (COM1) that carries the kernel's log.
pub const LOG_PORT: u16 = 0x3f8;
/// I/O port of the UART (COM2) that carries [`crate::wire`] messages if the command line has
/// `wire`.
pub const WIRE_PORT: u16 = 0x2f8;
/// I/O port of QEMU's `isa-debug-exit`: a byte `v` written here ends QEMU with status `2v + 1`.
pub const DEBUG_EXIT_PORT: u16 = 0xf4;
/// Address to which the boot loader maps address 0 of the kernel's ELF file, in every boot: the
/// start of the upper half.
pub const KERNEL_BASE: u64 = 0xffff_8000_0000_0000;
/// Default of [`CommandLine::paranoid`], the highest level.
pub const DEFAULT_PARANOID: u8 = 2;
/// The default of [`CommandLine::date`]: the beginning of 2026.
pub const DEFAULT_DATE: u64 = 1_767_225_600;
/// Maximum number of processors that the kernel starts.
pub const MAX_CPUS: usize = 1024;

/// The kernel's command line: options, then one program with its arguments after each `--`.
///
/// `seed=7 wire -- deflate --slice 100000 -- spin` runs two programs at the same time: a job. The
/// programs after a `---` are another job, which begins when the one before has ended. Words are
/// separated by white space and escaped ([`crate::words`]). `env=NAME=VALUE` before a program adds
/// to its environment, `jit=yes` permits it memory that is writable and executable, `stdin=PATH`
/// names the file that is its standard input. `events=LIST` before a program makes the kernel count
/// these events for the whole program, which needs no code for Tally; `default=LIST` until the
/// program opens a session itself. `slice=CYCLES`, `budget=PPM` and
/// `shares=planned|adaptive|paired` configure that session, and
/// `phases=INSTRUCTIONS,UNIT,CLASSES,PREDICTOR` ([`crate::PhaseConfig`]) makes the kernel track its
/// phases. `region=TAG` makes the virtual PMU count the truth of the whole program as the
/// region of this tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLine<'a> {
    /// Seed of every random order that the engine draws (`seed=N`, default 1).
    pub seed: u64,
    /// Whether messages for the host go to COM2 (`wire`); otherwise results go to the log.
    pub wire: bool,
    /// Number of times that all jobs run (`repeat=N`, default 1), each time with the next seed.
    pub repeat: u64,
    /// Destination of trace records (`trace`, `trace=halt`, `trace=last`); `None`: the kernel
    /// writes no records.
    pub trace: Option<Tracing>,
    /// Capacity of each CPU's ring in pages: the limit of pages with records that the host does not
    /// have yet (`trace-ring=PAGES`, 2 to [`RING_PAGES`]; with `trace=halt` [`MIN_HALTING_PAGES`]
    /// or more). A page is 2 KiB. Not with `trace=last`.
    pub trace_pages: Option<usize>,
    /// Maximum number of processors to start (`cpus=N`, default all up to [`MAX_CPUS`]).
    pub cpus: usize,
    /// Limit on what programs may count (`paranoid=N`), as Linux's `perf_event_paranoid`. 2, the
    /// default: ring 3 of themselves and of the programs that they loaded. 1: ring 0 too. 0: every
    /// program; also direct mode and the trace rings.
    pub paranoid: u8,
    /// Date at which the machine starts, in seconds since 1970 (`date=N`). The default is a
    /// constant, so that runs repeat.
    pub date: u64,
    /// Whether the kernel sends the files that programs created or changed to the host when all
    /// programs have ended (`send-files`).
    pub send_files: bool,
    /// Action on a CPU whose counters do not all count, which each CPU checks as it starts
    /// (`check-counters`, `check-counters=report`); `None`: no check.
    pub check_counters: Option<CounterCheck>,
    /// Action on a CPU with a counter that is on as the kernel starts (`pmu=take|refuse`).
    pub takeover: Takeover,
    /// Delivery of overflow interrupts (`overflows=fixed|nmi`).
    pub overflows: Delivery,
    /// The halts of programs (`halt=LENGTH,PERIOD,FOOTPRINT`), which take a general counter. Not
    /// with overflow interrupts as NMIs.
    pub halts: Option<Halts>,
    /// Behaviour of the scheduler's timer during halts (`halt-timer=running|held`). Valid only with
    /// `halt`.
    pub halt_timer: Option<HaltTimer>,
    /// Time for which each page of results is on the screen (`codes=MS`); `None`: results go to the
    /// screen only without a wire.
    pub codes_ms: Option<u32>,
    /// The least severe level of messages in the log (`log=error|warn|info|debug|trace`).
    pub log: LogLevel,
    /// Kinds of records in a trace in addition to slices, thresholds and samples: a list
    /// (`trace-events=syscalls,switches,signals`). Valid only with `trace`.
    pub trace_events: TraceEvents,
    /// Failure to cause, to test the reports of kernel and host
    /// (`fail=panic|fault|stack|nmi|machine-check|hang|pmu`).
    pub fail: Option<Failure>,
    programs: &'a str,
}

/// Action when a CPU's counters fail the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterCheck {
    /// Refuse to count on this machine.
    Refuse,
    /// Send each CPU's findings ([`crate::wire::Message::Checked`]) and the cost of register
    /// accesses, and count.
    Report,
}

/// Delivery mode of overflow interrupts (Intel SDM volume 3, "Local Vector Table").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// Fixed delivery, to a vector: in the kernel, the interrupt stays pending until the return to
    /// a program.
    #[default]
    Fixed,
    /// NMI delivery, which also interrupts code that runs with interrupts disabled.
    Nmi,
}

impl Delivery {
    /// Parses the value of `overflows` on the command line.
    pub fn parse(text: &str) -> Option<Delivery> {
        match text {
            "fixed" => Some(Delivery::Fixed),
            "nmi" => Some(Delivery::Nmi),
            _ => None,
        }
    }
}

impl<'a> CommandLine<'a> {
    /// Parses `text`.
    ///
    /// # Errors
    /// The first option that is unknown or has no readable value.
    pub fn parse(text: &'a str) -> Result<Self, BadOption<'a>> {
        let text = text.trim();
        let (options, programs) = match text.strip_prefix("-- ") {
            Some(programs) => ("", programs),
            None => text.split_once(" -- ").unwrap_or((text, "")),
        };
        let mut line = CommandLine {
            seed: 1,
            repeat: 1,
            wire: false,
            trace: None,
            trace_pages: None,
            cpus: MAX_CPUS,
            paranoid: DEFAULT_PARANOID,
            date: DEFAULT_DATE,
            send_files: false,
            check_counters: None,
            takeover: Takeover::Take,
            overflows: Delivery::Fixed,
            halts: None,
            halt_timer: None,
            codes_ms: None,
            log: LogLevel::default(),
            trace_events: TraceEvents::default(),
            fail: None,
            programs,
        };
        for option in options.split_ascii_whitespace() {
            line.set(option).ok_or(BadOption(option))?;
        }
        line.without_effect().map_or(Ok(line), |option| Err(BadOption(option)))
    }

    /// Returns the name of an option that has no effect with the others.
    fn without_effect(&self) -> Option<&'static str> {
        // Without a trace, no kind of records can be selected.
        if self.trace_events != TraceEvents::default() && self.trace.is_none() {
            return Some("trace-events");
        }
        if let Some(pages) = self.trace_pages
            && !self.trace.is_some_and(|tracing| tracing.can_have(pages))
        {
            return Some("trace-ring");
        }
        // An NMI can interrupt the kernel, and a halt must only interrupt a program.
        if self.halts.is_some() && self.overflows == Delivery::Nmi {
            return Some("halt");
        }
        (self.halt_timer.is_some() && self.halts.is_none()).then_some("halt-timer")
    }

    /// Sets an option. `None` if it is unknown or has no readable value.
    fn set(&mut self, option: &str) -> Option<()> {
        match option.split_once('=') {
            None if option == "wire" => self.wire = true,
            None if option == "send-files" => self.send_files = true,
            None if option == "check-counters" => self.check_counters = Some(CounterCheck::Refuse),
            Some(("check-counters", "report")) => {
                self.check_counters = Some(CounterCheck::Report);
            }
            None if option == "trace" => self.trace = Some(Tracing::Stream),
            Some(("trace", "last")) => self.trace = Some(Tracing::Last),
            Some(("trace", "halt")) => self.trace = Some(Tracing::Halt),
            Some(("trace-ring", pages)) => {
                let pages = pages.parse().ok().filter(|pages| (2..=RING_PAGES).contains(pages))?;
                self.trace_pages = Some(pages);
            }
            Some(("seed", n)) => self.seed = n.parse().ok()?,
            Some(("repeat", n)) => self.repeat = n.parse().ok().filter(|n| *n > 0)?,
            Some(("cpus", n)) => {
                self.cpus = n.parse().ok().filter(|cpus| (1..=MAX_CPUS).contains(cpus))?;
            }
            Some(("paranoid", level)) => {
                self.paranoid = level.parse().ok().filter(|level| *level <= DEFAULT_PARANOID)?;
            }
            Some(("date", seconds)) => self.date = seconds.parse().ok()?,
            Some(("pmu", action)) => self.takeover = Takeover::parse(action)?,
            Some(("overflows", how)) => self.overflows = Delivery::parse(how)?,
            Some(("halt", halts)) => self.halts = Some(Halts::parse(halts).ok()?),
            Some(("halt-timer", timer)) => self.halt_timer = Some(HaltTimer::parse(timer)?),
            Some(("codes", ms)) => self.codes_ms = Some(ms.parse().ok().filter(|ms| *ms > 0)?),
            Some(("log", level)) => self.log = LogLevel::parse(level)?,
            Some(("trace-events", list)) => self.trace_events = TraceEvents::parse(list)?,
            Some(("fail", failure)) => self.fail = Some(Failure::parse(failure)?),
            _ => return None,
        }
        Some(())
    }

    /// The jobs, at least one.
    pub fn jobs(&self) -> impl Iterator<Item = Job<'a>> + use<'a> {
        self.programs.split(" --- ").map(Job::new)
    }

    /// The programs of all jobs; see [`Job::programs`].
    pub fn programs(&self) -> impl Iterator<Item = Result<Program<'a>, BadOption<'a>>> + use<'a> {
        self.jobs().flat_map(|job| job.programs())
    }

    /// Job number `index` of all repetitions, and its seed; `None` after the last.
    pub fn job(&self, index: u64) -> Option<(JobNumber, Job<'a>)> {
        let jobs = self.jobs().count() as u64;
        let (repetition, job) = (index / jobs, index % jobs);
        let number = JobNumber { number: job as u32 + 1, seed: self.seed.wrapping_add(repetition) };
        let of_line = self.jobs().nth(job as usize)?;
        (repetition < self.repeat).then_some((number, of_line))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::{SessionConfig, Shares, Slice};
    use std::{vec, vec::Vec};

    fn programs(text: &str) -> Vec<Vec<&str>> {
        let line = CommandLine::parse(text).unwrap();
        line.programs().map(|program| program.unwrap().words.collect()).collect()
    }

    #[test]
    fn programs_can_be_measured_from_outside() {
        let line = "-- events=a,cpu/x=1/ slice=9 budget=7 shares=adaptive phases=9 p=1 k=v -- q";
        let line = CommandLine::parse(line).unwrap();
        let programs: Vec<_> = line.programs().map(Result::unwrap).collect();
        let config = SessionConfig {
            slice: Slice::Cycles(9),
            budget_ppm: 7,
            shares: Shares::Adaptive,
            ..SessionConfig::default()
        };
        let words = |program: &Program<'static>| program.words.clone().collect::<Vec<_>>();
        assert_eq!(programs[0].measure, Some(("a,cpu/x=1/", config)));
        assert_eq!(words(&programs[0]), ["p=1", "k=v"]);
        assert_eq!((programs[1].measure, words(&programs[1])), (None, vec!["q"]));
        let line = CommandLine::parse("-- default=a jit=yes p -- events=a q").unwrap();
        for (program, is_first) in line.programs().map(Result::unwrap).zip([true, false]) {
            assert_eq!((program.is_default, program.may_write_code), (is_first, is_first));
        }
        let line = CommandLine::parse("-- region=7 q").unwrap();
        let program = line.programs().next().unwrap().unwrap();
        assert_eq!((program.region, words(&program)), (Some(7), vec!["q"]));
        for bad in ["slice=x", "phases=0", "budget=0", "shares=all", "region=x"] {
            let text = std::format!("-- {bad} p");
            let line = CommandLine::parse(&text).unwrap();
            assert_eq!(line.programs().next().unwrap().unwrap_err(), BadOption(bad));
        }
    }

    #[test]
    fn programs_have_an_environment_an_input_and_words_with_blanks() {
        let text = "-- env=A=b\\sc env=D= stdin=/in\\sput prog a\\sb \\e env=no";
        let line = CommandLine::parse(text).unwrap();
        let program = line.programs().next().unwrap().unwrap();
        assert_eq!(program.environment.collect::<Vec<_>>(), ["A=b\\sc", "D="]);
        assert_eq!(program.input, Some("/in\\sput"));
        assert_eq!(program.words.collect::<Vec<_>>(), ["prog", "a\\sb", "\\e", "env=no"]);
    }

    #[test]
    fn options_then_programs() {
        let line = CommandLine::parse("seed=7 wire cpus=2 -- a --x 1 -- b").unwrap();
        assert_eq!((line.seed, line.wire, line.trace, line.cpus), (7, true, None, 2));
        let checks = |text| CommandLine::parse(text).map(|line| line.check_counters);
        assert_eq!(checks("check-counters"), Ok(Some(CounterCheck::Refuse)));
        assert_eq!(checks("check-counters=report"), Ok(Some(CounterCheck::Report)));
        assert_eq!(checks("check-counters=yes"), Err(BadOption("check-counters=yes")));
        assert!(CommandLine::parse("send-files").unwrap().send_files);
        let traces = |text| CommandLine::parse(text).map(|line| line.trace);
        assert_eq!(traces("trace"), Ok(Some(Tracing::Stream)));
        assert_eq!(traces("trace=last"), Ok(Some(Tracing::Last)));
        assert_eq!(traces("trace=halt"), Ok(Some(Tracing::Halt)));
        assert_eq!(traces("trace=first"), Err(BadOption("trace=first")));
        assert_eq!(programs("seed=7 -- a --x 1 -- b"), vec![vec!["a", "--x", "1"], vec!["b"]]);
        assert_eq!(programs("-- a"), vec![vec!["a"]]);
        assert_eq!(programs("seed=3"), Vec::<Vec<&str>>::new());
    }

    #[test]
    fn rings_have_room_for_what_is_written_before_a_cpu_can_wait() {
        let pages = |text| CommandLine::parse(text).map(|line| line.trace_pages);
        assert_eq!(pages("trace trace-ring=2"), Ok(Some(2)));
        assert_eq!(pages("trace=halt trace-ring=16"), Ok(Some(16)));
        for (text, option) in [
            ("trace trace-ring=1", "trace-ring=1"),
            ("trace trace-ring=65", "trace-ring=65"),
            ("trace=halt trace-ring=15", "trace-ring"),
            ("trace=last trace-ring=16", "trace-ring"),
            ("trace-ring=16", "trace-ring"),
        ] {
            assert_eq!(pages(text), Err(BadOption(option)), "{text}");
        }
    }

    #[test]
    fn levels_and_trace_events_have_names() {
        assert_eq!(CommandLine::parse("").map(|line| line.log), Ok(LogLevel::Info));
        for (name, level) in LogLevel::ALL {
            assert_eq!((LogLevel::parse(name), level.name()), (Some(level), name));
        }
        let line = CommandLine::parse("trace trace-events=syscalls,signals log=debug").unwrap();
        let events = TraceEvents { syscalls: true, switches: false, signals: true };
        assert_eq!((line.log, line.trace_events), (LogLevel::Debug, events));
        let without = CommandLine::parse("trace-events=signals");
        assert_eq!(without, Err(BadOption("trace-events")));
    }

    #[test]
    fn bad_options_are_named() {
        assert_eq!(CommandLine::parse("paranoid=0").map(|line| line.paranoid), Ok(0));
        let nmi = CommandLine::parse("overflows=nmi").map(|line| line.overflows);
        assert_eq!(nmi, Ok(Delivery::Nmi));
        let refuses = CommandLine::parse("pmu=refuse").map(|line| line.takeover);
        assert_eq!(refuses, Ok(Takeover::Refuse));
        let line = CommandLine::parse("halt=7,1000 halt-timer=held").unwrap();
        assert_eq!(line.halts.map(|halts| halts.length_cycles), Some(7));
        assert_eq!(line.halt_timer, Some(HaltTimer::Held));
        assert_eq!(CommandLine::parse("halt=7,1000 overflows=nmi"), Err(BadOption("halt")));
        assert_eq!(CommandLine::parse("halt-timer=held"), Err(BadOption("halt-timer")));
        for bad in [
            "paranoid=3",
            "paranoid=",
            "overflows=smi",
            "pmu=give",
            "halt=7",
            "halt-timer=off",
            "date=today",
            "codes=0",
            "repeat=0",
            "seed=x",
            "cpus=0",
            "cpus=1025",
            "colour",
            "seed",
            "fail=badly",
            "log=",
            "log=loud",
            "trace-events=",
            "trace-events=syscalls,",
        ] {
            assert_eq!(CommandLine::parse(bad), Err(BadOption(bad)));
        }
    }
}
