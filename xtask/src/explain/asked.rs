//! The list of events that `cargo xtask run --explain` explains.

use tally_abi::{CpuSet, Error, ExitStatus, SessionConfig, command::Command, events};
use tally_breakdown::{Metrics, stack_of};

use crate::{
    Failure, Result,
    job::{Job, counts_by_default},
    program_words::tally,
};

/// The program whose own list of events the host knows.
const DEFAULT: &str = "deflate";

/// A list of events, and the way of counting them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The list of events.
    pub events: String,
    /// Configuration of the session.
    pub config: SessionConfig,
    /// The kernel's `paranoid` level; `None` if everything may be counted.
    pub paranoid: Option<u8>,
}

impl Asked {
    /// The request of `job`, or of `command` in place of its programs, on a processor with this
    /// signature (CPUID leaf 1, EAX).
    ///
    /// # Errors
    /// The list is in the program itself, or `stat` or `record` refuses its arguments.
    pub fn of(job: &Job, command: &[String], signature: u32) -> Result<Asked> {
        let (config, paranoid) = (job.config(), Some(job.paranoid));
        let usage = |why: String| Failure::new(ExitStatus::Usage, why);
        if let Some(words) = tally(command) {
            let mut command = Command::parse(&words).map_err(usage)?;
            let lacks = stack_of(signature).is_none() && command.asks_where_cycles_go();
            check_cpus(job, &command)?;
            Metrics::counted_by(&mut command, signature).map_err(|why| {
                let refused = usage(why);
                if lacks { Failure { status: ExitStatus::NoBreakdown, ..refused } } else { refused }
            })?;
            return Ok(Asked { events: command.events().into(), config: command.config, paranoid });
        }
        let default = job.default.as_ref().filter(|_| counts_by_default(command));
        if let Some(events) = job.events.as_ref().or(default) {
            return Ok(Asked { events: events.clone(), config, paranoid });
        }
        let other = match command {
            [] => job.program.iter().find(|name| *name != DEFAULT),
            [name] if name == DEFAULT => None,
            [name, ..] => Some(name),
        };
        match other {
            None => Ok(Asked { events: events::default_list(signature).into(), config, paranoid }),
            Some(name) => Err(usage(format!(
                "events of {name} are unknown before it runs: name them with --events"
            ))),
        }
    }
}

/// Checks that the machine has the CPUs of `stat -C LIST`, as the kernel does.
fn check_cpus(job: &Job, command: &Command<'_>) -> Result<()> {
    let absent = command.stat.cpus.unwrap_or_default().without(CpuSet::first(job.cpus.into()));
    let Some(first) = absent.lowest() else { return Ok(()) };
    let why = format!("there is no CPU {first}: the machine has {}, from 0 on", job.cpus);
    Err(Failure::new(Error::BadArgument.exit_status(), why))
}

#[cfg(test)]
mod tests {
    use tally_abi::{Mode, Shares, Slice};

    use super::*;

    fn of(job: &Job, words: &str) -> Result<Asked> {
        let command: Vec<String> = words.split_ascii_whitespace().map(str::to_owned).collect();
        Asked::of(job, &command, 0x606a6)
    }

    #[test]
    fn the_list_comes_from_the_program_that_counts() {
        let default = Job::default();
        let stat = of(&default, "stat -e a --kernel --shares adaptive -- prog -e d").unwrap();
        assert_eq!((stat.events.as_str(), stat.paranoid), ("a", Some(2)));
        assert_eq!((stat.config.mode, stat.config.shares), (Mode::Full, Shares::Adaptive));
        assert_eq!(of(&default, "tally stat -e a --kernel --shares adaptive prog").unwrap(), stat);
        for words in ["", "deflate"] {
            assert_eq!(of(&default, words).unwrap().events, events::default_list(0x606a6));
        }
        let around =
            Job { events: Some("a".into()), slice: Some(Slice::Cycles(9000)), ..Job::default() };
        let asked = of(&around, "prog -e d").unwrap();
        assert_eq!((asked.events.as_str(), asked.config.slice.length()), ("a", 9000));
        assert_eq!((asked.paranoid, of(&around, "").unwrap().paranoid), (Some(2), Some(2)));
    }

    #[test]
    fn arguments_that_stat_refuses_are_refused() {
        let default = Job::default();
        let stat = Job { program: vec!["stat".into()], ..Job::default() };
        for (job, words, why) in [
            (&default, "stat --per-core prog", "--per-core: the kernel does not"),
            (&default, "stat --no-big-num -x, prog", "unknown option --no-big-num"),
            (&default, "stat --shares foo prog", "--shares cannot be foo"),
            (&default, "stat -e instructions", "name the program"),
            (&default, "prog", "--events"),
            (&default, "deflate --events nonsense", "--events"),
            (&stat, "", "events of stat"),
        ] {
            let refused = of(job, words).unwrap_err();
            assert_eq!(refused.status, ExitStatus::Usage);
            assert!(refused.message.contains(why), "{words}: {refused}");
        }
    }
}
