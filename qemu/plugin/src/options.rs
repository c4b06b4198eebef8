//! What stands behind the plugin's file name on QEMU's command line.

use std::{collections::BTreeMap, path::PathBuf};

use tally_model::{Mode, Perfect, Pipeline};
use tally_vpmu::Profile;

/// The options, checked.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) profile: Profile,
    pub(crate) counters: u8,
    /// A CPU that has one counter less.
    unlike: Option<u32>,
    pub(crate) truth: Option<PathBuf>,
    pub(crate) series: Option<Series>,
    /// CPUs and how many instructions each retires before an overflow interrupt is raised on it.
    pub(crate) interrupts: Vec<(u32, u64)>,
    /// Whether everything is counted from power-on, not from the first counter or region.
    pub(crate) from_boot: bool,
    pub(crate) log: Option<PathBuf>,
}

/// The truth over time that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Series {
    pub(crate) path: PathBuf,
    pub(crate) every: Every,
}

/// The length of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Every {
    /// Instructions retired.
    Instructions(u64),
    /// Core cycles.
    Cycles(u64),
}

impl Every {
    /// Less would be shorter than a block.
    const LEAST: u64 = 1_000;
    const DEFAULT: Every = Every::Instructions(1_000_000);

    fn parse(text: &str) -> Option<Every> {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let number = number.parse().ok().filter(|number| *number >= Every::LEAST)?;
        match unit {
            "i" => Some(Every::Instructions(number)),
            "c" => Some(Every::Cycles(number)),
            _ => None,
        }
    }
}

/// Every option's name.
const NAMES: [&str; 15] = [
    "profile", "counters", "unlike", "fixed", "width", "version", "truth", "series", "every",
    "pmi", "from", "log", "pipeline", "mode", "perfect",
];

/// The options as they were written, by name.
struct Given<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Given<'a> {
    fn parse(arguments: &'a [String]) -> Result<Given<'a>, String> {
        let mut given = BTreeMap::new();
        for argument in arguments {
            let (name, value) = argument
                .split_once('=')
                .ok_or_else(|| format!("option '{argument}' has no value; write {argument}=..."))?;
            if !NAMES.contains(&name) {
                return Err(format!("there is no option '{name}'; there are {}", NAMES.join(", ")));
            }
            given.insert(name, value);
        }
        Ok(Given(given))
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    /// QEMU makes `NAME=on` of a name without a value.
    fn path(&self, name: &str) -> Result<Option<PathBuf>, String> {
        match self.get(name) {
            Some("on" | "") => Err(format!("option '{name}' has no value; write {name}=FILE")),
            path => Ok(path.map(PathBuf::from)),
        }
    }

    fn profile(&self) -> Result<Profile, String> {
        let mut profile = self.get("profile").map_or(Ok(Profile::ALL[0]), profile)?;
        if let Some(text) = self.get("version") {
            let number = text.parse().ok();
            profile = number.and_then(|number| profile.with_version(number)).ok_or_else(|| {
                format!("version={text}: Intel's profiles have 1 to 5, AMD's none to choose")
            })?;
        }
        if let Some(text) = self.get("fixed") {
            let number = text.parse().ok();
            profile = number.and_then(|number| profile.with_fixed(number)).ok_or_else(|| {
                format!("fixed={text}: Intel's profiles have 0 to 4 from version 2 on, AMD's none")
            })?;
        }
        if let Some(text) = self.get("width") {
            let number = text.parse().ok();
            profile = number.and_then(|number| profile.with_width(number)).ok_or_else(|| {
                format!("width={text}: Intel's profiles have 32 to 48 bits, AMD's always 48")
            })?;
        }
        profile.geometry.pipeline = pipeline(self.get("pipeline"), self.get("mode"))?;
        profile.geometry.perfect = perfect(self.get("perfect"))?;
        Ok(profile)
    }

    fn series(&self) -> Result<Option<Series>, String> {
        let every = self.get("every").map_or(Ok(Every::DEFAULT), |text| {
            Every::parse(text).ok_or_else(|| {
                let least = Every::LEAST;
                format!("every={text}: write a number from {least} up with i for instructions or c for cycles")
            })
        })?;
        match self.path("series")? {
            None if self.get("every").is_some() => {
                Err("every=... is of a series; add series=FILE".to_owned())
            }
            path => Ok(path.map(|path| Series { path, every })),
        }
    }

    /// `COUNT` on the first CPU or `CPU:COUNT`, joined by `+`.
    fn interrupts(&self) -> Result<Vec<(u32, u64)>, String> {
        let one = |text: &str| -> Option<(u32, u64)> {
            let (cpu, count) = text.split_once(':').unwrap_or(("0", text));
            Some((cpu.parse().ok()?, count.parse().ok()?))
        };
        let all = self.get("pmi").into_iter().flat_map(|list| list.split('+'));
        all.map(|text| {
            one(text).ok_or_else(|| {
                format!("pmi={text}: write COUNT or CPU:COUNT in instructions, joined by +")
            })
        })
        .collect()
    }

    fn unlike(&self) -> Result<Option<u32>, String> {
        let Some(text) = self.get("unlike") else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("unlike={text}: write the number of a CPU"))
    }

    fn is_from_boot(&self) -> Result<bool, String> {
        match self.get("from") {
            None | Some("first") => Ok(false),
            Some("boot") => Ok(true),
            Some(text) => Err(format!("from={text}: there are first, boot")),
        }
    }
}

