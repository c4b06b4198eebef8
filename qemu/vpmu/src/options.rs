//! The options of a virtual PMU: the arguments after the plugin's file name on QEMU's command line.

use std::{collections::BTreeMap, path::PathBuf};

use crate::{processor, profile::Profile, quirks::Quirks};

mod machine;

pub use self::machine::Shadow;

/// The options of a machine's virtual PMU, checked.
#[derive(Clone, Debug)]
pub struct PluginOptions {
    /// The processor, with the changes by options.
    pub profile: Profile,
    /// General counters of a CPU.
    pub counters: u8,
    /// The CPU that has one general counter fewer, if any.
    unlike: Option<u32>,
    /// Injected hardware quirks.
    pub quirks: Quirks,
    /// Whether each CPU has a counter unit.
    pub has_unit: bool,
    /// Whether events that are not modelled are advertised to the kernel as available.
    pub takes_unmodelled: bool,
    /// Output file for the exact counts of regions and sessions.
    pub truth: Option<PathBuf>,
    /// Options of the truth over time.
    pub series: Option<SeriesOptions>,
    /// Output file for the exact counts of each block of code.
    pub blocks: Option<PathBuf>,
    /// Output file for the time of each instruction.
    pub instructions: Option<PathBuf>,
    /// Overflow interrupts to inject, each as a CPU and its count of retired instructions.
    pub interrupts: Vec<(u32, u64)>,
    /// Whether to count from power-on instead of from the first counter or region.
    pub from_boot: bool,
    /// Output file for the instructions and accesses of overflow interrupt handlers.
    pub handlers: Option<PathBuf>,
    /// Shadow cores: run beside each CPU's own core, with other perfect structures.
    pub shadows: Vec<Shadow>,
    /// Output file for the plugin's messages.
    pub log: Option<PathBuf>,
}

/// The options of the truth over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesOptions {
    /// Output file.
    pub path: PathBuf,
    /// Length of the intervals.
    pub interval: Interval,
    /// Quantities to count.
    pub columns: Columns,
}

/// The quantities that a series counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// The profile's events, by the vendor's names.
    #[default]
    Events,
    /// The model's signals. Events are sums of signals; some signals belong to no event.
    Signals,
}

/// The length of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Instructions retired.
    Instructions(u64),
    /// Core cycles.
    Cycles(u64),
}

impl Interval {
    /// The shortest interval: a shorter one could be shorter than a block.
    const MIN: u64 = 1_000;
    const DEFAULT: Interval = Interval::Instructions(1_000_000);

    fn parse(text: &str) -> Option<Interval> {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let number = number.parse().ok().filter(|number| *number >= Interval::MIN)?;
        match unit {
            "i" => Some(Interval::Instructions(number)),
            "c" => Some(Interval::Cycles(number)),
            _ => None,
        }
    }
}

/// The names of the options.
const NAMES: [&str; 43] = [
    "profile",
    "processor",
    "counters",
    "unlike",
    "held",
    "overcount",
    "late",
    "locked",
    "lost",
    "masked",
    "missing",
    "left",
    "absent",
    "unmodelled",
    "fixed",
    "width",
    "version",
    "tsc",
    "truth",
    "series",
    "blocks",
    "instructions",
    "every",
    "columns",
    "pmi",
    "from",
    "handlers",
    "log",
    "smi",
    "threads",
    "unit",
    "pipeline",
    "mode",
    "perfect",
    "prefetch",
    "btb",
    "uop-cache",
    "wrong-paths",
    "rejections",
    "large-pages",
    "assist",
    "stacks",
    "shadows",
];

