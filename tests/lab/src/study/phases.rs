//! `cargo xtask study phases`: the phases that the kernel tracks on line, compared with the truth.
//!
//! Each program runs with `run --phases`, and the virtual PMU writes a series of the truth. The
//! true counts of an interval make the true vector (paper 004, section VI).

mod compared;
mod judge;
mod table;

use std::{ops::RangeInclusive, path::Path, time::Duration};

use clap::Args;
use tally_abi::{ExitStatus, phase::Classifier};
use xtask::{
    Failure, Result,
    machine::{self, Artefacts, Pmu, Request},
    output, phases,
    project::Project,
    report::{Report, Series, stack_of},
    run::RunArgs,
    setup,
};

use self::judge::{Judgement, PmuStudy, Study};
use super::seeds;

/// Time limit of a machine: others may run at the same time.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// Instructions between two rows of the series.
const EVERY: u64 = 20_000;
/// Default of `--program`: a program with planted phases, short and long ones, and programs with
/// which no parameter of the phases was tuned.
const PROGRAMS: [&str; 10] = [
    "bottleneck 6 chase 300000 branch 300000 divide 150000",
    "bottleneck 6 chase 1200000 branch 1200000 divide 600000",
    "deflate",
    "rounds 5 200000",
    "busybox awk BEGIN{for(i=0;i<200000;i++)s+=i%7;print(s)}",
    "busybox bzip2 -k corpus.txt",
    "busybox gzip -k corpus.txt",
    "busybox sort corpus.txt -o sorted",
    "busybox sha256sum corpus.txt",
    "busybox awk {n+=NF;l[$1]++}END{print(n)} corpus.txt",
];

/// Options of `cargo xtask study phases`.
#[derive(Args, Clone, Debug)]
pub(super) struct PhasesArgs {
    /// Run the seeds 1 to N, or A to B
    #[arg(long, value_name = "N|A..B", default_value = "2", value_parser = seeds::parse)]
    seeds: RangeInclusive<u64>,
    /// PMU of the machines; repeatable [default: one of each vendor]
    #[arg(long, value_enum)]
    pmu: Vec<Pmu>,
    /// A program and its arguments, in one argument; repeatable [default: ten programs]
    #[arg(long, value_name = "WORDS")]
    program: Vec<String>,
    /// The fewest instructions of an interval
    #[arg(long, value_name = "INSTRUCTIONS", default_value_t = 1_000_000)]
    interval: u64,
    /// Kind of the classes
    #[arg(long, value_name = "KIND", default_value = "centroid", value_parser = phases::classes)]
    classes: Classifier,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

impl PhasesArgs {
    /// The PMUs, each once: one that is named twice would have twice the weight.
    fn pmus(&self) -> Vec<Pmu> {
        let mut pmus: Vec<Pmu> = Vec::new();
        for pmu in &self.pmu {
            if !pmus.contains(pmu) {
                pmus.push(*pmu);
            }
        }
        if pmus.is_empty() { vec![Pmu::Intel, Pmu::Amd] } else { pmus }
    }

    fn programs(&self) -> Vec<&str> {
        match &*self.program {
            [] => PROGRAMS.to_vec(),
            programs => programs.iter().map(String::as_str).collect(),
        }
    }

    /// The run of a machine, whose series is written to the file `series`.
    ///
    /// # Errors
    /// An option is not valid.
    fn run(&self, machine: Machine, series: &str) -> Result<RunArgs> {
        let Machine { pmu, program, seed } = machine;
        let pmu = pmu.name();
        let (interval, classes) = (self.interval, self.classes.word());
        RunArgs::of(&format!(
            "cargo xtask run --pmu {pmu} --seed {seed} --phases={interval} --phase-classes \
             {classes} --slice 20000 --budget 50 --vpmu series={series},every={EVERY}i \
             -- {program}"
        ))
    }
}

/// Program and seed of a machine.
#[derive(Clone, Copy, Debug)]
struct Machine<'a> {
    pmu: Pmu,
    program: &'a str,
    seed: u64,
}

pub(super) fn main(project: &Project, args: &PhasesArgs) -> Result<u8> {
    let (pmus, programs) = (args.pmus(), args.programs());
    // Options are refused before anything is built.
    for pmu in &pmus {
        args.run(Machine { pmu: *pmu, program: programs[0], seed: 1 }, "series")?.request()?;
        phases::costs(&machine::virtual_pmu_of(*pmu, &[])?)?;
    }
    let on_demand = vec![setup::linux(project)?.busybox];
    let artefacts = Artefacts { on_demand, ..Artefacts::make(project)? };
    let machines = machines(&pmus, &programs, args.seeds.clone());
    let judged = seeds::in_parallel("machines", 0..=machines.len() as u64 - 1, |number| {
        run_machine(&artefacts, args, machines[number as usize], number)
    })?;
    let study = study(&pmus, &programs, &judged);
    output::print(args.json, &study, &table::render(&study))?;
    Ok(if study.holds { 0 } else { ExitStatus::CheckFailed.into() })
}

