//! What `tally stat` is asked for.

use alloc::{format, string::String, vec::Vec};

use tally::{Mode, SessionConfig, Shares, Slice, session::NO_BUDGET_PPM};

/// Counted where nothing else is asked for, as `perf stat` does.
const DEFAULT_EVENTS: &str =
    "cycles,instructions,branches,branch-misses,cache-references,cache-misses";

/// The words after `stat`.
#[derive(Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    /// `-e LIST`, each.
    lists: Vec<&'a str>,
    /// How to count: `--slice CYCLES`, `--budget PERCENT`, `--shares planned|adaptive`,
    /// `--kernel` (ring 0 too).
    pub config: SessionConfig,
    /// The program and its arguments.
    pub program: Vec<&'a str>,
}

impl<'a> Stat<'a> {
    /// Parses words.
    ///
    /// # Errors
    /// A text that names the word that cannot be understood.
    pub fn parse(words: &[&'a str]) -> Result<Self, String> {
        let mut stat =
            Stat { lists: Vec::new(), config: SessionConfig::default(), program: Vec::new() };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word {
                "-e" | "--event" => stat.lists.push(value()?),
                "--slice" => stat.config.slice = Slice::Cycles(number(word, value()?)? as u64),
                "--budget" => {
                    let ppm = (number(word, value()?)? * 10_000.0) as u32;
                    if !(1..=NO_BUDGET_PPM).contains(&ppm) {
                        return Err(format!("{word} is more than 0 and at most 100"));
                    }
                    stat.config.budget_ppm = ppm;
                }
                "--shares" => {
                    let kind = value()?;
                    let shares = Shares::parse(kind);
                    stat.config.shares = shares.ok_or(format!("{word} cannot be {kind}"))?;
                }
                "--kernel" => stat.config.mode = Mode::Full,
                "--" => stat.program.extend(words.next()),
                _ if word.starts_with('-') => return Err(format!("unknown option {word}")),
                _ => stat.program.push(word),
            }
            if !stat.program.is_empty() {
                stat.program.extend(words);
                return Ok(stat);
            }
        }
        Err(String::from("name the program to run"))
    }

    /// The events, as one list.
    pub fn events(&self) -> String {
        match self.lists.is_empty() {
            true => DEFAULT_EVENTS.into(),
            false => self.lists.join(","),
        }
    }
}

fn number(word: &str, text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("{word} cannot be {text}"))
}
