//! Options of the measuring programs.

use alloc::{format, string::String};

use tally::{Shares, Slice, session::NO_BUDGET_PPM};

/// Parsed options.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ProgramOptions<'a> {
    /// `--events LIST`.
    pub events: Option<&'a str>,
    /// `--slice CYCLES`, or `auto`.
    pub slice: Option<Slice>,
    /// `--budget PERCENT` of the program's time for the engine, in parts per million.
    pub budget_ppm: Option<u32>,
    /// `--shares planned|adaptive|paired`.
    pub shares: Option<Shares>,
    /// `--unit yes`: counts on the counter unit too.
    pub unit: bool,
    /// `--file PATH`.
    pub file: Option<&'a str>,
    /// `--level N`, 0 (store) to 10 (smallest).
    pub level: Option<u8>,
    /// `--kib N`: the KiB of the text that it takes.
    pub kib: Option<usize>,
}

impl<'a> ProgramOptions<'a> {
    /// Parses arguments.
    ///
    /// # Errors
    /// The message names the argument that is not valid.
    pub fn parse(mut words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut options = ProgramOptions::default();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            let unreadable = || format!("{word} cannot be {value}");
            match word {
                "--events" => options.events = Some(value),
                "--unit" => {
                    options.unit = (value == "yes").then_some(true).ok_or_else(unreadable)?;
                }
                "--file" => options.file = Some(value),
                "--slice" => options.slice = Some(Slice::parse(value).ok_or_else(unreadable)?),
                "--budget" => {
                    let percent: f64 = value.parse().map_err(|_| unreadable())?;
                    let ppm = (percent * 10_000.0) as u32;
                    let fits = (1..=NO_BUDGET_PPM).contains(&ppm);
                    options.budget_ppm = Some(fits.then_some(ppm).ok_or_else(unreadable)?);
                }
                "--shares" => {
                    options.shares = Some(Shares::parse(value).ok_or_else(unreadable)?);
                }
                "--level" => {
                    let level = value.parse().ok().filter(|level| *level <= 10);
                    options.level = Some(level.ok_or_else(unreadable)?);
                }
                "--kib" => options.kib = Some(value.parse().map_err(|_| unreadable())?),
                _ => return Err(format!("unknown option {word}")),
            }
        }
        Ok(options)
    }
}
