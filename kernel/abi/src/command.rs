//! The command line of `tally stat` and `tally record`, in perf's syntax. The program `tally`
//! parses it. The host parses it too, before the boot: to refuse what the program would refuse, and
//! to explain what the program would count.

mod options;
mod software;
mod stat;
mod verb;

pub use self::{
    software::{SOFTWARE, Software, Source},
    stat::StatOptions,
    verb::Verb,
};

use alloc::{format, string::String, vec::Vec};

use crate::{
    Mode, Scope, SessionConfig, Shares, Slice,
    branches::BranchFilter,
    events::{DATA_RECORD, DEFAULT_RECORD, DEFAULT_STAT, DETAILED_STAT, words},
    session::{MAX_SAMPLE_HZ, NO_BUDGET_PPM},
    trace::MAX_STACK_BYTES,
};

/// The default period, in events.
const DEFAULT_PERIOD: u64 = 100_000;

/// Default rate of `record -d`, a second: stores are many times as frequent as slow loads.
const DATA_HZ: u64 = 20_000;
/// Default period of `record --breakdown`, in cycles, whether they retire instructions or are lost.
const BREAKDOWN_PERIOD: u64 = 10_000;
/// Default budget of `record --breakdown` and `-d`: distinguishing functions needs many samples, of
/// some thousand cycles each.
const SAMPLES_BUDGET_PPM: u32 = 100_000;
/// Default slice of `record --breakdown`, in cycles: `auto` would mistake the samples' cost for
/// that of group switches.
const BREAKDOWN_SLICE: Slice = Slice::Cycles(50_000);

/// Bytes of the stack that `record -g` records with a sample: enough for some dozens of callers.
const DEFAULT_STACK_BYTES: u64 = 4096;
/// Filter of `record --call-graph lbr`.
const CALL_STACK: BranchFilter = BranchFilter::STACK.in_rings(true, false);
/// Ways to callers other than `--call-graph lbr`.
const STACKS: &str = "record -g keeps the stack, by which callers are found in either way: choose \
    with `cargo xtask report --call-graph dwarf|fp`";
/// Bytes of a word of the stack.
const WORD_BYTES: u64 = 8;

/// Software events that `tally stat` prints by default before [`DEFAULT_STAT`], as `perf stat`
/// does.
pub const DEFAULT_SOFTWARE: &str = "context-switches,cpu-migrations,page-faults,task-clock";

/// `stat [-e LIST]… [OPTIONS] [--] PROGRAM ARGUMENTS`, or `record [-e LIST] [-c PERIOD] …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The first word.
    pub verb: Verb,
    /// The lists of all `-e LIST` and `--event=LIST`.
    lists: Vec<&'a str>,
    /// `-d`: count also the data cache's events, with `stat`.
    is_detailed: bool,
    /// The events that the session counts, as a list; empty if it counts nothing.
    counted: String,
    /// Every event of `stat` in order, with the source of its value.
    pub columns: Vec<(String, Source)>,
    /// The options that only `stat` has.
    pub stat: StatOptions<'a>,
    /// `-c PERIOD`: events between two samples of `record`, at least 1.
    pub period: u64,
    /// `-F HZ` of `record`: samples of each event in a second, instead of a period; 0 without the
    /// option.
    pub hz: u64,
    /// `-g`, or `--stack BYTES`, of `record`: bytes of the stack that are recorded with each
    /// sample; 0 without these options.
    pub stack_bytes: u64,
    /// `-b`, or `-j FILTER`, of `record`: branches that are recorded with each sample.
    pub branches: BranchFilter,
    /// `--breakdown` of `record`: samples the events that show where the cycles go.
    pub samples_breakdown: bool,
    /// `-d` of `record`: samples loads and stores.
    samples_data: bool,
    /// The session's configuration: `--slice CYCLES`, `--budget PERCENT`, `--shares
    /// planned|adaptive|paired`, `--kernel` (ring 0 too).
    pub config: SessionConfig,
    /// The program and its arguments: the rest of the words.
    pub program: Vec<&'a str>,
}

