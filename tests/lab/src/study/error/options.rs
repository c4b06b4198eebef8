//! The options of `cargo xtask study error`: programs and seeds.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use clap::Args;
use tally_abi::{ExitStatus, Slice, events};
use tally_engine::Plan;
use xtask::{
    Failure, Result,
    explain::{self, Asked},
    job::{self, Job},
    machine::{self, Pmu, Request},
    project::Project,
    ramdisk, setup,
};

use crate::study::seeds;

/// Time limit of a machine: others may run at the same time.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// Programs of `--programs`, besides the default job: Tally's own programs, and Debian's busybox.
/// No parameter of the engine was chosen with these.
const PROGRAMS: [&str; 10] = [
    // A start-up and then a steady loop.
    "busybox awk BEGIN{for(i=0;i<10000;i++)s+=i%7;print(s)}",
    "busybox awk BEGIN{for(i=0;i<50000;i++)s+=i%7;print(s)}",
    "busybox awk BEGIN{for(i=0;i<200000;i++)s+=i%7;print(s)}",
    // Phases.
    "busybox bzip2 -k corpus.txt",
    "busybox gzip -k corpus.txt",
    "busybox sort corpus.txt -o sorted",
    // Periodic, by lines or blocks.
    "busybox sha256sum corpus.txt",
    "busybox awk {n+=NF;l[$1]++}END{print(n)} corpus.txt",
    // Short.
    "busybox grep -c unsafe corpus.txt",
    "busybox wc corpus.txt",
];

/// Options of `cargo xtask study error`.
#[derive(Args, Clone, Debug)]
pub(in crate::study) struct ErrorArgs {
    /// Run the seeds 1 to N, or A to B
    #[arg(long, value_name = "N|A..B", default_value = "20", value_parser = seeds::parse)]
    pub(super) seeds: RangeInclusive<u64>,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// A program and its arguments, in one argument, in place of the default job; --events counts
    /// its whole run; repeatable
    #[arg(long, value_name = "WORDS")]
    program: Vec<String>,
    /// The default job and ten programs, which have nothing in common with it
    #[arg(long, conflicts_with = "program")]
    programs: bool,
    /// Judge the refined estimates too, which `run --refine` prints
    #[arg(long)]
    pub(super) refine: bool,
    /// Put a file of this machine into the ramdisk, under its name: a static program, or its input
    #[arg(long, value_name = "PATH")]
    pub(super) file: Vec<PathBuf>,
    /// Events to count, separated by commas; without it, the program's own list
    #[arg(long, value_name = "LIST")]
    events: Option<String>,
    /// Length of a time slice in cycles, or auto: the shortest that keeps the budget [default:
    /// auto]
    #[arg(long, value_name = "CYCLES", value_parser = job::slice_option)]
    slice: Option<Slice>,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    pub(super) json: bool,
}

impl ErrorArgs {
    /// The programs with their arguments; an empty text is the default job.
    pub(super) fn programs(&self) -> Vec<&str> {
        match (&*self.program, self.programs) {
            ([], false) => vec![""],
            ([], true) => [""].into_iter().chain(PROGRAMS).collect(),
            (programs, _) => programs.iter().map(String::as_str).collect(),
        }
    }

    /// The job of a program with a seed.
    pub(super) fn job(&self, seed: u64, program: &str) -> Job {
        let of_all = || events::default_list(self.pmu.signature());
        let all = || events::words(of_all()).collect::<Vec<_>>().join(",");
        let is_of_list = self.programs && !program.is_empty();
        let events = self.events.clone().or_else(|| is_of_list.then(all));
        Job { seed, events, slice: self.slice, ..Job::default() }
    }

    /// The words of a program; empty for the default job.
    ///
    /// # Errors
    /// There are no words.
    fn words(&self, program: &str) -> Result<Vec<String>> {
        let words: Vec<String> = program.split_whitespace().map(str::to_owned).collect();
        if !self.program.is_empty() && words.is_empty() {
            let why = "--program names no program: name one, or omit the option";
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        Ok(words)
    }

    /// The machine for a seed of a program.
    ///
    /// # Errors
    /// An option is not valid.
    pub(super) fn request(&self, seed: u64, program: &str) -> Result<Request> {
        let job = self.job(seed, program);
        job.check()?;
        let options = if self.refine { "wire trace" } else { "wire" };
        let job = job.around(options, &self.words(program)?)?;
        Ok(Request { pmu: self.pmu, time_limit: TIME_LIMIT, ..Request::new(job) })
    }

    /// The plan of a program's events, with which its trace is read.
    ///
    /// # Errors
    /// The list of events is unknown before the run, or refused.
    pub(super) fn plan(&self, program: &str) -> Result<Plan> {
        let pmu = machine::virtual_pmu_of(self.pmu, &[])?;
        let seed = *self.seeds.start();
        let asked =
            Asked::of(&self.job(seed, program), &self.words(program)?, self.pmu.signature())?;
        explain::plan_of(&pmu, &asked).map(|(_, plan)| plan)
    }

    /// The files that the machine gets.
    ///
    /// # Errors
    /// A package cannot be fetched.
    pub(super) fn files(&self, project: &Project) -> Result<Vec<PathBuf>> {
        let mut files = self.file.clone();
        if self.programs {
            files.push(setup::linux(project)?.busybox);
        }
        Ok(files)
    }

    /// Checks the options before anything is built.
    ///
    /// # Errors
    /// An option is not valid.
    pub(super) fn check(&self) -> Result<()> {
        for program in self.programs() {
            self.request(*self.seeds.start(), program)?;
            if self.refine {
                self.plan(program)?;
            }
        }
        ramdisk::check_files(&self.file, &[ramdisk::CORPUS])
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    fn args(words: &[&str]) -> ErrorArgs {
        let parser = ErrorArgs::augment_args(clap::Command::new("error").no_binary_name(true));
        let mut parsed = parser.try_get_matches_from(words).unwrap();
        ErrorArgs::from_arg_matches_mut(&mut parsed).unwrap()
    }

    fn line(words: &[&str]) -> String {
        let args = args(words);
        args.request(3, args.programs()[0]).unwrap().command_line
    }

    #[test]
    fn without_options_it_is_the_default_job_with_20_seeds() {
        assert_eq!(args(&[]).seeds, 1..=20);
        assert_eq!(line(&[]), Job { seed: 3, ..Job::default() }.command_line("wire"));
    }

    #[test]
    fn events_and_slice_apply_to_the_default_job_or_around_a_program() {
        let options = ["--events", "A,B", "--slice", "5000"];
        assert_eq!(line(&options), "seed=3 wire -- deflate --events A,B --slice 5000");
        let own = [&options[..], &["--program", "hello x"]].concat();
        assert_eq!(line(&own), "seed=3 wire -- events=A,B slice=5000 hello x");
        assert_eq!(line(&["--program", "stat -e A hello"]), "seed=3 wire -- tally stat -e A hello");
    }

    #[test]
    fn bad_options_are_refused_before_a_boot() {
        let status = |words: &[&str]| args(words).check().unwrap_err().status;
        assert_eq!(status(&["--file", "/nothing"]), ExitStatus::ProgramNotFound);
        assert_eq!(status(&["--program", " "]), ExitStatus::Usage);
        assert_eq!(status(&["--program", "hello", "--slice", "5000"]), ExitStatus::Usage);
        assert_eq!(status(&["--slice", "7"]), ExitStatus::SliceOutOfRange);
    }
}
