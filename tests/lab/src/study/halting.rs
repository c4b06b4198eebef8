//! `cargo xtask study halting`: repeats paper 003's experiment.
//!
//! Programs run unhalted and with halts of several lengths and frequencies, whose phases the seeds
//! select. The truth of their events in ring 3 is compared pair by pair: a halted run with the
//! unhalted one of the same seed. Decision 35 has the statistics.

mod experiment;
mod identity;
mod paper;
mod picture;
mod render;
mod results;
mod statistics;
mod traced;

use std::{ops::RangeInclusive, path::PathBuf};

use clap::Args;
use tally_abi::{
    ExitStatus,
    boot::MIN_HALTING_PAGES,
    halt::{HaltTimer, Halts, MAX_FOOTPRINT_BYTES, MAX_PERIOD_CYCLES, MIN_PERIOD_CYCLES},
    trace::RING_PAGES,
    words::escape,
};
use xtask::{
    Failure, Result,
    guest_files::GuestFile,
    machine::{Artefacts, Pmu},
    output,
    project::{self, Project},
    ramdisk, setup,
};

use self::{
    experiment::{Counted, LINES, Line, Scale},
    results::{HaltingStudy, ProgramResult, compare},
};
use super::seeds;

/// Default of `--program`: Tally's own programs, and Debian's busybox.
const PROGRAMS: [&str; 6] = [
    "rounds 1 60000",
    "rounds 3 20000",
    "busybox wc corpus.txt",
    "busybox grep -c unsafe corpus.txt",
    "busybox strings -n 60 corpus.txt",
    "busybox cut -c 1-3 corpus.txt",
];
/// Bounds of the halts' periods in the paper: every 8 s, and every 1/10 s.
const LONGEST_PERIOD_S: u64 = 8;
const SHORTEST_PERIODS_OF_A_SECOND: u64 = 10;

/// Options of `cargo xtask study halting`.
#[derive(Args, Clone, Debug)]
pub(super) struct HaltingArgs {
    /// Run the seeds 1 to N, or A to B; two or more
    #[arg(long, value_name = "N|A..B", default_value = "5", value_parser = seeds::parse)]
    seeds: RangeInclusive<u64>,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// A program and its arguments, in one argument; repeatable [default: six programs]
    #[arg(long, value_name = "WORDS")]
    program: Vec<String>,
    /// Put a file of this machine into the ramdisk, under its name: a static program, or its input
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Core cycles that stand for a second of the paper's
    #[arg(long, value_name = "CYCLES", default_value_t = 100_000, value_parser = second)]
    second: u64,
    /// Bytes that each halt touches
    #[arg(long, value_name = "BYTES", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(0..=MAX_FOOTPRINT_BYTES))]
    footprint: u64,
    /// Compare only halts of 10,000 to 100,000,000 cycles at the same places
    #[arg(long)]
    same_places: bool,
    /// Cycles in ring 3 between two such halts
    #[arg(long, value_name = "CYCLES", default_value_t = 2_000_000, value_parser = period)]
    same_places_period: u64,
    /// Compare only programs whose trace halts them while its ring is half full with untraced ones
    #[arg(long, conflicts_with_all = ["same_places", "picture"])]
    trace_halt: bool,
    /// Pages of 2 KiB of the ring of such a trace
    #[arg(long, value_name = "PAGES", default_value_t = MIN_HALTING_PAGES as u64,
          requires = "trace_halt",
          value_parser = clap::value_parser!(u64).range(MIN_HALTING_PAGES as u64..=RING_PAGES as u64))]
    trace_ring: u64,
    /// Write a picture of what halts change to this file, in SVG
    #[arg(long, value_name = "FILE", conflicts_with = "same_places")]
    picture: Option<PathBuf>,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

fn second(text: &str) -> std::result::Result<u64, String> {
    let least = MIN_PERIOD_CYCLES * SHORTEST_PERIODS_OF_A_SECOND;
    let most = MAX_PERIOD_CYCLES / LONGEST_PERIOD_S;
    let cycles = text.parse().ok().filter(|cycles| (least..=most).contains(cycles));
    cycles.ok_or_else(|| format!("use {least} to {most} cycles"))
}

