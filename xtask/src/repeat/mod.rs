//! `cargo xtask run --repeat N`: several runs with consecutive seeds, merged into one table.

mod estimate;
mod merged;

pub use self::merged::{Merged, MergedEvent, MergedSession, OneRun, render};
use crate::{
    Result,
    machine::{self, Artefacts, Boot, Outcome, Request},
    progress::Step,
};

/// The runs of each job that a machine ran more than once, merged, with the job's number.
///
/// # Errors
/// The runs of a job have different sessions.
pub fn jobs(boot: &Boot) -> Result<Vec<(u32, Merged)>> {
    let repeated = OneRun::of_jobs(boot).into_iter().filter(|(_, runs)| runs.len() > 1);
    repeated.map(|(number, runs)| Ok((number, Merged::of(&runs)?))).collect()
}

/// Result of several runs.
#[derive(Debug)]
pub enum Repeated {
    /// Merged: every run's programs ended by themselves.
    Merged(Merged),
    /// Failed: a run ended otherwise; the runs after it were not started. Those before it are
    /// merged, if there were several.
    Failed(Box<Boot>, Option<Merged>),
}

/// Boots the machines, two or more, one after another.
///
/// # Errors
/// A machine cannot be booted, or the runs have different sessions.
pub fn repeat(artefacts: &Artefacts, requests: &[Request]) -> Result<Repeated> {
    let step = Step::start(format!("Running {} machines", requests.len()));
    let mut runs = Vec::new();
    for request in requests {
        let boot = machine::boot(artefacts, request, &mut |_| {})?;
        if !matches!(boot.outcome, Outcome::Done(_)) {
            let merged = (runs.len() > 1).then(|| Merged::of(&runs)).transpose()?;
            return Ok(Repeated::Failed(Box::new(boot), merged));
        }
        runs.push(OneRun::of(&boot));
        step.at(&format!("{} done", runs.len()));
    }
    step.done();
    Merged::of(&runs).map(Repeated::Merged)
}