impl<'a> Command<'a> {
    /// Parses the words after `tally`.
    ///
    /// # Errors
    /// A message that names the wrong word; with `--help` the text of [`help`].
    pub fn parse(words: &[&'a str]) -> Result<Self, String> {
        let mut words = words.iter().copied();
        let mut command = Command {
            verb: words.next().and_then(Verb::parse).ok_or_else(usage)?,
            lists: Vec::new(),
            is_detailed: false,
            counted: String::new(),
            columns: Vec::new(),
            stat: StatOptions::default(),
            period: DEFAULT_PERIOD,
            hz: 0,
            stack_bytes: 0,
            branches: BranchFilter::default(),
            samples_breakdown: false,
            samples_data: false,
            config: SessionConfig::default(),
            program: Vec::new(),
        };
        while let Some(word) = words.next() {
            match word {
                "--" => command.program.extend(words.next()),
                _ if word.starts_with('-') => {
                    let (long, value) = option(command.verb, word, &mut words)?;
                    command.set(long, split(word).0, value)?;
                }
                _ => command.program.push(word),
            }
            if !command.program.is_empty() {
                command.program.extend(words);
                return command.checked();
            }
        }
        if command.stat.lists_metrics() {
            return Ok(command);
        }
        Err(String::from("name the program to run"))
    }

    /// Checks options that depend on each other, and finds the events.
    fn checked(mut self) -> Result<Self, String> {
        if !self.lists.is_empty() && words(&self.lists.join(",")).next().is_none() {
            return Err("-e names no event: name one, or omit the option".into());
        }
        if self.hz > 0 && ![DEFAULT_PERIOD, BREAKDOWN_PERIOD].contains(&self.period) {
            return Err("-F is a rate and -c a period: give one of them".into());
        }
        let list = self.list();
        if self.verb == Verb::Record {
            if self.branches.has(BranchFilter::KERNEL) && !self.config.mode.kernel() {
                return Err("-j k records branches to ring 0, which --kernel counts: add it".into());
            }
            if self.samples_breakdown && !self.lists.is_empty() {
                return Err("--breakdown samples events of its own: leave out -e and -d".into());
            }
            if self.samples_data {
                self.set_rate_of_data();
            }
            self.counted = list;
            return Ok(self);
        }
        self.stat.check()?;
        if self.stat.cpus.is_some() {
            if self.config.scope == Scope::Threads {
                return Err(
                    "--per-thread counts the program, -a and -C whole CPUs: give one".into()
                );
            }
            self.config.scope = Scope::Cpus;
        }
        if self.config.scope == Scope::Threads && self.stat.repeat > 1 {
            return Err("--per-thread -r: each run has other threads: leave out -r".into());
        }
        if self.config.scope == Scope::Threads && self.stat.computes() {
            return Err(
                "--per-thread: metrics are of the whole program: leave out one of them".into()
            );
        }
        self.count(&list)?;
        Ok(self)
    }

    /// Sets the rate and the budget of `-d`, unless others were given.
    fn set_rate_of_data(&mut self) {
        if self.hz == 0 && self.period == DEFAULT_PERIOD {
            self.hz = DATA_HZ;
        }
        if self.config.budget_ppm == SessionConfig::default().budget_ppm {
            self.config.budget_ppm = SAMPLES_BUDGET_PPM;
        }
    }

    /// Sets `list` as the events that `stat` counts.
    fn count(&mut self, list: &str) -> Result<(), String> {
        (self.counted, self.columns) = software::split(list)?;
        Ok(())
    }

    /// Adds events to those that `stat` counts; an event that is already counted is not counted
    /// twice.
    ///
    /// # Errors
    /// See [`Command::parse`].
    pub fn count_too(&mut self, events: &[&str]) -> Result<(), String> {
        let is_new = |event: &&&str| self.columns.iter().all(|(name, _)| name != **event);
        let new: Vec<&str> = events.iter().filter(is_new).copied().collect();
        let list = self.list();
        let all: Vec<&str> = Some(&*list).filter(|list| !list.is_empty()).into_iter().collect();
        self.count(&[all, new].concat().join(","))
    }

    /// Sets the list of events to sample, replacing the default list of `record`.
    pub fn sample(&mut self, list: String) {
        self.counted = list;
    }

    /// Sets an option by its long form; `word` is the form as the user wrote it.
    fn set(&mut self, long: &str, word: &str, value: &'a str) -> Result<(), String> {
        match long {
            "--event" => self.lists.push(value),
            "--detailed" => self.is_detailed = true,
            "--kernel" => self.config.mode = Mode::Full,
            "--per-thread" => self.config.scope = Scope::Threads,
            "--slice" => {
                self.config.slice = match Slice::parse(value) {
                    Some(slice) if slice.length() == 0 => {
                        return Err(format!("{word} is at least 1"));
                    }
                    Some(slice) => slice,
                    None => Slice::Cycles(whole(word, value)?),
                };
            }
            "--budget" => {
                let ppm = (number(word, value)? * 10_000.0) as u32;
                if !(1..=NO_BUDGET_PPM).contains(&ppm) {
                    return Err(format!("{word} is more than 0 and at most 100"));
                }
                self.config.budget_ppm = ppm;
            }
            "--shares" => {
                self.config.shares =
                    Shares::parse(value).ok_or_else(|| format!("{word} cannot be {value}"))?;
            }
            "--help" => return Err(options::help(self.verb)),
            _ if self.verb == Verb::Record => return self.set_of_record(long, word, value),
            _ => return self.stat.set(long, word, value),
        }
        Ok(())
    }

    /// Samples for a breakdown, with defaults of its own.
    fn set_breakdown(&mut self) {
        self.samples_breakdown = true;
        let default = SessionConfig::default();
        if self.period == DEFAULT_PERIOD {
            self.period = BREAKDOWN_PERIOD;
        }
        if self.config.budget_ppm == default.budget_ppm {
            self.config.budget_ppm = SAMPLES_BUDGET_PPM;
        }
        if self.config.slice == default.slice {
            self.config.slice = BREAKDOWN_SLICE;
        }
    }

    /// Sets an option that only `record` has.
    fn set_of_record(&mut self, long: &str, word: &str, value: &str) -> Result<(), String> {
        match long {
            "--data" | "--weight" if self.samples_data => {}
            "--data" | "--weight" => {
                self.lists.push(DATA_RECORD);
                self.samples_data = true;
            }
            "--breakdown" => self.set_breakdown(),
            "--count" => {
                self.period = whole(word, value)?;
                if self.period == 0 {
                    return Err(format!("{word} is at least 1"));
                }
            }
            "--freq" => {
                self.hz = whole(word, value)?;
                if !(1..=MAX_SAMPLE_HZ).contains(&self.hz) {
                    return Err(format!("{word} is 1 to {MAX_SAMPLE_HZ} Hz"));
                }
            }
            "--stacks" => self.stack_bytes = DEFAULT_STACK_BYTES,
            "--call-graph" if value == "lbr" => self.branches = CALL_STACK,
            "--call-graph" => return Err(format!("{word} {value}: {STACKS}")),
            "--branch-any" => self.branches = BranchFilter::ANY,
            "--branch-filter" => self.branches = filter(word, value)?,
            _ => {
                self.stack_bytes = whole(word, value)?;
                if !(WORD_BYTES..=MAX_STACK_BYTES).contains(&self.stack_bytes) {
                    return Err(format!("{word} is {WORD_BYTES} to {MAX_STACK_BYTES} bytes"));
                }
            }
        }
        Ok(())
    }

    /// The events that the session counts, as one list; for `record` at most one event. Empty if
    /// `stat` prints only what the kernel counts.
    pub fn events(&self) -> &str {
        &self.counted
    }

    /// Returns whether the command needs the processor's events for a breakdown of lost cycles.
    pub fn asks_where_cycles_go(&self) -> bool {
        self.samples_breakdown || self.stat.computes()
    }

    /// Returns whether `stat` prints the events: not if only metrics computed from them were asked
    /// for.
    pub fn prints_events(&self) -> bool {
        let StatOptions { is_topdown, is_breakdown, metrics, .. } = &self.stat;
        !self.lists.is_empty() || !metrics.is_empty() || !(*is_topdown || *is_breakdown)
    }

    /// The events that were asked for, as one list.
    fn list(&self) -> String {
        let listed = match (self.lists.is_empty(), self.verb) {
            (false, _) => self.lists.join(","),
            (true, Verb::Stat) if self.stat.computes() => String::new(),
            (true, Verb::Stat) => format!("{DEFAULT_SOFTWARE},{DEFAULT_STAT}"),
            (true, Verb::Record) => DEFAULT_RECORD.into(),
        };
        if self.is_detailed { format!("{listed},{DETAILED_STAT}") } else { listed }
    }
}

/// Parses an option, whose value may be the next word: its long form and its value.
fn option<'a>(
    verb: Verb,
    word: &'a str,
    words: &mut impl Iterator<Item = &'a str>,
) -> Result<(&'static str, &'a str), String> {
    let (option, said) = split(word);
    match options::known(verb, option) {
        None => Err(options::unknown(verb, option)),
        Some((long, false)) if said.is_none() => Ok((long, "")),
        Some((_, false)) => Err(options::no_value(word, option)),
        Some((long, true)) => {
            let value = said.or_else(|| words.next());
            Ok((long, value.ok_or_else(|| format!("{word} needs a value"))?))
        }
    }
}

