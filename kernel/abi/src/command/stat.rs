//! The options that only `tally stat` has: how it runs the program, and what it prints and where.

use alloc::{format, string::String, vec::Vec};

use crate::CpuSet;

/// The shortest wait of a program for another one, in milliseconds: a tick of the scheduler.
const TICK_MS: u64 = 10;

/// The options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatOptions<'a> {
    /// `-r N`: number of runs of the program, at least one.
    pub repeat: u32,
    /// `-I MS`: the length of the intervals whose counts are printed.
    pub interval_ms: Option<u64>,
    /// `--timeout MS`: the time after which the program is ended.
    pub timeout_ms: Option<u64>,
    /// `-o FILE`: output file instead of standard output.
    pub output: Option<&'a str>,
    /// `--append`: appends to that file.
    pub appends: bool,
    /// `-x SEPARATOR`: print fields with this text between them, and nothing else.
    pub separator: Option<&'a str>,
    /// `-j`: print JSON objects, and nothing else.
    pub is_json: bool,
    /// `-v`: print what is counted before the program runs.
    pub is_verbose: bool,
    /// `-a`, `-C LIST`: the CPUs to count instead of the program; the empty set for all.
    pub cpus: Option<CpuSet>,
    /// The list of `-C LIST`.
    pub cpu_list: Option<&'a str>,
    /// `-A`: print each CPU separately.
    pub is_each_cpu: bool,
    /// The lists of all `-M LIST`: metrics by perf's names, or groups of them.
    pub metrics: Vec<&'a str>,
    /// `--topdown`: print the metrics of a level, and only metrics if no event is named.
    pub is_topdown: bool,
    /// `--td-level N`: the level of `--topdown`.
    pub level: u8,
    /// `--breakdown`: print where the cycles went, and only that if no event is named.
    pub is_breakdown: bool,
}

impl Default for StatOptions<'_> {
    fn default() -> Self {
        StatOptions {
            repeat: 1,
            interval_ms: None,
            timeout_ms: None,
            output: None,
            appends: false,
            separator: None,
            is_json: false,
            is_verbose: false,
            cpus: None,
            cpu_list: None,
            is_each_cpu: false,
            metrics: Vec::new(),
            is_topdown: false,
            level: 1,
            is_breakdown: false,
        }
    }
}

impl<'a> StatOptions<'a> {
    /// Sets an option by its long form; `word` is the form as the user wrote it.
    pub(super) fn set(&mut self, long: &str, word: &str, value: &'a str) -> Result<(), String> {
        match long {
            "--repeat" => self.repeat = at_least(1, word, value)?.try_into().unwrap_or(u32::MAX),
            "--interval-print" => self.interval_ms = Some(at_least(TICK_MS, word, value)?),
            "--timeout" => self.timeout_ms = Some(at_least(TICK_MS, word, value)?),
            "--output" => self.output = Some(value).filter(|file| *file != "-"),
            "--append" => self.appends = true,
            "--field-separator" => self.separator = Some(value),
            "--json-output" => self.is_json = true,
            "--verbose" => self.is_verbose = true,
            "--all-cpus" => self.cpus = self.cpus.or(Some(CpuSet::default())),
            "--cpu" => {
                (self.cpus, self.cpu_list) = (Some(cpus(word, value)?), Some(value));
            }
            "--no-aggr" => self.is_each_cpu = true,
            "--metrics" => self.metrics.push(value),
            "--topdown" => self.is_topdown = true,
            "--td-level" => {
                self.level = at_least(1, word, value)?.try_into().unwrap_or(u8::MAX);
            }
            "--breakdown" => self.is_breakdown = true,
            _ => return Err(format!("unknown option {word}")),
        }
        Ok(())
    }

    /// Returns whether `stat` prints the names of the processor's metrics, and runs nothing.
    pub fn lists_metrics(&self) -> bool {
        self.metrics.contains(&"list")
    }

    /// Returns whether `stat` computes values from the counts: metrics or a breakdown.
    pub fn computes(&self) -> bool {
        !self.metrics.is_empty() || self.is_topdown || self.is_breakdown
    }

    /// Refuses options that contradict each other.
    pub(super) fn check(&self) -> Result<(), String> {
        let wrong = match self {
            StatOptions { separator: Some(_), is_json: true, .. } => {
                "-x and -j print the same in two ways: give one of them"
            }
            StatOptions { appends: true, output: None, .. } => {
                "--append adds to the file of -o: name it with -o FILE"
            }
            StatOptions { is_each_cpu: true, cpus: None, .. } => {
                "-A prints each CPU apart: name these with -a or -C LIST"
            }
            StatOptions { is_each_cpu: true, repeat: 2.., .. } => {
                "-A -r: the means of runs are of all CPUs together: leave out one of them"
            }
            StatOptions { is_each_cpu: true, .. } if self.computes() => {
                "-A: metrics are of all CPUs together: leave out one of them"
            }
            StatOptions { level: 2.., is_topdown: false, .. } => {
                "--td-level is the level of --topdown: give that too"
            }
            StatOptions { is_breakdown: true, separator: Some(_), .. } => {
                "--breakdown is a table, not fields: leave out -x, or print objects with -j"
            }
            StatOptions { is_breakdown: true, interval_ms: Some(_), .. } => {
                "--breakdown is of whole runs: use `cargo xtask run --breakdown --over-time` for \
                 where the cycles go over time"
            }
            _ => return Ok(()),
        };
        Err(wrong.into())
    }
}

/// Parses a set of CPUs.
fn cpus(word: &str, value: &str) -> Result<CpuSet, String> {
    let wrong = || format!("{word} cannot be {value}: it is a list of CPUs, such as 0,2-3");
    CpuSet::parse(value).ok_or_else(wrong)
}

fn at_least(least: u64, word: &str, value: &str) -> Result<u64, String> {
    match value.parse() {
        Ok(number) if number >= least => Ok(number),
        Ok(_) => Err(format!("{word} is at least {least}")),
        Err(_) => Err(format!("{word} cannot be {value}")),
    }
}
