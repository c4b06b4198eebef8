//! A program on the kernel's command line: its options, name and arguments.

use core::str::SplitAsciiWhitespace;

use crate::{PhaseConfig, SessionConfig, Shares, Slice, session::NO_BUDGET_PPM};

/// An option that the kernel does not know, or whose value it cannot parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadOption<'a>(pub &'a str);

/// A program to run.
#[derive(Clone, Debug)]
pub struct Program<'a> {
    /// The events to count for the whole program, and the session's configuration.
    pub measure: Option<(&'a str, SessionConfig)>,
    /// Whether that session ends, without a report, when the program opens one itself.
    pub is_default: bool,
    /// Whether the program's memory may be writable and executable at once.
    pub may_write_code: bool,
    /// The configuration by which the session's phases are tracked, if they are.
    pub phases: Option<PhaseConfig>,
    /// Tag of the truth's region that contains the whole program.
    pub region: Option<u32>,
    /// The program's environment, `NAME=VALUE`, escaped.
    pub environment: Variables<'a>,
    /// Path of the file that is its standard input, escaped; without one the input is empty.
    pub input: Option<&'a str>,
    /// The program's name, then its arguments, escaped.
    pub words: SplitAsciiWhitespace<'a>,
}

/// The variables of a program's environment, escaped.
#[derive(Clone, Debug)]
pub struct Variables<'a>(SplitAsciiWhitespace<'a>);

impl<'a> Iterator for Variables<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        // The program's name, the first word that is not an option, ends the options.
        const KNOWN: [&str; 11] = [
            "jit", "env", "stdin", "events", "default", "slice", "budget", "shares", "unit",
            "phases", "region",
        ];
        loop {
            let (name, value) = self.0.next()?.split_once('=')?;
            match name {
                "env" => return Some(value),
                name if KNOWN.contains(&name) => {}
                _ => return None,
            }
        }
    }
}

impl<'a> Program<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, BadOption<'a>> {
        let mut words = text.split_ascii_whitespace();
        let (mut events, mut config) = (None, SessionConfig::default());
        let (environment, mut input, mut region) = (Variables(words.clone()), None, None);
        let (mut phases, mut is_default, mut may_write_code) = (None, false, false);
        loop {
            let mut ahead = words.clone();
            let option = ahead.next().unwrap_or_default();
            match option.split_once('=') {
                Some((kind @ ("events" | "default"), list)) => {
                    (events, is_default) = (Some(list), kind == "default");
                }
                Some(("slice", length)) => {
                    config.slice = Slice::parse(length).ok_or(BadOption(option))?;
                }
                Some(("budget", ppm)) => {
                    let ppm = ppm.parse().ok().filter(|ppm| (1..=NO_BUDGET_PPM).contains(ppm));
                    config.budget_ppm = ppm.ok_or(BadOption(option))?;
                }
                Some(("shares", shares)) => {
                    config.shares = Shares::parse(shares).ok_or(BadOption(option))?;
                }
                Some(("unit", "yes")) => config.unit = true,
                Some(("jit", "yes")) => may_write_code = true,
                Some(("phases", how)) => {
                    phases = Some(PhaseConfig::parse(how).ok_or(BadOption(option))?);
                }
                Some(("region", tag)) => {
                    region = Some(tag.parse().map_err(|_| BadOption(option))?);
                }
                Some(("env", _)) => {}
                Some(("stdin", path)) => input = Some(path),
                // A program's name may contain an equals sign.
                _ => break,
            }
            words = ahead;
        }
        let measure = events.map(|list| (list, config));
        Ok(Program {
            measure,
            is_default,
            may_write_code,
            phases,
            region,
            environment,
            input,
            words,
        })
    }
}