fn period(text: &str) -> std::result::Result<u64, String> {
    let cycles = text.parse().ok();
    cycles
        .filter(|cycles| (MIN_PERIOD_CYCLES..=MAX_PERIOD_CYCLES).contains(cycles))
        .ok_or_else(|| format!("use {MIN_PERIOD_CYCLES} to {MAX_PERIOD_CYCLES} cycles"))
}

impl HaltingArgs {
    /// Checks the options before anything is built.
    fn check(&self) -> Result<()> {
        let refused = |why: &str| Err(Failure::new(ExitStatus::Usage, why));
        if self.seeds.start() == self.seeds.end() {
            return refused("one seed has no t interval: use --seeds 2 or more");
        }
        if self.program.iter().any(|program| program.split_whitespace().next().is_none()) {
            return refused("--program names no program: name one, or omit the option");
        }
        if let Some(path) = &self.picture {
            project::check_writable(path)?;
        }
        ramdisk::check_files(&self.file, &[ramdisk::CORPUS])
    }

    /// The programs in the form of the kernel's command line.
    fn programs(&self) -> Vec<String> {
        let words = |text: &str| {
            text.split_whitespace().map(|word| escape(word).to_string()).collect::<Vec<_>>()
        };
        let all = match &*self.program {
            [] => PROGRAMS.map(str::to_owned).to_vec(),
            programs => programs.to_vec(),
        };
        all.iter().map(|program| words(program).join(" ")).collect()
    }

    fn scale(&self) -> Scale {
        Scale { second_cycles: self.second, footprint_bytes: self.footprint }
    }
}

pub(super) fn main(project: &Project, args: &HaltingArgs) -> Result<u8> {
    args.check()?;
    let mut files = args.file.clone();
    if args.program.is_empty() {
        files.push(setup::linux(project)?.busybox);
    }
    let artefacts = Artefacts::make_for_run(project, &GuestFile::by_names(&files))?;
    let names = args.programs();
    let study = study(&artefacts, args, &names)?;
    if let Some(path) = &args.picture {
        project::write(path, picture::draw(&study)?.as_bytes())?;
    }
    output::print(args.json, &study, &render::render(&study))?;
    Ok(0)
}

/// Runs the requested parts of the study.
fn study(artefacts: &Artefacts, args: &HaltingArgs, names: &[String]) -> Result<HaltingStudy> {
    let seeds: Vec<u64> = args.seeds.clone().collect();
    let mut study = HaltingStudy {
        pmu: args.pmu.profile().name,
        seeds: seeds.len(),
        first_seed: *args.seeds.start(),
        scale: args.scale(),
        programs: Vec::new(),
        same_places: Vec::new(),
        traced: Vec::new(),
    };
    if args.trace_halt {
        study.traced = traced::run(artefacts, args.pmu, names, &seeds, args.trace_ring)?;
        return Ok(study);
    }
    if !args.same_places {
        study.programs = measure(artefacts, args, names)?;
    }
    study.same_places = identity::run(artefacts, args.pmu, names, args.same_places_period)?;
    Ok(study)
}