impl Options {
    /// Parses `key=value` arguments; an error is one line that says what to do.
    pub(crate) fn parse(arguments: &[String]) -> Result<Options, String> {
        let given = Given::parse(arguments)?;
        let profile = given.profile()?;
        let counters = general_counters(&profile, given.get("counters"))?;
        let unlike = given.unlike()?;
        if unlike.is_some() && counters == 1 {
            return Err("unlike=...: the others have one counter, of which none is left".to_owned());
        }
        Ok(Options {
            counters,
            unlike,
            truth: given.path("truth")?,
            series: given.series()?,
            interrupts: given.interrupts()?,
            from_boot: given.is_from_boot()?,
            log: given.path("log")?,
            profile,
        })
    }
}

impl Options {
    /// Fails on what this machine does not have.
    pub(crate) fn check_cpus(self, max_vcpus: u32) -> Result<Options, String> {
        let interrupted = self.interrupts.iter().map(|(cpu, _)| ("pmi", *cpu));
        let mut named = interrupted.chain(self.unlike.map(|cpu| ("unlike", cpu)));
        match named.find(|(_, cpu)| *cpu >= max_vcpus) {
            Some((name, cpu)) => {
                Err(format!("{name}={cpu}: there are CPUs 0 to {}", max_vcpus - 1))
            }
            None => Ok(self),
        }
    }

    /// The general counters of a CPU.
    pub(crate) fn counters_of(&self, cpu: u32) -> u8 {
        self.counters - u8::from(self.unlike == Some(cpu))
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

fn pipeline(name: Option<&str>, mode: Option<&str>) -> Result<Pipeline, String> {
    let out_of_order = match mode {
        None | Some("real") => Mode::Real,
        Some("single") => Mode::SingleDispatch,
        Some("inorder") => Mode::InOrder,
        Some(mode) => {
            return Err(format!("there is no mode '{mode}'; there are real, single, inorder"));
        }
    };
    match (name.unwrap_or("interval"), mode) {
        ("interval", None) => Ok(Pipeline::Interval),
        ("interval", Some(mode)) => {
            Err(format!("mode={mode} is of the other pipeline; add pipeline=ooo"))
        }
        ("ooo", _) => Ok(Pipeline::OutOfOrder(out_of_order)),
        (name, _) => Err(format!("there is no pipeline '{name}'; there are interval, ooo")),
    }
}

/// Structures joined by `+`, as QEMU's own option parser takes commas.
fn perfect(names: Option<&str>) -> Result<Perfect, String> {
    let mut perfect = Perfect::default();
    for name in names.into_iter().flat_map(|names| names.split('+')) {
        if !perfect.set(name) {
            let names = Perfect::NAMES.join(", ");
            return Err(format!("perfect={name}: no such structure; there are {names}"));
        }
    }
    Ok(perfect)
}

/// The values of an option of QEMU's own command line, of which the interface says nothing.
fn values_of<'a>(arguments: &'a [String], names: &[&str]) -> impl Iterator<Item = &'a str> {
    let pairs = arguments.windows(2).filter(|pair| names.contains(&pair[0].as_str()));
    pairs.map(|pair| pair[1].as_str())
}