/// The arguments by name, not yet parsed.
struct Given<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Given<'a> {
    fn parse(arguments: &'a [String]) -> Result<Given<'a>, String> {
        let mut given = BTreeMap::new();
        for argument in arguments {
            let (name, value) = argument
                .split_once('=')
                .ok_or_else(|| format!("option '{argument}' has no value: use {argument}=..."))?;
            if !NAMES.contains(&name) {
                return Err(format!("unknown option '{name}': use one of {}", NAMES.join(", ")));
            }
            given.insert(name, value);
        }
        Ok(Given(given))
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    /// The file name of an option. QEMU turns a name without a value into `NAME=on`.
    fn path(&self, name: &str) -> Result<Option<PathBuf>, String> {
        match self.get(name) {
            Some("on" | "") => Err(format!("option '{name}' has no value: use {name}=FILE")),
            path => Ok(path.map(PathBuf::from)),
        }
    }

    fn profile(&self) -> Result<Profile, String> {
        let mut profile = self.get("profile").map_or(Ok(Profile::ALL[0]), machine::profile)?;
        profile = processor::shown(profile, self.path("processor")?)?;
        let versions = "Intel's profiles have 1 to 6, AMD's no choice";
        let fixed = "Intel's profiles have 0 to 4 from version 2 on, AMD's none";
        let width = "Intel's profiles have 32 to 48, AMD's only 48";
        profile = self.with("version", Profile::with_version, profile, versions)?;
        profile = self.with("fixed", Profile::with_fixed, profile, fixed)?;
        profile = self.with("width", Profile::with_width, profile, width)?;
        profile = self.with("threads", Profile::with_threads, profile, "use 1 or 2")?;
        if let Some(text) = self.get("tsc") {
            profile = profile.with_tsc(text)?;
        }
        profile.geometry.pipeline = machine::pipeline(self.get("pipeline"), self.get("mode"))?;
        profile.geometry.perfect = machine::perfect(self.get("perfect"))?;
        profile.geometry.prefetch = machine::prefetch(self.get("prefetch"))?;
        profile.geometry.has_target_buffer = self.is_second("btb", ["no", "yes"])?;
        profile.geometry.has_uop_cache = self.is_second("uop-cache", ["no", "yes"])?;
        profile.geometry.has_wrong_paths = self.is_second("wrong-paths", ["no", "yes"])?;
        profile.geometry.has_rejections = self.is_second("rejections", ["no", "yes"])?;
        profile.geometry.has_large_pages = self.is_second("large-pages", ["no", "yes"])?;
        profile.geometry.assist = machine::assist(self.get("assist"))?;
        profile.geometry.stacks = self.is_second("stacks", ["no", "yes"])?;
        profile.geometry.oracle = self.get("instructions").is_some();
        machine::check_pipeline(&profile.geometry)?;
        Ok(profile)
    }

    /// Applies a numeric option to the profile by `change`. The error text contains `supported`,
    /// the valid values.
    fn with(
        &self,
        name: &str,
        change: fn(Profile, u8) -> Option<Profile>,
        profile: Profile,
        supported: &str,
    ) -> Result<Profile, String> {
        let Some(text) = self.get(name) else { return Ok(profile) };
        let changed = text.parse().ok().and_then(|number| change(profile, number));
        changed.ok_or_else(|| format!("{name}={text} is not supported: {supported}"))
    }

    fn series(&self) -> Result<Option<SeriesOptions>, String> {
        let interval = self.get("every").map_or(Ok(Interval::DEFAULT), |text| {
            Interval::parse(text).ok_or_else(|| {
                let min = Interval::MIN;
                format!(
                    "every={text} is no interval: use a number of at least {min} with i for \
                     instructions or c for cycles"
                )
            })
        })?;
        let is_signals = self.is_second("columns", ["events", "signals"])?;
        let columns = if is_signals { Columns::Signals } else { Columns::Events };
        match self.path("series")? {
            None => match ["every", "columns"].iter().find(|name| self.get(name).is_some()) {
                Some(name) => Err(format!("{name}=... needs a series: add series=FILE")),
                None => Ok(None),
            },
            Some(path) => Ok(Some(SeriesOptions { path, interval, columns })),
        }
    }

    /// Parses interrupts: `COUNT` on the first CPU or `CPU:COUNT`, joined by `+`.
    fn interrupts(&self) -> Result<Vec<(u32, u64)>, String> {
        let one = |text: &str| -> Option<(u32, u64)> {
            let (cpu, count) = text.split_once(':').unwrap_or(("0", text));
            Some((cpu.parse().ok()?, count.parse().ok()?))
        };
        let all = self.get("pmi").into_iter().flat_map(|list| list.split('+'));
        all.map(|text| {
            one(text).ok_or_else(|| {
                format!(
                    "pmi={text} is no list of interrupts: use COUNT or CPU:COUNT in instructions, \
                     joined by +"
                )
            })
        })
        .collect()
    }

    fn unlike(&self) -> Result<Option<u32>, String> {
        let Some(text) = self.get("unlike") else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("unlike={text} is no CPU: use a number"))
    }

    /// Returns whether an option with two values, of which the first is the default, has the
    /// second.
    fn is_second(&self, name: &str, [first, second]: [&str; 2]) -> Result<bool, String> {
        match self.get(name).unwrap_or(first) {
            text if text == first => Ok(false),
            text if text == second => Ok(true),
            text => Err(format!("{name}={text} is unknown: use {first} or {second}")),
        }
    }
}

impl PluginOptions {
    /// Parses `NAME=VALUE` arguments; of two with the same name the last is used.
    ///
    /// # Errors
    /// An option is unknown or has a wrong value: one line with a remedy.
    pub fn parse(arguments: &[String]) -> Result<PluginOptions, String> {
        let given = Given::parse(arguments)?;
        let profile = given.profile()?;
        let counters = general_counters(&profile, given.get("counters"))?;
        let unlike = given.unlike()?;
        if unlike.is_some() && counters == 1 {
            return Err("unlike=... leaves that CPU no counter: use counters=2 or more".to_owned());
        }
        Ok(PluginOptions {
            counters,
            unlike,
            quirks: Quirks::parse(|name| given.get(name), &profile, counters)?,
            has_unit: given.is_second("unit", ["no", "yes"])?,
            takes_unmodelled: given.is_second("unmodelled", ["refuse", "zero"])?,
            truth: given.path("truth")?,
            series: given.series()?,
            blocks: given.path("blocks")?,
            instructions: given.path("instructions")?,
            interrupts: given.interrupts()?,
            from_boot: given.is_second("from", ["first", "boot"])?,
            handlers: given.path("handlers")?,
            shadows: machine::shadows(given.get("shadows"))?,
            log: given.path("log")?,
            profile,
        })
    }
}

