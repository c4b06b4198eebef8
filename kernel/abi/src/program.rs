//! A program on the kernel's command line: its options, name and arguments.

use core::str::SplitAsciiWhitespace;

use crate::{PhaseConfig, SessionConfig, Shares, Slice, session::NO_BUDGET_PPM};

/// An option that the kernel does not know, or whose value it cannot parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadOption<'a>(pub &'a str);

/// The options of a program.
const KNOWN: [&str; 11] = [
    "env", "stdin", "jit", "events", "default", "slice", "budget", "shares", "unit", "phases",
    "region",
];

/// Address of the shared object that programs read the clocks with (`AT_SYSINFO_EHDR`): one page.
pub const VDSO_BASE: u64 = 0x7fff_4000_0000;
/// Bytes of the page.
pub const VDSO_BYTES: u64 = 4096;

/// Maximum bytes of a program's arguments and environment, with a zero byte after each.
pub const MAX_ARGUMENT_BYTES: usize = 64 * 1024;

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
        let words = text.split_ascii_whitespace();
        let mut program = Program {
            measure: None,
            is_default: false,
            may_write_code: false,
            phases: None,
            region: None,
            environment: Variables(words.clone()),
            input: None,
            words,
        };
        let mut session = (None, SessionConfig::default());
        loop {
            let mut ahead = program.words.clone();
            let option = ahead.next().unwrap_or_default();
            // A program's name may contain an equals sign.
            let known = option.split_once('=').filter(|(name, _)| KNOWN.contains(name));
            let Some((name, value)) = known else { break };
            program.set(name, value, &mut session).ok_or(BadOption(option))?;
            program.words = ahead;
        }
        let (events, config) = session;
        program.measure = events.map(|list| (list, config));
        Ok(program)
    }

    /// Sets an option, or one of the session around the program. `None` if its value is unknown.
    fn set(
        &mut self,
        name: &str,
        value: &'a str,
        (events, config): &mut (Option<&'a str>, SessionConfig),
    ) -> Option<()> {
        match (name, value) {
            ("events" | "default", list) => {
                (*events, self.is_default) = (Some(list), name == "default");
            }
            ("slice", length) => config.slice = Slice::parse(length)?,
            ("budget", ppm) => {
                let ppm = ppm.parse().ok().filter(|ppm| (1..=NO_BUDGET_PPM).contains(ppm));
                config.budget_ppm = ppm?;
            }
            ("shares", shares) => config.shares = Shares::parse(shares)?,
            ("unit", "yes") => config.unit = true,
            ("jit", "yes") => self.may_write_code = true,
            ("phases", how) => self.phases = Some(PhaseConfig::parse(how)?),
            ("region", tag) => self.region = Some(tag.parse().ok()?),
            ("env", _) => {}
            ("stdin", path) => self.input = Some(path),
            _ => return None,
        }
        Some(())
    }
}
