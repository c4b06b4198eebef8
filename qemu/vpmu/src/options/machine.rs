//! The options of the machine's model: its pipeline, its perfect structures, and the cores that run
//! beside it.

use std::ops::RangeInclusive;

use tally_model::{Assist, Geometry, Perfect, Pipeline, PipelineMode, Prefetchers};

use crate::profile::Profile;

/// The name of a shadow core without perfect structures.
const REAL: &str = "none";
/// Maximum shadow cores of a CPU. Each takes the memory and the time of a whole core.
const MOST_SHADOWS: usize = 32;

/// Sizes of bundles in instructions. A size of one is `mode=single`.
const BUNDLES: RangeInclusive<u8> = 2..=16;

/// A shadow core: runs beside a CPU's own core on the same stream, with other perfect structures,
/// without any effect on the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadow {
    /// The option's text.
    pub name: String,
    /// The structures that never miss.
    pub perfect: Perfect,
}

pub(super) fn pipeline(name: Option<&str>, mode: Option<&str>) -> Result<Pipeline, String> {
    let out_of_order = match mode {
        None | Some("real") => PipelineMode::Real,
        Some("single") => PipelineMode::SingleDispatch,
        Some("inorder") => PipelineMode::InOrder,
        Some(mode) => bundles(mode)?,
    };
    match (name.unwrap_or("interval"), mode) {
        ("interval", None) => Ok(Pipeline::Interval),
        ("interval", Some(mode)) => {
            Err(format!("mode={mode} needs the other pipeline: add pipeline=ooo"))
        }
        ("ooo", _) => Ok(Pipeline::OutOfOrder(out_of_order)),
        (name, _) => Err(format!("unknown pipeline '{name}': use interval or ooo")),
    }
}

/// Parses `bundles:N`.
fn bundles(mode: &str) -> Result<PipelineMode, String> {
    let Some(most) = mode.strip_prefix("bundles:") else {
        return Err(format!("unknown mode '{mode}': use real, bundles:N, single or inorder"));
    };
    let most = most.parse().ok().filter(|most| BUNDLES.contains(most));
    let (least, most_of_all) = (BUNDLES.start(), BUNDLES.end());
    most.map(PipelineMode::Bundles).ok_or_else(|| {
        format!("mode={mode} is no size of a bundle: use bundles:{least} to bundles:{most_of_all}")
    })
}

/// Parses perfect structures joined by `+`, as QEMU's own option parser splits at commas.
pub(super) fn perfect(names: Option<&str>) -> Result<Perfect, String> {
    let names = names.into_iter().flat_map(|names| names.split('+'));
    structures(names).map_err(|name| {
        let names = Perfect::NAMES.join(", ");
        format!("perfect={name} is no structure: use {names}, joined by +")
    })
}

/// Parses the prefetchers that are on after reset: `off` for a machine without any, `on` for all of
/// them, or names joined by `+`.
pub(super) fn prefetch(names: Option<&str>) -> Result<Option<Prefetchers>, String> {
    let names = match names {
        None | Some("off") => return Ok(None),
        Some("on") => return Ok(Some(Prefetchers::ALL)),
        Some(names) => names,
    };
    let mut on = Prefetchers::NONE;
    match names.split('+').find(|name| !on.set(name)) {
        None => Ok(Some(on)),
        Some(name) => {
            let names = Prefetchers::NAMES.join(", ");
            Err(format!("prefetch={name} is no prefetcher: use off, on, or {names}, joined by +"))
        }
    }
}

/// Parses the structure that paper 004's table assists.
pub(super) fn assist(name: Option<&str>) -> Result<Option<Assist>, String> {
    let Some(name) = name else { return Ok(None) };
    let assist = Assist::ALL.into_iter().find(|assist| assist.name() == name);
    assist.map(Some).ok_or_else(|| {
        format!("assist={name} is nothing that a table assists: use data, code or branch")
    })
}

/// Makes the named structures perfect; the error is the first unknown name.
fn structures<'a>(names: impl Iterator<Item = &'a str>) -> Result<Perfect, &'a str> {
    let mut perfect = Perfect::default();
    for name in names {
        if !perfect.set(name) {
            return Err(name);
        }
    }
    Ok(perfect)
}