impl PluginOptions {
    /// Checks the options against a machine with this number of CPUs.
    ///
    /// # Errors
    /// An option names a CPU that the machine does not have.
    pub fn check_cpus(self, max_vcpus: u32) -> Result<PluginOptions, String> {
        let interrupted = self.interrupts.iter().map(|(cpu, _)| ("pmi", *cpu));
        let mut named = interrupted.chain(self.unlike.map(|cpu| ("unlike", cpu)));
        match named.find(|(_, cpu)| *cpu >= max_vcpus) {
            Some((name, cpu)) => {
                Err(format!("{name}={cpu} is no CPU of this machine: use 0 to {}", max_vcpus - 1))
            }
            None => Ok(self),
        }
    }

    /// The general counters of a CPU.
    pub fn counters_of(&self, cpu: u32) -> u8 {
        self.counters - u8::from(self.unlike == Some(cpu))
    }
}

fn general_counters(profile: &Profile, asked_for: Option<&str>) -> Result<u8, String> {
    let (default, most) = profile.counters;
    let Some(text) = asked_for else { return Ok(default) };
    text.parse().ok().filter(|count| (1..=most).contains(count)).ok_or_else(|| {
        format!("counters={text} is not supported: {} has 1 to {most}", profile.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn parse(arguments: &[&str]) -> Result<PluginOptions, String> {
        PluginOptions::parse(&arguments.iter().map(|text| text.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn defaults_follow_the_profile_in_any_order() {
        assert_eq!(parse(&[]).map(|options| options.counters), Ok(4));
        assert_eq!(parse(&["truth=x", "profile=zen4"]).map(|options| options.counters), Ok(6));
        assert_eq!(parse(&["counters=8"]).map(|options| options.counters), Ok(8));
        assert_eq!(parse(&["unit=yes"]).map(|options| options.has_unit), Ok(true));
    }

    #[test]
    fn series_and_interrupts_are_parsed() {
        let series = |every: &str| {
            let options = parse(&["series=x", every])?;
            Ok::<_, String>(options.series.map(|series| series.interval))
        };
        assert_eq!(series("every=1000i"), Ok(Some(Interval::Instructions(1_000))));
        assert_eq!(series("every=50000c"), Ok(Some(Interval::Cycles(50_000))));
        let columns = parse(&["series=x", "columns=signals"]).map(|it| it.series.unwrap().columns);
        assert_eq!(columns, Ok(Columns::Signals));
        for bad in ["every=", "every=999i", "every=1000", "every=1000é", "every=xi"] {
            assert!(series(bad).is_err(), "{bad}");
        }
        let interrupts = parse(&["pmi=10+1:20"]).map(|options| options.interrupts);
        assert_eq!(interrupts, Ok(vec![(0, 10), (1, 20)]));
        let cpus = |count| parse(&["pmi=10+1:20"]).and_then(|options| options.check_cpus(count));
        assert!(cpus(2).is_ok() && cpus(1).is_err());
    }

    #[test]
    fn errors_name_the_wrong_option() {
        for (argument, part) in [
            ("profile=p4", "unknown profile 'p4'"),
            ("counters=9", "counters=9"),
            ("counters=0", "counters=0"),
            ("version=7", "version=7"),
            ("speed=1", "unknown option 'speed'"),
            ("truth", "has no value"),
            ("truth=on", "use truth=FILE"),
            ("handlers=on", "use handlers=FILE"),
            ("blocks=on", "use blocks=FILE"),
            ("instructions=x", "add pipeline=ooo"),
            ("mode=odd", "unknown mode 'odd'"),
            ("pipeline=fast", "unknown pipeline 'fast'"),
            ("mode=single", "add pipeline=ooo"),
            ("prefetch=l1-stride+l3", "prefetch=l3"),
            ("assist=cache", "use data, code or branch"),
            ("perfect=l1d+l4", "perfect=l4"),
            ("fixed=5", "fixed=5"),
            ("width=31", "width=31"),
            ("tsc=0", "tsc=0"),
            ("every=1000i", "add series"),
            ("columns=signals", "add series"),
            ("columns=all", "use events or signals"),
            ("pmi=100+x", "pmi=x"),
            ("from=now", "from=now"),
            ("unit=on", "use no or yes"),
            ("large-pages=2m", "use no or yes"),
            ("stacks=yes", "add pipeline=ooo"),
            ("shadows=l1d+l4", "shadows=l1d+l4"),
        ] {
            let error = parse(&[argument]).expect_err(argument);
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
    }
}
