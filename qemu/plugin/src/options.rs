//! What stands behind the plugin's file name on QEMU's command line.

use std::path::PathBuf;

use tally_vpmu::Profile;

/// The options, checked.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) profile: Profile,
    pub(crate) counters: u8,
    pub(crate) truth: Option<PathBuf>,
    pub(crate) log: Option<PathBuf>,
}

impl Options {
    /// Parses `key=value` arguments; an error is one line that says what to do.
    pub(crate) fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options {
            profile: Profile::ALL[0],
            counters: Profile::ALL[0].counters.0,
            truth: None,
            log: None,
        };
        let mut counters = None;
        for argument in arguments {
            let (key, value) = argument
                .split_once('=')
                .ok_or_else(|| format!("option '{argument}' has no value; write {argument}=..."))?;
            match key {
                "profile" => options.profile = profile(value)?,
                "counters" => counters = Some(value),
                "truth" => options.truth = Some(value.into()),
                "log" => options.log = Some(value.into()),
                _ => {
                    return Err(format!(
                        "there is no option '{key}'; there are profile, counters, truth, log"
                    ));
                }
            }
        }
        let (default, most) = options.profile.counters;
        options.counters = match counters {
            None => default,
            Some(text) => {
                text.parse().ok().filter(|n| (1..=most).contains(n)).ok_or_else(|| {
                    format!("counters={text}: {} has 1 to {most}", options.profile.name)
                })?
            }
        };
        Ok(options)
    }
}

fn profile(name: &str) -> Result<Profile, String> {
    Profile::find(name).ok_or_else(|| {
        let names: Vec<_> = Profile::ALL.iter().map(|profile| profile.name).collect();
        format!("there is no profile '{name}'; there are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        Options::parse(&arguments.iter().map(|text| text.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn defaults_follow_the_profile_wherever_it_stands() {
        assert_eq!(parse(&[]).map(|options| options.counters), Ok(4));
        assert_eq!(parse(&["truth=x", "profile=zen4"]).map(|options| options.counters), Ok(6));
        assert_eq!(parse(&["counters=8"]).map(|options| options.counters), Ok(8));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (argument, part) in [
            ("profile=p4", "no profile 'p4'"),
            ("counters=9", "counters=9"),
            ("counters=0", "counters=0"),
            ("speed=1", "no option 'speed'"),
            ("truth", "has no value"),
        ] {
            let error = parse(&[argument]).expect_err(argument);
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
    }
}
