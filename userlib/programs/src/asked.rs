//! What `tally` is asked for.

use alloc::{format, string::String, vec::Vec};

use tally::{
    Mode, SessionConfig, Shares, Slice,
    events::{DEFAULT_RECORD, DEFAULT_STAT},
    session::NO_BUDGET_PPM,
};

/// Events to a sample where nothing else is asked for.
const DEFAULT_PERIOD: u64 = 100_000;

/// The words after `stat` or `record`.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// `-e LIST`, each.
    lists: Vec<&'a str>,
    /// `-c PERIOD`, in events: `record` takes a sample each.
    pub period: u64,
    /// How to count: `--slice CYCLES`, `--budget PERCENT`, `--shares planned|adaptive`,
    /// `--kernel` (ring 0 too).
    pub config: SessionConfig,
    /// The program and its arguments.
    pub program: Vec<&'a str>,
}

impl<'a> Asked<'a> {
    /// Parses words.
    ///
    /// # Errors
    /// A text that names the word that cannot be understood.
    pub fn parse(words: &[&'a str]) -> Result<Self, String> {
        let mut asked = Asked {
            lists: Vec::new(),
            period: DEFAULT_PERIOD,
            config: SessionConfig::default(),
            program: Vec::new(),
        };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word {
                "-e" | "--event" => asked.lists.push(value()?),
                "-c" | "--count" => {
                    asked.period = number(word, value()?)? as u64;
                    if asked.period == 0 {
                        return Err(format!("{word} is at least 1"));
                    }
                }
                "--slice" => asked.config.slice = Slice::Cycles(number(word, value()?)? as u64),
                "--budget" => {
                    let ppm = (number(word, value()?)? * 10_000.0) as u32;
                    if !(1..=NO_BUDGET_PPM).contains(&ppm) {
                        return Err(format!("{word} is more than 0 and at most 100"));
                    }
                    asked.config.budget_ppm = ppm;
                }
                "--shares" => {
                    let kind = value()?;
                    let shares = Shares::parse(kind);
                    asked.config.shares = shares.ok_or(format!("{word} cannot be {kind}"))?;
                }
                "--kernel" => asked.config.mode = Mode::Full,
                "--" => asked.program.extend(words.next()),
                _ if word.starts_with('-') => return Err(format!("unknown option {word}")),
                _ => asked.program.push(word),
            }
            if !asked.program.is_empty() {
                asked.program.extend(words);
                return Ok(asked);
            }
        }
        Err(String::from("name the program to run"))
    }

    /// The events to count, as one list.
    pub fn events(&self) -> String {
        match self.lists.is_empty() {
            true => DEFAULT_STAT.into(),
            false => self.lists.join(","),
        }
    }

    /// The events of which the first is sampled; the others are in the records of a trace.
    pub fn sampled(&self) -> String {
        match self.lists.is_empty() {
            true => DEFAULT_RECORD.into(),
            false => self.lists.join(","),
        }
    }
}

fn number(word: &str, text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("{word} cannot be {text}"))
}
