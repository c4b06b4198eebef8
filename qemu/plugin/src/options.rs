//! What stands behind the plugin's file name on QEMU's command line.

use std::path::PathBuf;

use tally_model::{Mode, Perfect, Pipeline};
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
        let (mut counters, mut version, mut model) = (None, None, Model::default());
        for argument in arguments {
            let (key, value) = argument
                .split_once('=')
                .ok_or_else(|| format!("option '{argument}' has no value; write {argument}=..."))?;
            match key {
                "profile" => options.profile = profile(value)?,
                "counters" => counters = Some(value),
                "version" => version = Some(value),
                "truth" => options.truth = Some(value.into()),
                "log" => options.log = Some(value.into()),
                "pipeline" => model.pipeline = Some(value),
                "mode" => model.mode = Some(value),
                "perfect" => model.perfect = Some(value),
                _ => {
                    return Err(format!(
                        "there is no option '{key}'; there are profile, counters, version, \
                         truth, log, pipeline, mode, perfect"
                    ));
                }
            }
        }
        if let Some(text) = version {
            let number = text.parse().ok();
            options.profile = number
                .and_then(|number| options.profile.with_version(number))
                .ok_or_else(|| {
                    format!("version={text}: Intel's profiles have 1 to 5, AMD's none to choose")
                })?;
        }
        options.profile.geometry.pipeline = model.pipeline()?;
        options.profile.geometry.perfect = model.perfect()?;
        options.counters = general_counters(&options.profile, counters)?;
        Ok(options)
    }
}

fn general_counters(profile: &Profile, asked_for: Option<&str>) -> Result<u8, String> {
    let (default, most) = profile.counters;
    let Some(text) = asked_for else { return Ok(default) };
    text.parse()
        .ok()
        .filter(|count| (1..=most).contains(count))
        .ok_or_else(|| format!("counters={text}: {} has 1 to {most}", profile.name))
}

/// What the options say of the machine model.
#[derive(Clone, Copy, Debug, Default)]
struct Model<'a> {
    pipeline: Option<&'a str>,
    mode: Option<&'a str>,
    perfect: Option<&'a str>,
}

impl Model<'_> {
    fn pipeline(self) -> Result<Pipeline, String> {
        match (self.pipeline.unwrap_or("interval"), self.mode) {
            ("interval", None) => Ok(Pipeline::Interval),
            ("interval", Some(mode)) => {
                Err(format!("mode={mode} is of the other pipeline; add pipeline=ooo"))
            }
            ("ooo", None | Some("real")) => Ok(Pipeline::OutOfOrder(Mode::Real)),
            ("ooo", Some("single")) => Ok(Pipeline::OutOfOrder(Mode::SingleDispatch)),
            ("ooo", Some("inorder")) => Ok(Pipeline::OutOfOrder(Mode::InOrder)),
            ("ooo", Some(mode)) => {
                Err(format!("there is no mode '{mode}'; there are real, single, inorder"))
            }
            (name, _) => Err(format!("there is no pipeline '{name}'; there are interval, ooo")),
        }
    }

    /// Structures joined by `+`, as QEMU's own option parser takes commas.
    fn perfect(self) -> Result<Perfect, String> {
        let mut perfect = Perfect::default();
        for name in self.perfect.into_iter().flat_map(|names| names.split('+')) {
            if !perfect.set(name) {
                let names = Perfect::NAMES.join(", ");
                return Err(format!("perfect={name}: no such structure; there are {names}"));
            }
        }
        Ok(perfect)
    }
}

/// Whether QEMU's own command line is one that the plugin can serve: the interface says nothing of
/// accelerators and instruction counting.
pub(crate) fn check_machine(arguments: &[String], max_vcpus: usize) -> Result<(), String> {
    let value_of = |names: &[&str]| {
        let at = arguments.iter().position(|argument| names.contains(&argument.as_str()));
        at.and_then(|at| arguments.get(at + 1))
    };
    let accelerator = value_of(&["-accel", "--accel"]).map(String::as_str).unwrap_or("tcg");
    let by_machine = value_of(&["-machine", "-M", "--machine"]).map(String::as_str).unwrap_or("");
    let enabled = arguments.iter().any(|argument| argument.ends_with("-enable-kvm"));
    if !accelerator.starts_with("tcg") || by_machine.contains("accel=kvm") || enabled {
        return Err("counts only what TCG runs; use -accel tcg".to_owned());
    }
    if max_vcpus == 1 {
        return Ok(());
    }
    if value_of(&["-icount", "--icount"]).is_some_and(|value| value != "off") {
        return Err("with -icount QEMU mixes CPUs up for plugins; use -smp 1".to_owned());
    }
    if accelerator.contains("thread=single") {
        return Err("with thread=single QEMU mixes CPUs up for plugins; use -smp 1".to_owned());
    }
    Ok(())
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
    fn machines_that_cannot_be_served_are_refused() {
        let check = |line: &str, vcpus| {
            let arguments: Vec<_> = line.split(' ').map(str::to_owned).collect();
            check_machine(&arguments, vcpus)
        };
        assert_eq!(check("qemu -accel tcg -icount shift=0 -smp 1", 1), Ok(()));
        assert_eq!(check("qemu -accel tcg,thread=multi -smp 4", 4), Ok(()));
        assert!(check("qemu -icount shift=0", 2).is_err());
        assert!(check("qemu -accel tcg,thread=single", 2).is_err());
        assert!(check("qemu -accel kvm", 1).is_err());
        assert!(check("qemu -enable-kvm", 1).is_err());
        assert!(check("qemu -machine q35,accel=kvm:tcg", 1).is_err());
    }

    #[test]
    fn the_model_is_configured_whatever_the_order() {
        let geometry =
            |arguments: &[&str]| parse(arguments).map(|options| options.profile.geometry);
        for (arguments, pipeline) in [
            (&[][..], Pipeline::Interval),
            (&["pipeline=ooo"], Pipeline::OutOfOrder(Mode::Real)),
            (&["mode=inorder", "pipeline=ooo"], Pipeline::OutOfOrder(Mode::InOrder)),
            (
                &["pipeline=ooo", "mode=single", "profile=zen4"],
                Pipeline::OutOfOrder(Mode::SingleDispatch),
            ),
        ] {
            assert_eq!(geometry(arguments).map(|geometry| geometry.pipeline), Ok(pipeline));
        }
        let perfect = geometry(&["perfect=l1d+branch"]).map(|geometry| geometry.perfect);
        assert_eq!(perfect, Ok(Perfect { l1d: true, branch: true, ..Perfect::default() }));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (argument, part) in [
            ("profile=p4", "no profile 'p4'"),
            ("counters=9", "counters=9"),
            ("counters=0", "counters=0"),
            ("version=6", "version=6"),
            ("speed=1", "no option 'speed'"),
            ("truth", "has no value"),
            ("pipeline=fast", "no pipeline 'fast'"),
            ("mode=single", "add pipeline=ooo"),
            ("perfect=l1d+l4", "perfect=l4"),
        ] {
            let error = parse(&[argument]).expect_err(argument);
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
    }
}