/// Checks that CPI stacks are requested only with the pipeline that counts them.
pub(super) fn check_pipeline(geometry: &Geometry) -> Result<(), String> {
    if geometry.stacks && geometry.pipeline == Pipeline::Interval {
        return Err("stacks=yes needs the other pipeline: add pipeline=ooo".to_owned());
    }
    match geometry.pipeline {
        Pipeline::OutOfOrder(PipelineMode::Bundles(_)) | Pipeline::Interval if geometry.oracle => {
            Err("instructions=FILE needs the time of each instruction: add pipeline=ooo, without \
                 mode=bundles"
                .to_owned())
        }
        _ => Ok(()),
    }
}

/// Parses a list of shadow cores like `l1i+branch/none`.
pub(super) fn shadows(list: Option<&str>) -> Result<Vec<Shadow>, String> {
    let Some(list) = list else { return Ok(Vec::new()) };
    let one = |name: &str| {
        let names = name.split('+').filter(|one| *one != REAL);
        let perfect = structures(names).map_err(|_| {
            let names = Perfect::NAMES.join(", ");
            format!(
                "shadows={name} is no core: use {REAL}, or perfect structures joined by +, of \
                 {names}; a / between cores"
            )
        })?;
        Ok(Shadow { name: name.to_owned(), perfect })
    };
    let all: Vec<Shadow> = list.split('/').map(one).collect::<Result<_, String>>()?;
    match all.len() {
        ..=MOST_SHADOWS => Ok(all),
        count => Err(format!("shadows=... has {count} cores: use at most {MOST_SHADOWS}")),
    }
}

/// Finds a profile by its name.
pub(super) fn profile(name: &str) -> Result<Profile, String> {
    Profile::find(name).ok_or_else(|| {
        let names: Vec<_> = Profile::ALL.iter().map(|profile| profile.name).collect();
        format!("unknown profile '{name}': use one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::{super::tests::parse, *};

    #[test]
    fn the_model_is_configured_in_any_order() {
        let geometry =
            |arguments: &[&str]| parse(arguments).map(|options| options.profile.geometry);
        for (arguments, pipeline) in [
            (&[][..], Pipeline::Interval),
            (&["pipeline=ooo"], Pipeline::OutOfOrder(PipelineMode::Real)),
            (&["mode=inorder", "pipeline=ooo"], Pipeline::OutOfOrder(PipelineMode::InOrder)),
            (
                &["pipeline=ooo", "mode=single", "profile=zen4"],
                Pipeline::OutOfOrder(PipelineMode::SingleDispatch),
            ),
        ] {
            assert_eq!(geometry(arguments).map(|geometry| geometry.pipeline), Ok(pipeline));
        }
        let perfect = geometry(&["perfect=l1d+branch"]).map(|geometry| geometry.perfect);
        assert_eq!(perfect, Ok(Perfect { l1d: true, branch: true, ..Perfect::default() }));
    }

    #[test]
    fn prefetchers_are_off_on_or_named() {
        let prefetch =
            |arguments: &[&str]| parse(arguments).map(|options| options.profile.geometry.prefetch);
        assert_eq!(prefetch(&[]), Ok(None));
        assert_eq!(prefetch(&["prefetch=off"]), Ok(None));
        assert_eq!(prefetch(&["prefetch=on"]), Ok(Some(Prefetchers::ALL)));
        let named = Prefetchers { l1_next: true, l2_pair: true, ..Prefetchers::NONE };
        assert_eq!(prefetch(&["prefetch=l1-next+l2-pair"]), Ok(Some(named)));
    }

    #[test]
    fn shadows_are_cores_with_their_own_structures() {
        let shadows = |list: &str| {
            let options = parse(&[&format!("shadows={list}")])?;
            Ok::<_, String>(options.shadows)
        };
        let names = |list: &str| {
            let all = shadows(list)?.into_iter().map(|shadow| shadow.name);
            Ok::<_, String>(all.collect::<Vec<_>>())
        };
        assert_eq!(names("l1i+branch/none"), Ok(vec!["l1i+branch".into(), "none".into()]));
        let perfect = Perfect { l1i: true, branch: true, ..Perfect::default() };
        assert_eq!(shadows("l1i+branch").map(|all| all[0].perfect), Ok(perfect));
        assert_eq!(shadows("none").map(|all| all[0].perfect), Ok(Perfect::default()));
        assert!(shadows("").unwrap_err().contains("use none"));
        assert!(shadows(&["none"; 33].join("/")).unwrap_err().contains("at most 32"));
        assert!(parse(&["pipeline=ooo", "stacks=yes"]).unwrap().profile.geometry.stacks);
    }
}