/// Runs every program with every seed: unhalted, and with the halts of all lines.
fn measure(
    artefacts: &Artefacts,
    args: &HaltingArgs,
    programs: &[String],
) -> Result<Vec<ProgramResult>> {
    let halts = args.scale().all();
    let conditions: Vec<Option<Halts>> =
        [None].into_iter().chain(halts.iter().copied().map(Some)).collect();
    let seeds: Vec<u64> = args.seeds.clone().collect();
    let of_program = seeds.len() * conditions.len();
    let all = programs.len() * of_program;
    let runs = seeds::in_parallel("machines", 0..=all as u64 - 1, |index| {
        let (program, rest) = (index as usize / of_program, index as usize % of_program);
        let (seed, condition) = (rest / conditions.len(), rest % conditions.len());
        let (seed, halts) = (seeds[seed], conditions[condition]);
        let line = experiment::command_line(&programs[program], seed, halts, HaltTimer::Running);
        experiment::run(artefacts, args.pmu, line, seed)
    })?;
    let by_program = programs.iter().zip(runs.chunks(of_program));
    let result = |(program, runs): (&String, &[Counted])| {
        let by_seed: Vec<&[Counted]> = runs.chunks(conditions.len()).collect();
        let line = |line: &Line| compare(line, args.scale(), &halts, &by_seed);
        ProgramResult { program: program.clone(), lines: LINES.iter().map(line).collect() }
    };
    Ok(by_program.map(result).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{statistics::Class, *};

    /// Runs of a program of a million cycles, in which each halt adds 3 misses, whatever its
    /// length.
    fn study() -> HaltingStudy {
        let scale = Scale { second_cycles: 100_000, footprint_bytes: 0 };
        let all = scale.all();
        let run = |seed: u64, halts: Option<&Halts>| {
            let count = halts.map_or(0, |halts| (1_000_000 + seed) / halts.period_cycles);
            let events = [
                ("INST_RETIRED.ANY", 9_000),
                ("MEM_LOAD_RETIRED.L1_MISS", 1_000 + 3 * count + seed % 2 * u64::from(count > 0)),
            ];
            Counted {
                events: BTreeMap::from(events.map(|(name, count)| (name.to_owned(), count))),
                halts: count,
                mean_cycles: halts.map_or(0.0, |halts| halts.length_cycles as f64),
                ..Counted::default()
            }
        };
        let runs: Vec<Vec<Counted>> = (0..5)
            .map(|seed| {
                let halted = all.iter().map(|halts| run(seed, Some(halts)));
                [run(seed, None)].into_iter().chain(halted).collect()
            })
            .collect();
        let by_seed: Vec<&[Counted]> = runs.iter().map(Vec::as_slice).collect();
        let lines = LINES.iter().map(|line| compare(line, scale, &all, &by_seed)).collect();
        let program = ProgramResult { program: "p".into(), lines };
        HaltingStudy {
            pmu: "icelake-server",
            seeds: 5,
            first_seed: 1,
            scale,
            programs: vec![program],
            same_places: Vec::new(),
            traced: Vec::new(),
        }
    }

    #[test]
    fn misses_that_each_halt_adds_are_a_step_by_length_and_linear_by_frequency() {
        let study = study();
        let classes: Vec<[Class; 2]> = study.programs[0]
            .lines
            .iter()
            .map(|line| [line.events[0].class, line.events[1].class])
            .collect();
        let of = |class| [Class::None, class];
        assert_eq!(classes[..3], [of(Class::Step), of(Class::Step), of(Class::Linear)]);
        let misses = &study.programs[0].lines[2].events[1];
        assert!((misses.effect.slope.mean - 3.0).abs() < 0.01, "{misses:?}");
        assert_eq!((misses.points.len(), misses.points[4].period_cycles), (5, 10_000));
        assert!((misses.points[4].difference.mean - 300.4).abs() < 0.1, "{misses:?}");
    }

    #[test]
    fn tables_and_picture_have_the_classes_and_the_paper_s() {
        let study = study();
        let text = render::render(&study);
        for part in ["Table III", "L1 misses", "step", "linear", "100,000 cycles"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let svg = picture::draw(&study).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("L1 misses"), "{svg}");
    }

    #[test]
    fn bad_options_are_refused_before_a_boot() {
        use clap::FromArgMatches;
        let parser = || HaltingArgs::augment_args(clap::Command::new("x").no_binary_name(true));
        let check = |words: &[&str]| {
            let mut parsed = parser().try_get_matches_from(words).unwrap();
            HaltingArgs::from_arg_matches_mut(&mut parsed).unwrap().check().map_err(|e| e.status)
        };
        assert!(check(&[]).is_ok());
        assert_eq!(check(&["--seeds", "7..7"]), Err(ExitStatus::Usage));
        assert_eq!(check(&["--program", " "]), Err(ExitStatus::Usage));
        assert_eq!(check(&["--file", "/nothing"]), Err(ExitStatus::ProgramNotFound));
        for words in
            [["--second", "9999"], ["--footprint", "8388609"], ["--same-places-period", "9"]]
        {
            assert!(parser().try_get_matches_from(words).is_err(), "{words:?}");
        }
    }
}
