//! Machines of the studies over time: one program on each, with its truth.

use std::time::Duration;

use tally_abi::{self as abi, ExitStatus, session::MAX_SLICE};
use tally_engine::Plan;
use tally_vpmu::VirtualPmu;
use xtask::{
    Failure, Result,
    explain::{self, Asked},
    job::Job,
    machine::{self, Artefacts, Boot, Folder, Pmu, Request},
    project::Project,
    report::{Series, Slice, whole},
};

use crate::study::seeds;

/// Time limit of a machine: others may run at the same time.
const TIME_LIMIT: Duration = Duration::from_secs(3_600);

/// Common settings of a study's machines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machines<'a> {
    /// Kernel, programs, QEMU.
    pub(super) artefacts: &'a Artefacts,
    /// PMU of the machines.
    pub(super) pmu: Pmu,
    /// Number of machines that run at a time.
    pub(super) jobs: usize,
}

/// A program of a run.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// Name of the program.
    pub(super) name: String,
    /// Command of the program.
    pub(super) command: Vec<String>,
}

/// Quantities that a machine records over time.
#[derive(Clone, Debug)]
pub(super) struct Recorded<'a> {
    /// The column that is used as time.
    pub(super) clock: &'a str,
    /// Options of the virtual PMU: pipeline, intervals, columns.
    pub(super) vpmu: Vec<String>,
    /// Names of the shadow cores, among those of the options, whose series are recorded too.
    pub(super) beside: Vec<&'a str>,
}

/// A run that has ended.
pub(super) struct Ran {
    /// The machine's boot.
    pub(super) boot: Boot,
    /// The session's truth over time.
    pub(super) series: Series,
    /// The truth over time of the shadow cores.
    pub(super) beside: Vec<Series>,
}

impl Machines<'_> {
    /// Runs a program.
    ///
    /// # Errors
    /// The machine fails, or has no session or no series.
    pub(super) fn run(&self, job: &Job, program: &[String], recorded: &Recorded) -> Result<Ran> {
        let folder = Folder::make(&Project::here())?;
        let mut vpmu = recorded.vpmu.clone();
        vpmu.push(format!("series={}", folder.series().display()));
        let boot = self.boot(job, program, vpmu)?;
        let Some((session, _)) = boot.transcript.sessions.first_key_value() else {
            return Err(Failure::new(ExitStatus::CheckFailed, "a run has no session"));
        };
        let series = Series::read(&folder.series(), *session, recorded.clock)?;
        let of = |core: &&str| Series::of_core(&folder.series(), *session, recorded.clock, core);
        let beside = recorded.beside.iter().map(of).collect::<Result<_>>()?;
        Ok(Ran { boot, series, beside })
    }

    /// Runs a program without a series.
    ///
    /// # Errors
    /// The machine fails.
    pub(super) fn boot(&self, job: &Job, program: &[String], vpmu: Vec<String>) -> Result<Boot> {
        let line = job.around("wire trace", program)?;
        let request = Request { pmu: self.pmu, vpmu, time_limit: TIME_LIMIT, ..Request::new(line) };
        seeds::boot(self.artefacts, &request, job.seed)
    }

    /// Runs `run` for the numbers below `count`, some at a time.
    ///
    /// # Errors
    /// The first error of `run`.
    pub(super) fn each<T: Send>(
        &self,
        what: &str,
        count: usize,
        run: impl Fn(usize) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        seeds::at_once(self.jobs, what, 0..=count as u64 - 1, |number| run(number as usize))
    }
}

impl Ran {
    /// All slices of the session that reached their lengths.
    ///
    /// # Errors
    /// Some records were lost.
    pub(super) fn slices(&self) -> Result<Vec<Slice>> {
        let transcript = &self.boot.transcript;
        if transcript.rings.iter().any(|ring| ring.lost > 0) {
            return Err(Failure::new(ExitStatus::BadTrace, "records of a run's trace were lost"));
        }
        let session = transcript.sessions.first_key_value().map(|(session, _)| *session);
        let of_session = transcript.slices.iter().filter(|slice| Some(slice.session) == session);
        Ok(whole(&of_session.copied().collect::<Vec<_>>()))
    }
}

/// A job with a session of these events, without a budget.
pub(super) fn job(events: &[String], slice_cycles: u64, seed: u64) -> Job {
    Job {
        seed,
        events: Some(events.join(",")),
        slice: Some(abi::Slice::Cycles(slice_cycles)),
        budget: Some(100.0),
        ..Job::default()
    }
}

/// A job with a session in which nothing is multiplexed.
pub(super) fn plain_job(seed: u64) -> Job {
    job(&["instructions".to_owned()], MAX_SLICE, seed)
}

/// The plan of a job's events; an error if they are refused.
pub(super) fn plan_of(pmu: &VirtualPmu, events: &[String]) -> Result<Plan> {
    let job = job(events, MAX_SLICE, 1);
    let asked = Asked::of(&job, &["program".to_owned()], pmu.profile().signature)?;
    explain::plan_of(pmu, &asked).map(|(_, plan)| plan)
}

/// The virtual PMU of the machines.
pub(super) fn virtual_pmu(pmu: Pmu) -> Result<VirtualPmu> {
    machine::virtual_pmu_of(pmu, &[])
}
