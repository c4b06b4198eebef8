//! Jobs on the kernel's command line: programs that run at the same time, one job after another.

use serde::{Deserialize, Serialize};

use crate::program::{BadOption, Program};

/// Programs that run at the same time, on the kernel's command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job<'a>(&'a str);

impl<'a> Job<'a> {
    pub(crate) fn new(programs: &'a str) -> Job<'a> {
        Job(programs)
    }

    /// The programs, without those that have no name. A program with a bad option is an error.
    pub fn programs(&self) -> impl Iterator<Item = Result<Program<'a>, BadOption<'a>>> + use<'a> {
        let has_name = |program: &Program| program.words.clone().next().is_some();
        let programs = self.0.split(" -- ").map(Program::parse);
        programs.filter(move |program| program.as_ref().is_ok_and(has_name) || program.is_err())
    }
}

/// A job's place on the command line, and its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobNumber {
    /// The job's place among those of the command line, from 1.
    pub number: u32,
    /// The job's seed: the command line's, plus one in each repetition.
    pub seed: u64,
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::boot::CommandLine;
    use std::{vec, vec::Vec};

    #[test]
    fn jobs_follow_each_other_and_are_repeated() {
        let line = CommandLine::parse("seed=7 repeat=2 -- a --x -- b --- events=e c").unwrap();
        let names = |job: Job<'static>| -> Vec<&str> {
            job.programs().map(|program| program.unwrap().words.next().unwrap()).collect()
        };
        let all: Vec<_> = (0..).map_while(|index| line.job(index)).collect();
        let numbers: Vec<_> = all.iter().map(|(number, _)| (number.number, number.seed)).collect();
        assert_eq!(numbers, [(1, 7), (2, 7), (1, 8), (2, 8)]);
        assert_eq!((names(all[0].1), names(all[3].1)), (vec!["a", "b"], vec!["c"]));
        assert_eq!(line.programs().count(), 3);
        assert_eq!(CommandLine::parse("").unwrap().jobs().count(), 1);
    }
}
