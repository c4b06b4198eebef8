//! What `cargo xtask run --explain` is asked to explain.

use tally_abi::{ExitStatus, Mode, Shares, events};

use crate::{Failure, Result, run::Job};

/// What is to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The list of events.
    pub events: String,
    /// At which privileges they are counted where they do not say otherwise.
    pub mode: Mode,
    /// The kernel's `paranoid`; none where the kernel itself counts, which may all.
    pub paranoid: Option<u8>,
    /// How slices are dealt.
    pub shares: Shares,
}

impl Asked {
    /// What `job` counts, or `command` instead of its programs, on a processor of this signature (CPUID
    /// leaf 1's EAX).
    ///
    /// # Errors
    /// Only the program itself knows.
    pub fn of(job: &Job, command: &[String], signature: u32) -> Result<Asked> {
        let asked = Asked {
            events: job.events.clone().unwrap_or_default(),
            mode: Mode::User,
            paranoid: Some(job.paranoid),
            shares: job.shares.unwrap_or_default(),
        };
        let is_other = |name: &&String| *name != "deflate";
        let program = command.first().or(job.program.iter().find(is_other));
        let program = program.map_or("deflate", String::as_str);
        match (program, &job.events) {
            ("stat" | "record", _) => asked.by_words(command),
            (_, Some(_)) if !command.is_empty() => Ok(Asked { paranoid: None, ..asked }),
            (_, Some(_)) => Ok(asked),
            ("deflate", None) => {
                Ok(Asked { events: events::default_list(signature).into(), ..asked })
            }
            (program, None) => {
                let why =
                    format!("what {program} counts is known when it runs: say it by --events");
                Err(Failure::new(ExitStatus::Usage, why))
            }
        }
    }

    /// What `stat` and `record` are asked for by their own words.
    fn by_words(self, command: &[String]) -> Result<Asked> {
        let mut asked = Asked { events: String::new(), ..self };
        let mut words = command.iter().map(String::as_str);
        if words.next() == Some("record") {
            asked.events = events::DEFAULT_RECORD.into();
        } else {
            asked.events = events::DEFAULT_STAT.into();
        }
        let mut lists: Vec<&str> = Vec::new();
        while let Some(word) = words.next() {
            match word {
                "-e" | "--event" => lists.extend(words.next()),
                "--kernel" => asked.mode = Mode::Full,
                "--shares" => {
                    asked.shares = words.next().and_then(Shares::parse).unwrap_or_default();
                }
                "-c" | "--count" | "--slice" | "--budget" => {
                    words.next();
                }
                _ => break,
            }
        }
        if !lists.is_empty() {
            asked.events = lists.join(",");
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use tally_abi::boot::Delivery;

    use super::*;

    fn job() -> Job {
        let (program, events, slice, budget, shares) =
            (vec!["deflate".into()], None, None, None, None);
        Job {
            program,
            events,
            slice,
            budget,
            shares,
            seed: 1,
            cpus: 1,
            paranoid: 2,
            overflows: Delivery::Fixed,
        }
    }

    #[test]
    fn the_words_of_stat_say_what_is_counted() {
        let of = |words: &str| {
            let command: Vec<String> = words.split(' ').map(str::to_owned).collect();
            Asked::of(&job(), &command, 0x606a6)
        };
        let stat = of("stat -e a,b --slice 9000 --kernel -e c -- prog -e d").unwrap();
        assert_eq!((stat.events.as_str(), stat.mode), ("a,b,c", Mode::Full));
        assert_eq!(of("stat prog").unwrap().events, events::DEFAULT_STAT);
        assert_eq!(of("record -c 5 prog").unwrap().events, events::DEFAULT_RECORD);
        assert_eq!(of("prog").unwrap_err().status, ExitStatus::Usage);
        assert_eq!(Asked::of(&job(), &[], 0).unwrap().events, events::DEFAULT_STAT);
    }
}
