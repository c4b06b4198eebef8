//! The programs of a run, how they are counted, and the kernel's command line for them.

mod values;

use clap::{Args, FromArgMatches};
use tally_abi::{
    ExitStatus, PhaseConfig, SessionConfig, Shares, Slice,
    boot::{DEFAULT_PARANOID, Delivery, MAX_CPUS, Takeover},
    check, events,
    program::MAX_ARGUMENT_BYTES,
    session::{MAX_SLICE, MIN_SLICE},
    words::escape,
};

use self::values::{delivery, percent, ppm, shares, takeover};
pub(crate) use self::values::{level, trace_events};
pub use self::values::{slice, slice_option};
use crate::{
    Failure, Result,
    build::PROGRAM_NAMES,
    program_words::{kernel_words, programs, tally},
};

/// The programs of a run and how they are counted.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct Job {
    /// Programs of the ramdisk to run at the same time
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "deflate")]
    pub program: Vec<String>,
    /// Check the machine's counters and events, on every CPU, and print a report of it, in place of
    /// running programs
    #[arg(long, conflicts_with_all = ["program", "events", "slice", "budget", "shares", "unit",
                                "env"])]
    pub check: bool,
    /// Events to count, separated by commas; without it, the program's own list
    #[arg(long, value_name = "LIST")]
    pub events: Option<String>,
    /// Events to count, without `events`, of programs that are not Tally's own, until they open a
    /// session themselves.
    #[arg(skip)]
    pub default: Option<String>,
    /// How the phases of the session around a command are tracked.
    #[arg(skip)]
    pub phases: Option<PhaseConfig>,
    /// Length of a time slice in cycles, in instructions with an i behind their number as 50000i,
    /// or auto: the shortest that keeps the budget [default: auto]
    #[arg(long, value_name = "CYCLES", value_parser = slice_option)]
    pub slice: Option<Slice>,
    /// Share of the program's time that the engine may take, in percent, before it lengthens
    /// slices; 100 for no limit [default: 2]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub budget: Option<f64>,
    /// Slices of each event group per round: planned, a fixed share, or adaptive, more for groups
    /// with larger errors [default: planned]
    #[arg(long, value_name = "KIND", value_parser = shares)]
    pub shares: Option<Shares>,
    /// Also count the events on the counter unit of paper 002, which only the virtual PMU has: all
    /// of them all the time, beside the estimates
    #[arg(long)]
    pub unit: bool,
    /// Add NAME=VALUE to the environment of the programs, which is empty otherwise; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub env: Vec<String>,
    /// Let the programs have memory that is writable and executable at once, as compilers at run
    /// time and code on the stack need
    #[arg(long)]
    pub jit: bool,
    /// The file in the ramdisk that is the standard input of the programs.
    #[arg(skip)]
    pub stdin: Option<String>,
    /// Seed of every random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of CPUs
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=MAX_CPUS as i64))]
    pub cpus: u16,
    /// Rights of programs to count, as perf_event_paranoid: 2, user mode of themselves and of
    /// programs that they load; 1, ring 0 too; 0, every program, and in direct mode
    #[arg(long, value_name = "LEVEL", default_value_t = DEFAULT_PARANOID,
          value_parser = clap::value_parser!(u8).range(0..=i64::from(DEFAULT_PARANOID)))]
    pub paranoid: u8,
    /// Delivery of PMIs: fixed, as an interrupt vector, which is pending while the kernel runs;
    /// nmi, as NMI, also while the kernel runs
    #[arg(long, value_name = "HOW", default_value = "fixed", value_parser = delivery)]
    pub overflows: Delivery,
    /// Action on a counter that firmware left on: take it over, with a warning; or refuse to count
    #[arg(long, value_name = "HOW", default_value = "take", value_parser = takeover)]
    pub left_on: Takeover,
}

/// The job of a command line without options.
impl Default for Job {
    fn default() -> Self {
        let mut parsed = Job::augment_args(clap::Command::new("job")).get_matches_from(["job"]);
        Job::from_arg_matches_mut(&mut parsed).expect("every option has a default or is optional")
    }
}