/// All machines: by PMU, by program, by seed.
fn machines<'a>(
    pmus: &[Pmu],
    programs: &[&'a str],
    seeds: RangeInclusive<u64>,
) -> Vec<Machine<'a>> {
    let of = |pmu, program| seeds.clone().map(move |seed| Machine { pmu, program, seed });
    let of_pmu = |pmu: &Pmu| programs.iter().flat_map(|program| of(*pmu, *program)).collect();
    pmus.iter().flat_map(|pmu| -> Vec<Machine<'a>> { of_pmu(pmu) }).collect()
}

/// Makes the study from judgements in the order of [`machines`].
fn study(pmus: &[Pmu], programs: &[&str], judged: &[Judgement]) -> Study {
    let seeds = judged.len() / (pmus.len() * programs.len());
    let of_pmu = |(pmu, judged): (&Pmu, &[Judgement])| {
        let runs = programs.iter().zip(judged.chunks(seeds));
        PmuStudy::of(pmu.profile().name, runs.map(|(name, runs)| (*name, Judgement::sum(runs))))
    };
    let by_pmu = judged.chunks(programs.len() * seeds);
    Study::of(pmus.iter().zip(by_pmu).map(of_pmu).collect())
}

fn run_machine(
    artefacts: &Artefacts,
    args: &PhasesArgs,
    machine: Machine,
    number: u64,
) -> Result<Judgement> {
    let name = format!("tally-study-phases-{}-{number}.csv", std::process::id());
    let path = std::env::temp_dir().join(name);
    let judged = judged(artefacts, args, machine, &path);
    for suffix in ["", "-metadata.json"] {
        // The file does not exist if the machine failed.
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    judged
}

fn judged(
    artefacts: &Artefacts,
    args: &PhasesArgs,
    machine: Machine,
    path: &Path,
) -> Result<Judgement> {
    let run = args.run(machine, &path.display().to_string())?;
    let request = Request { time_limit: TIME_LIMIT, ..run.request()? };
    let boot = seeds::boot(artefacts, &request, machine.seed)?;
    let report = Report::with(&boot, run.plan()?.as_ref(), &run.additions());
    let lacks = |what: &str| {
        let Machine { pmu, program, seed } = machine;
        let of = format!("{}, {program}, seed {seed}", pmu.profile().name);
        Failure::new(ExitStatus::CheckFailed, format!("{of}: {what}"))
    };
    let found = report.first.and_then(|session| session.phases);
    let found = found.ok_or_else(|| lacks("the run has no phases"))?;
    let pmu = machine::virtual_pmu_of(machine.pmu, &[])?;
    let stack = stack_of(machine.pmu.signature()).ok_or_else(|| lacks("no CPI stack"))?;
    let series = Series::read(path, 1, stack.instructions)?;
    let events = phases::events(&pmu)?;
    let (model, events) = phases::costs(&pmu)?.model_of(|event| events.contains(&event));
    let truth = series.counted(&found.intervals, &events);
    let truth = truth.ok_or_else(|| lacks("the series lacks an event of the model"))?;
    Ok(Judgement::of(&found, &model, &truth))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(pmu: Vec<Pmu>) -> PhasesArgs {
        PhasesArgs {
            seeds: 1..=3,
            pmu,
            program: Vec::new(),
            interval: 1_000_000,
            classes: Classifier::Centroid,
            json: false,
        }
    }

    #[test]
    fn both_vendors_are_the_default_and_each_pmu_counts_once() {
        assert_eq!(args(Vec::new()).pmus(), [Pmu::Intel, Pmu::Amd]);
        assert_eq!(args(vec![Pmu::Zen3, Pmu::Intel, Pmu::Zen3]).pmus(), [Pmu::Zen3, Pmu::Intel]);
    }

    #[test]
    fn each_machine_is_judged_under_its_own_pmu_and_program() {
        let (pmus, programs) = ([Pmu::Intel, Pmu::Amd], ["one", "two"]);
        let machines = machines(&pmus, &programs, 2..=4);
        // The number of intervals identifies the machine.
        let number = |machine: &Machine| {
            let pmu = if machine.pmu == Pmu::Amd { 1_000 } else { 0 };
            pmu + if machine.program == "two" { 100 } else { 0 } + machine.seed as usize
        };
        let judged: Vec<Judgement> = machines
            .iter()
            .map(|machine| Judgement { intervals: number(machine), ..Judgement::default() })
            .collect();
        let study = study(&pmus, &programs, &judged);
        let found: Vec<Vec<usize>> = study
            .pmus
            .iter()
            .map(|of| of.programs.iter().map(|(_, judged)| judged.intervals).collect())
            .collect();
        assert_eq!(found, [[9, 309], [3_009, 3_309]]);
        assert_eq!(study.pmus[1].pmu, Pmu::Amd.profile().name);
        assert_eq!(study.all.intervals, 9 + 309 + 3_009 + 3_309);
    }
}
