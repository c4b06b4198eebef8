//! Several jobs in one boot, one after another.

use tally_abi::ExitStatus;
use xtask::{
    machine::Request,
    repeat,
    report::{Kind, Report, SessionReport},
};

use crate::{SharedBoot, boot, command, outcomes::assert_refused};

const EVENTS: &str = "instructions,branches";

/// Two jobs, one with two programs and one with a single program, each repeated twice.
static JOBS: SharedBoot = SharedBoot::new(|| {
    let line = format!(
        "seed=7 repeat=2 wire -- events={EVENTS} rounds 1 20000 -- status 0 --- events={EVENTS} rounds 1 9000"
    );
    Request::new(line)
});

/// Number and seed of the job of each session.
fn jobs(sessions: &[SessionReport]) -> Vec<(u32, u64)> {
    let of = |session: &SessionReport| session.job.map(|job| (job.number, job.seed)).unwrap();
    sessions.iter().map(of).collect()
}

#[test]
fn jobs_run_one_after_another_with_the_seeds_that_follow() {
    let boot = JOBS.get();
    crate::assert_success(boot);
    let sessions: Vec<SessionReport> = Report::of(boot).sessions().cloned().collect();
    assert_eq!(jobs(&sessions), [(1, 7), (2, 7), (1, 8), (2, 8)]);
    for event in sessions.iter().flat_map(|session| &session.events) {
        assert_eq!((event.kind, event.estimate), (Kind::Exact, event.truth), "{event:?}");
    }
    let ends: Vec<&str> = boot.transcript.exits.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(ends, ["status", "rounds", "rounds", "status", "rounds", "rounds"]);
}

#[test]
fn a_job_s_runs_are_merged() {
    let merged = repeat::jobs(JOBS.get()).unwrap();
    let shape: Vec<_> = merged
        .iter()
        .map(|(number, merged)| (*number, merged.runs, merged.first_seed, merged.sessions.len()))
        .collect();
    assert_eq!(shape, [(1, 2, Some(7), 1), (2, 2, Some(7), 1)]);
    let count = |job: usize| merged[job].1.sessions[0].events[0].estimate.unwrap();
    assert!(count(0) > count(1), "20,000 rounds are more than 9,000");
}

/// The first job has no program that can be loaded; the last has a malformed option of a program.
#[test]
fn a_job_that_cannot_be_loaded_is_reported_and_the_next_one_runs() {
    let line = "wire -- no-such --- status 3 -- no-file --- budget=0 status 0";
    let boot = boot(&Request::new(line));
    assert_refused(&boot, ExitStatus::ProgramNotFound, "ramdisk");
    assert_refused(&boot, ExitStatus::Usage, "option of a program");
    assert_eq!(boot.transcript.failures.len(), 3, "{:#?}", boot.transcript.failures);
    assert_eq!(boot.transcript.exits, [("status".to_owned(), 3)]);
    assert_eq!(boot.transcript.done, Some(ExitStatus::ProgramNotFound.into()));
}

#[test]
fn programs_of_a_job_begin_after_those_of_the_job_before_on_every_cpu() {
    let programs = ["status 0"; 6].join(" -- ");
    let line = [programs.as_str(); 8].join(" --- ");
    let boot = boot(&Request { cpus: 4, ..Request::new(format!("wire -- {line}")) });
    crate::assert_success(&boot);
    assert_eq!(boot.transcript.exits.len(), 48);
}

#[test]
fn a_file_of_jobs_is_run_and_each_job_is_shown() {
    let folder = std::env::temp_dir().join(format!("tally-jobs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("jobs");
    let job = format!("--events {EVENTS} -- rounds 1 9000\n");
    std::fs::write(&file, format!("# the same twice\n{job}{job}")).unwrap();
    let file = file.to_str().unwrap();
    let once = command::run(&["--jobs", file]);
    let text = command::text(&once.stderr);
    assert!(
        text.contains("rounds, job 1, session 1: ") && text.contains("rounds, job 2, "),
        "{text}"
    );
    let twice = command::run(&["--jobs", file, "--repeat", "2", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&twice.stdout).unwrap();
    assert_eq!(
        (&json["repeated"][1]["number"], &json["repeated"][1]["runs"]),
        (&2.into(), &2.into())
    );
    assert_eq!(json["others"][2]["job"], serde_json::json!({"number": 2, "seed": 2}));
    std::fs::remove_dir_all(folder).unwrap();
}