/// Returns whether the next word is the value of this option of `verb`; `None` if it has no such
/// option.
pub fn takes_next(verb: Verb, word: &str) -> Option<bool> {
    let (option, said) = split(word);
    options::known(verb, option).map(|(_, has_value)| has_value && said.is_none())
}

/// The help text, if these words ask for it.
pub fn help(words: &[&str]) -> Option<String> {
    let text = options::help(Verb::parse(words.first()?)?);
    (Command::parse(words).err()? == text).then_some(text)
}

/// Splits a word into an option and the value that may follow in the same word: `--event=LIST`,
/// `-x,`.
fn split(word: &str) -> (&str, Option<&str>) {
    if word.starts_with("--") {
        return word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
    }
    match word.split_at_checked(2) {
        Some((option, value)) if word.starts_with('-') && !value.is_empty() => {
            (option, Some(value))
        }
        _ => (word, None),
    }
}

fn usage() -> String {
    "use `tally stat [-e EVENTS] PROGRAM ARGUMENTS` or `tally record [-e EVENT] [-c PERIOD] …`"
        .into()
}

/// Parses the filter of `-j`.
fn filter(word: &str, text: &str) -> Result<BranchFilter, String> {
    BranchFilter::parse(text).map_err(|unknown| {
        let known: Vec<&str> = BranchFilter::WORDS.iter().map(|(name, _)| *name).collect();
        format!("{word} cannot have {unknown}: it has one or more of {}", known.join(","))
    })
}

fn number(word: &str, text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("{word} cannot be {text}"))
}

/// Parses a whole number, also in the form `1e6`.
fn whole(word: &str, text: &str) -> Result<u64, String> {
    const MOST: f64 = i64::MAX as f64;
    let number = number(word, text)?;
    let is_whole = number < MOST && (number as u64) as f64 == number;
    is_whole
        .then_some(number as u64)
        .ok_or_else(|| format!("{word} cannot be {text}: it is a whole number below 2^63"))
}

#[cfg(test)]
mod tests;