/// Whether QEMU counts instructions, by its own command line.
pub(crate) fn counts_instructions(arguments: &[String]) -> bool {
    values_of(arguments, &["-icount", "--icount"]).any(|value| value != "off")
}

/// Whether QEMU's own command line is one that the plugin can serve.
pub(crate) fn check_machine(arguments: &[String], max_vcpus: usize) -> Result<(), String> {
    let accelerators: Vec<&str> = values_of(arguments, &["-accel", "--accel"]).collect();
    let by_machine = values_of(arguments, &["-machine", "--machine", "-M"])
        .flat_map(|machine| machine.split(','))
        .filter_map(|part| part.strip_prefix("accel="));
    let enabled = arguments.iter().any(|argument| argument.ends_with("-enable-kvm"));
    let mut all = accelerators.iter().copied().chain(by_machine);
    if enabled || all.any(|accelerator| !accelerator.starts_with("tcg")) {
        return Err("counts only what TCG runs; use -accel tcg".to_owned());
    }
    if max_vcpus == 1 {
        return Ok(());
    }
    if counts_instructions(arguments) {
        return Err("with -icount QEMU mixes CPUs up for plugins; use -smp 1".to_owned());
    }
    if accelerators.iter().any(|accelerator| accelerator.contains("thread=single")) {
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
        assert!(check("qemu -machine pc -M q35,accel=hvf", 1).is_err());
        assert!(check("qemu -accel kvm -accel tcg", 1).is_err());
        assert_eq!(check("qemu -machine pc,accel=tcg", 1), Ok(()));
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
    fn series_and_interrupts_are_read() {
        let series = |every: &str| {
            let options = parse(&["series=x", every])?;
            Ok::<_, String>(options.series.map(|series| series.every))
        };
        assert_eq!(series("every=1000i"), Ok(Some(Every::Instructions(1_000))));
        assert_eq!(series("every=50000c"), Ok(Some(Every::Cycles(50_000))));
        for bad in ["every=", "every=999i", "every=1000", "every=1000é", "every=xi"] {
            assert!(series(bad).is_err(), "{bad}");
        }
        let interrupts = parse(&["pmi=10+1:20"]).map(|options| options.interrupts);
        assert_eq!(interrupts, Ok(vec![(0, 10), (1, 20)]));
        let cpus = |count| parse(&["pmi=10+1:20"]).and_then(|options| options.check_cpus(count));
        assert!(cpus(2).is_ok() && cpus(1).is_err());
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
            ("truth=on", "write truth=FILE"),
            ("mode=odd", "there is no mode 'odd'"),
            ("pipeline=fast", "no pipeline 'fast'"),
            ("mode=single", "add pipeline=ooo"),
            ("perfect=l1d+l4", "perfect=l4"),
            ("fixed=5", "fixed=5"),
            ("width=31", "width=31"),
            ("every=1000i", "add series"),
            ("pmi=100+x", "pmi=x"),
            ("from=now", "from=now"),
        ] {
            let error = parse(&[argument]).expect_err(argument);
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
    }
}
