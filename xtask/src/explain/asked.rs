//! What `cargo xtask run --explain` is asked to explain.

use tally_abi::{ExitStatus, SessionConfig, command::Command, events};

use crate::{
    Failure, Result,
    job::{Job, tally},
};

/// The program whose list the host knows.
const DEFAULT: &str = "deflate";

/// What is to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The list of events.
    pub events: String,
    /// How they are counted.
    pub config: SessionConfig,
    /// The kernel's `paranoid`; none where the kernel itself counts, which may all.
    pub paranoid: Option<u8>,
}

impl Asked {
    /// What `job` counts, or `command` instead of its programs, on a processor of this signature (CPUID
    /// leaf 1's EAX).
    ///
    /// # Errors
    /// Only the program itself knows, or `stat` and `record` do not understand their words.
    pub fn of(job: &Job, command: &[String], signature: u32) -> Result<Asked> {
        let (config, paranoid) = (job.config(), Some(job.paranoid));
        let usage = |why: String| Failure::new(ExitStatus::Usage, why);
        if let Some(words) = tally(command) {
            let command = Command::parse(&words).map_err(|why| usage(format!("tally: {why}")))?;
            return Ok(Asked { events: command.events(), config: command.config, paranoid });
        }
        if let Some(events) = &job.events {
            let paranoid = paranoid.filter(|_| command.is_empty());
            return Ok(Asked { events: events.clone(), config, paranoid });
        }
        let other = match command {
            [] => job.program.iter().find(|name| *name != DEFAULT),
            [name] if name == DEFAULT => None,
            [name, ..] => Some(name),
        };
        match other {
            None => Ok(Asked { events: events::default_list(signature).into(), config, paranoid }),
            Some(name) => {
                Err(usage(format!("what {name} counts is known when it runs: say it by --events")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tally_abi::{Mode, Shares};

    use super::*;

    fn of(job: &Job, words: &str) -> Result<Asked> {
        let command: Vec<String> = words.split_ascii_whitespace().map(str::to_owned).collect();
        Asked::of(job, &command, 0x606a6)
    }

    #[test]
    fn who_counts_says_what_is_counted() {
        let default = Job::default();
        let stat = of(&default, "stat -e a --kernel --shares adaptive -- prog -e d").unwrap();
        assert_eq!((stat.events.as_str(), stat.paranoid), ("a", Some(2)));
        assert_eq!((stat.config.mode, stat.config.shares), (Mode::Full, Shares::Adaptive));
        assert_eq!(of(&default, "tally stat -e a --kernel --shares adaptive prog").unwrap(), stat);
        for words in ["", "deflate"] {
            assert_eq!(of(&default, words).unwrap().events, events::default_list(0x606a6));
        }
        let around = Job { events: Some("a".into()), slice: Some(9000), ..Job::default() };
        let asked = of(&around, "prog -e d").unwrap();
        assert_eq!((asked.events.as_str(), asked.config.slice.length()), ("a", 9000));
        assert_eq!((asked.paranoid, of(&around, "").unwrap().paranoid), (None, Some(2)));
    }

    #[test]
    fn what_stat_refuses_is_not_explained() {
        let default = Job::default();
        let stat = Job { program: vec!["stat".into()], ..Job::default() };
        for (job, words, why) in [
            (&default, "stat -a prog", "unknown option -a"),
            (&default, "stat --no-big-num -x, prog", "unknown option --no-big-num"),
            (&default, "stat --shares foo prog", "--shares cannot be foo"),
            (&default, "stat -e instructions", "name the program"),
            (&default, "prog", "--events"),
            (&default, "deflate --events nonsense", "--events"),
            (&stat, "", "what stat counts"),
        ] {
            let refused = of(job, words).unwrap_err();
            assert_eq!(refused.status, ExitStatus::Usage);
            assert!(refused.message.contains(why), "{words}: {refused}");
        }
    }
}
