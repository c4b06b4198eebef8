//! The command line of `tally stat` and `tally record`, in perf's syntax. The program `tally`
//! parses it. The host parses it too: it refuses before a boot what the program would refuse, and
//! explains what the program would count.

use alloc::{format, string::String, vec::Vec};

use crate::{
    Mode, SessionConfig, Shares, Slice,
    events::{DEFAULT_RECORD, DEFAULT_STAT, DETAILED_STAT, words},
    session::NO_BUDGET_PPM,
};

/// The default period, in events.
const DEFAULT_PERIOD: u64 = 100_000;

/// How the program is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Count events for the whole program.
    Stat,
    /// Sample the program: an address at every period of an event.
    Record,
}

impl Verb {
    /// Parses the verb's name.
    pub fn parse(word: &str) -> Option<Verb> {
        match word {
            "stat" => Some(Verb::Stat),
            "record" => Some(Verb::Record),
            _ => None,
        }
    }
}

/// `stat [-e LIST]… [OPTIONS] [--] PROGRAM ARGUMENTS`, or `record [-e LIST] [-c PERIOD] …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The first word.
    pub verb: Verb,
    /// The lists of all `-e LIST` and `--event=LIST`.
    lists: Vec<&'a str>,
    /// `-d`: count also the data cache's events, with `stat`.
    is_detailed: bool,
    /// `-x SEPARATOR` of `stat`: print fields with this text between them, and nothing else.
    pub separator: Option<&'a str>,
    /// `-c PERIOD`: events between two samples of `record`, at least 1.
    pub period: u64,
    /// How to count: `--slice CYCLES`, `--budget PERCENT`, `--shares planned|adaptive|paired`,
    /// `--kernel` (ring 0 too).
    pub config: SessionConfig,
    /// The program and its arguments: the rest of the words.
    pub program: Vec<&'a str>,
}

