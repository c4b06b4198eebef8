//! The options of `cargo xtask study error`: what it runs, and with which seeds.

use std::{ops::RangeInclusive, path::PathBuf};

use clap::Args;
use tally_abi::{ExitStatus, Slice};

use crate::{
    Failure, Result, job,
    job::Job,
    machine::{Pmu, Request},
    ramdisk,
    study::seeds,
};

/// Options of `cargo xtask study error`.
#[derive(Args, Clone, Debug)]
pub(super) struct ErrorArgs {
    /// Run the seeds 1 to N, or A to B
    #[arg(long, value_name = "N|A..B", default_value = "20", value_parser = seeds::parse)]
    pub(super) seeds: RangeInclusive<u64>,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// A program and its arguments, in one argument, in place of the default job; --events counts
    /// its whole run
    #[arg(long, value_name = "WORDS")]
    program: Option<String>,
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
    /// The machine for one seed.
    ///
    /// # Errors
    /// An option is not valid.
    pub(super) fn request(&self, seed: u64) -> Result<Request> {
        let (events, slice) = (self.events.clone(), self.slice);
        let job = Job { seed, events, slice, ..Job::default() };
        job.check()?;
        let words = self.program.iter().flat_map(|program| program.split_whitespace());
        let command: Vec<String> = words.map(str::to_owned).collect();
        if self.program.is_some() && command.is_empty() {
            let why = "--program names no program: name one, or omit the option";
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        Ok(Request { pmu: self.pmu, ..Request::new(job.around("wire", &command)?) })
    }

    /// Checks the options before anything is built.
    ///
    /// # Errors
    /// One is not valid.
    pub(super) fn check(&self) -> Result<()> {
        self.request(*self.seeds.start())?;
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
        args(words).request(3).unwrap().command_line
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