impl Job {
    /// Checks the options before anything is built.
    ///
    /// # Errors
    /// A name or list is not possible on the kernel's command line, the list of events is empty, or
    /// the slice is out of range.
    pub fn check(&self) -> Result<()> {
        if self.events.as_ref().is_some_and(|list| events::words(list).next().is_none()) {
            let why = "--events names no event: name one, or omit the option";
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        let words = self.program.iter().chain(&self.events);
        for word in words {
            if word.is_empty() || word.starts_with('-') || word.contains(char::is_whitespace) {
                let why =
                    format!("'{word}' cannot be a name: it is empty, has blanks, or begins with -");
                return Err(Failure::new(ExitStatus::Usage, why));
            }
        }
        let (length, unit) = match self.slice {
            Some(Slice::Cycles(cycles)) => (cycles, "cycles"),
            Some(Slice::Instructions(instructions)) => (instructions, "instructions"),
            Some(Slice::Auto) | None => return Ok(()),
        };
        if (MIN_SLICE..=MAX_SLICE).contains(&length) {
            return Ok(());
        }
        Err(Failure::new(
            ExitStatus::SliceOutOfRange,
            format!("slice of {length} {unit} is out of range: use {MIN_SLICE} to {MAX_SLICE}"),
        ))
    }

    /// The kernel's options: the job's, then `options`. The number of CPUs is not among them,
    /// because the kernel starts all CPUs of the machine.
    pub fn options(&self, options: &str) -> String {
        let mut line = format!("seed={}", self.seed);
        // A check counts in direct mode.
        let paranoid = if self.check { 0 } else { self.paranoid };
        if paranoid != DEFAULT_PARANOID {
            line += &format!(" paranoid={paranoid}");
        }
        if self.overflows == Delivery::Nmi {
            line += " overflows=nmi";
        }
        if self.left_on == Takeover::Refuse {
            line += " pmu=refuse";
        }
        if !options.is_empty() {
            line += &format!(" {options}");
        }
        if self.check {
            // Of two equal options the last one counts.
            line += " check-counters=report";
        }
        line
    }

    /// The options of each program on the kernel's command line: its environment and its input.
    fn surroundings(&self) -> String {
        let environment = self.env.iter().map(|word| format!(" env={}", escape(word)));
        let input = self.stdin.iter().map(|name| format!(" stdin={}", escape(name)));
        let jit = self.jit.then(|| " jit=yes".to_owned());
        environment.chain(input).chain(jit).collect()
    }

    /// The configuration of the job's sessions.
    pub fn config(&self) -> SessionConfig {
        let default = SessionConfig::default();
        SessionConfig {
            slice: self.slice.unwrap_or_default(),
            budget_ppm: self.budget.map_or(default.budget_ppm, ppm),
            shares: self.shares.unwrap_or_default(),
            unit: self.unit,
            ..default
        }
    }

    /// The kernel's command line for `command`, programs with their arguments ([`programs`]): the
    /// kernel opens a session around each. If `command` is empty, the command line for the job's
    /// programs.
    ///
    /// # Errors
    /// A word is not possible on the kernel's command line, `stat` or `record` refuses its
    /// arguments, or an option would have no effect.
    pub fn around(&self, options: &str, command: &[String]) -> Result<String> {
        self.around_all(options, &programs(command))
    }

    /// The kernel's command line for the programs of a command, as [`Self::around`].
    ///
    /// # Errors
    /// As [`Self::around`].
    pub fn around_all(&self, options: &str, programs: &[Vec<String>]) -> Result<String> {
        Ok(self.options(options) + &self.words(programs)?)
    }

    /// The part of the kernel's command line for the programs of a command, or for the job's if
    /// there are none.
    ///
    /// # Errors
    /// As [`Self::around`].
    pub fn words(&self, programs: &[Vec<String>]) -> Result<String> {
        match programs {
            [] => Ok(self.own_words()),
            programs => programs.iter().map(|program| self.around_one(program)).collect(),
        }
    }

    /// Returns whether the options say how sessions count.
    fn is_configured(&self) -> bool {
        let is_sliced = self.slice.is_some() || self.budget.is_some() || self.shares.is_some();
        is_sliced || self.unit
    }

    /// The part of the kernel's command line for one program with its arguments.
    fn around_one(&self, command: &[String]) -> Result<String> {
        let Some(program) = command.first() else {
            let why = "a program is missing beside `--`, which separates programs";
            return Err(Failure::new(ExitStatus::Usage, why));
        };
        let words = kernel_words(command)?;
        self.check_length(program, &words)?;
        if tally(command).is_some() && (self.is_configured() || self.events.is_some()) {
            let why = format!(
                "--events, --slice, --budget, --shares and --unit have no effect on `{program}`: give it \
                 those that it has, as in `-- stat -e EVENTS --slice CYCLES PROGRAM`"
            );
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        let events = match (&self.events, &self.default) {
            (Some(events), _) => Some(("events", events)),
            (None, Some(default)) if counts_by_default(command) => Some(("default", default)),
            _ => None,
        };
        if events.is_none() && self.is_configured() {
            let why = format!(
                "--slice, --budget, --shares and --unit have no effect without --events: add --events, or \
                 give {program} options of its own"
            );
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        let mut line = " --".to_owned() + &self.surroundings();
        if let Some((option, events)) = events {
            line += &format!(" {option}={events}");
        }
        line += &self.of_session();
        words.iter().for_each(|word| line += &format!(" {}", escape(word)));
        Ok(line)
    }

    /// Checks that arguments and environment fit on a program's stack.
    fn check_length(&self, program: &str, words: &[String]) -> Result<()> {
        let all = words.iter().chain(&self.env);
        let bytes: usize = all.map(|word| word.len() + 1).sum();
        if bytes > MAX_ARGUMENT_BYTES {
            let why = format!(
                "{program}: {bytes} bytes of arguments and environment, {MAX_ARGUMENT_BYTES} at most: \
                 pass them in a file, by --file or --stdin"
            );
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        Ok(())
    }

    /// The kernel's options for the session around a program, each after a blank.
    fn of_session(&self) -> String {
        let slice = self.slice.map(|slice| format!(" slice={slice}"));
        let budget = self.budget.map(|budget| format!(" budget={}", ppm(budget)));
        let shares = self.shares.map(|shares| format!(" shares={}", shares.word()));
        let unit = self.unit.then(|| " unit=yes".to_owned());
        let phases = self.phases.map(|phases| format!(" phases={phases}"));
        [slice, budget, shares, unit, phases].into_iter().flatten().collect()
    }

    /// The kernel's command line for the job's programs, with `options` after the job's own.
    pub fn command_line(&self, options: &str) -> String {
        self.options(options) + &self.own_words()
    }

    /// The part of the kernel's command line for the job's programs.
    fn own_words(&self) -> String {
        if self.check {
            return format!(" -- {}", check::PROGRAM);
        }
        let mut line = String::new();
        for program in &self.program {
            line += &format!(" --{} {program}", self.surroundings());
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
            if self.unit {
                line += " --unit yes";
            }
        }
        line
    }
}

/// Returns whether the kernel counts the default events of these words: a program and its
/// arguments, unless it is one of Tally's own, which count themselves.
pub fn counts_by_default(words: &[String]) -> bool {
    let is_own = |name: &String| PROGRAM_NAMES.contains(&&**name);
    tally(words).is_none() && words.first().is_some_and(|name| !is_own(name))
}

fn variable(text: &str) -> std::result::Result<String, String> {
    let has_name = text.split_once('=').is_some_and(|(name, _)| !name.is_empty());
    has_name.then(|| text.to_owned()).ok_or_else(|| "use NAME=VALUE".to_owned())
}

#[cfg(test)]
mod tests;