impl<'a> Command<'a> {
    /// Parses the words after `tally`.
    ///
    /// # Errors
    /// A message that names the wrong word.
    pub fn parse(words: &[&'a str]) -> Result<Self, String> {
        let mut words = words.iter().copied();
        let mut command = Command {
            verb: words.next().and_then(Verb::parse).ok_or_else(usage)?,
            lists: Vec::new(),
            is_detailed: false,
            separator: None,
            period: DEFAULT_PERIOD,
            config: SessionConfig::default(),
            program: Vec::new(),
        };
        while let Some(word) = words.next() {
            let (option, said) = split(word);
            let mut value =
                || said.or_else(|| words.next()).ok_or_else(|| format!("{word} needs a value"));
            match word {
                "--" => command.program.extend(words.next()),
                "--kernel" => command.config.mode = Mode::Full,
                "-d" | "--detailed" if command.verb == Verb::Stat => command.is_detailed = true,
                _ if word.starts_with('-') => command.option(option, &mut value)?,
                _ => command.program.push(word),
            }
            if !command.program.is_empty() {
                command.program.extend(words);
                return command.checked();
            }
        }
        Err(String::from("name the program to run"))
    }

    /// Refuses several events for `record`: its samples do not name their event.
    fn checked(self) -> Result<Self, String> {
        let events = self.events();
        match (self.verb, words(&events).count()) {
            (Verb::Record, 2..) => {
                Err(format!("record samples one event, and -e names several: {events}"))
            }
            _ => Ok(self),
        }
    }

    /// Sets an option that has a value.
    fn option(
        &mut self,
        word: &str,
        value: &mut dyn FnMut() -> Result<&'a str, String>,
    ) -> Result<(), String> {
        match word {
            "-e" | "--event" => self.lists.push(value()?),
            "-x" | "--field-separator" if self.verb == Verb::Stat => {
                self.separator = Some(value()?);
            }
            "-c" | "--count" if self.verb == Verb::Record => {
                self.period = number(word, value()?)? as u64;
                if self.period == 0 {
                    return Err(format!("{word} is at least 1"));
                }
            }
            "--slice" => {
                let slice = value()?;
                self.config.slice = match Slice::parse(slice) {
                    Some(Slice::Cycles(0)) => return Err(format!("{word} is at least 1")),
                    Some(slice) => slice,
                    None => Slice::Cycles(number(word, slice)? as u64),
                };
            }
            "--budget" => {
                let ppm = (number(word, value()?)? * 10_000.0) as u32;
                if !(1..=NO_BUDGET_PPM).contains(&ppm) {
                    return Err(format!("{word} is more than 0 and at most 100"));
                }
                self.config.budget_ppm = ppm;
            }
            "--shares" => {
                let kind = value()?;
                self.config.shares =
                    Shares::parse(kind).ok_or_else(|| format!("{word} cannot be {kind}"))?;
            }
            _ => return Err(format!("unknown option {word}")),
        }
        Ok(())
    }

    /// The events to count, as one list; for `record` at most one event.
    pub fn events(&self) -> String {
        let listed = match (self.lists.is_empty(), self.verb) {
            (false, _) => self.lists.join(","),
            (true, Verb::Stat) => DEFAULT_STAT.into(),
            (true, Verb::Record) => DEFAULT_RECORD.into(),
        };
        if self.is_detailed { format!("{listed},{DETAILED_STAT}") } else { listed }
    }
}

/// An option and the value that may be in the same word: `--event=LIST`, `-x,`.
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

fn number(word: &str, text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("{word} cannot be {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Command<'_>, String> {
        Command::parse(&text.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn options_end_where_the_program_begins() {
        let stat =
            parse("stat -e a,b --slice 9000 --kernel --event=c=d -- prog -e d -- e").unwrap();
        assert_eq!((stat.verb, stat.events().as_str()), (Verb::Stat, "a,b,c=d"));
        assert_eq!((stat.config.mode, stat.config.slice), (Mode::Full, Slice::Cycles(9000)));
        assert_eq!(stat.program, ["prog", "-e", "d", "--", "e"]);
        let record = parse("record -c 5 --budget 0.5 --shares adaptive prog").unwrap();
        assert_eq!((record.verb, record.period), (Verb::Record, 5));
        assert_eq!((record.config.budget_ppm, record.config.shares), (5_000, Shares::Adaptive));
        assert_eq!(parse("stat prog").unwrap().events(), DEFAULT_STAT);
        let detailed = parse("stat -ea -d -x, prog").unwrap();
        assert_eq!(detailed.events(), format!("a,{DETAILED_STAT}"));
        assert_eq!((detailed.separator, parse("stat prog").unwrap().separator), (Some(","), None));
        assert_eq!(parse("record prog").unwrap().events(), DEFAULT_RECORD);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (text, why) in [
            ("stat -a prog", "unknown option -a"),
            ("record -x, prog", "unknown option -x"),
            ("record -d prog", "unknown option -d"),
            ("stat -dd prog", "unknown option -d"),
            ("stat -c 5 prog", "unknown option -c"),
            ("stat -e", "-e needs a value"),
            ("stat --kernel=1 prog", "unknown option --kernel"),
            ("stat --shares=foo prog", "--shares cannot be foo"),
            ("stat -e cycles", "name the program to run"),
            ("stat --", "name the program to run"),
            ("record -e a,b prog", "record samples one event, and -e names several: a,b"),
            ("record -e a -e b prog", "record samples one event, and -e names several: a,b"),
            ("record -c 0 prog", "-c is at least 1"),
            ("record -c few prog", "-c cannot be few"),
            ("stat --slice 0 prog", "--slice is at least 1"),
            ("stat --shares foo prog", "--shares cannot be foo"),
            ("stat --budget 101 prog", "--budget is more than 0 and at most 100"),
            ("top prog", &usage()),
        ] {
            assert_eq!(parse(text).unwrap_err(), why, "{text}");
        }
    }
}
