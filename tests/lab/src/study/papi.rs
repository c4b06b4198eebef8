//! `cargo xtask study papi`: runs PAPI's own tests with Tally's `libpapi.a`, on a machine of each
//! vendor, and collects the verdict that each prints.

use std::{fmt::Write as _, time::Duration};

use clap::Args;
use serde::Serialize;
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    build::papi::{self, List, Listed},
    machine::{self, Artefacts, Pmu, Request},
    output,
    project::Project,
};

use super::{
    programs::{Ended, PMUS, command_line, failure_of, there},
    seeds,
};

/// The argument that makes a test print its verdict alone, as in PAPI's own `run_tests.sh`.
const QUIET: &str = "TESTS_QUIET";
/// The environment of the tests.
const ENVIRONMENT: [&str; 2] = ["LC_ALL=C", "OMP_NUM_THREADS=3"];

/// QEMU's clock for tests whose work lasts for seconds: 16 ns per instruction instead of 1 ns, so
/// that a second has 62.5 million instructions.
const SLOW_PROCESSOR: [&str; 2] = ["-icount", "shift=4,sleep=off"];

/// Options of `cargo xtask study papi`.
#[derive(Args, Clone, Debug)]
pub struct PapiArgs {
    /// Run only the tests of these names
    names: Vec<String>,
    /// Stop each machine after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2400,
          value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
    /// Let the tests print all that they have to say, and print it
    #[arg(long)]
    verbose: bool,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

/// A test's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Success: the test printed `PASSED`.
    Passed,
    /// Skip: the test printed `SKIPPED`.
    Skipped,
    /// Anything else.
    Failed,
}

impl Verdict {
    fn of(ended: &Ended) -> Verdict {
        let text = String::from_utf8_lossy(&ended.output[0]);
        let has = |word: &str| text.lines().any(|line| line.contains(word));
        match ended.status {
            0 if has("PASSED") => Verdict::Passed,
            0 if has("SKIPPED") => Verdict::Skipped,
            _ => Verdict::Failed,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Skipped => "skipped",
            Verdict::Failed => "FAILED",
        }
    }
}

/// Result of a test on one machine.
#[derive(Clone, Debug, Serialize)]
pub struct Ran {
    /// Name of the test.
    pub test: String,
    /// Verdict of the test.
    pub verdict: Verdict,
    /// The test's output, and the machine's failure, if it failed.
    pub output: String,
}

/// Runs `tests` one after another on one machine; `artefacts` have their programs on demand.
///
/// # Errors
/// QEMU cannot be started. On a machine that fails, the running test and those after it count as
/// failed.
pub fn run(
    artefacts: &Artefacts,
    tests: &[&Listed],
    pmu: Pmu,
    time_limit: Duration,
    verbose: bool,
) -> Result<Vec<Ran>> {
    let words = |test: &&Listed| {
        let quiet = (!verbose).then(|| QUIET.to_owned());
        [test.name.clone()].into_iter().chain(quiet).collect::<Vec<_>>()
    };
    let commands: Vec<Vec<String>> = tests.iter().map(words).collect();
    let mut line =
        command_line(&ENVIRONMENT.map(str::to_owned), false, &commands.iter().collect::<Vec<_>>());
    if tests.iter().any(|test| test.counts_ring_0) {
        line.insert_str(0, "paranoid=1 ");
    }
    let is_slow = tests.iter().any(|test| test.lasts_seconds);
    let qemu_args = SLOW_PROCESSOR.into_iter().filter(|_| is_slow).map(str::to_owned).collect();
    let request = Request { pmu, time_limit, qemu_args, ..Request::new(line) };
    let boot = machine::boot(artefacts, &request, &mut |_| {})?;
    let failure = failure_of(&boot.outcome).unwrap_or_default();
    let ended = there(&boot);
    let ran = |(index, test): (usize, &&Listed)| match ended.get(index) {
        Some(ended) => Ran {
            test: test.name.clone(),
            verdict: Verdict::of(ended),
            output: String::from_utf8_lossy(&ended.output.concat()).into_owned(),
        },
        None => Ran { test: test.name.clone(), verdict: Verdict::Failed, output: failure.clone() },
    };
    Ok(tests.iter().enumerate().map(ran).collect())
}

/// A test on every machine.
#[derive(Clone, Debug, Serialize)]
struct Row {
    test: String,
    /// Results by vendor, in the order of [`PMUS`].
    runs: Vec<Ran>,
    /// Reason why it skips.
    skips: Option<String>,
    /// Reason why it does not pass, or is not known to.
    fails: Option<String>,
}

impl Row {
    /// Returns whether the verdicts are the expected ones of the list.
    fn holds(&self) -> bool {
        let is_good = |run: &Ran| match run.verdict {
            Verdict::Passed => true,
            Verdict::Skipped => self.skips.is_some(),
            Verdict::Failed => self.fails.is_some(),
        };
        self.runs.iter().all(is_good)
    }
}

/// A test that is not run.
#[derive(Clone, Debug, Serialize)]
struct NotRun {
    test: String,
    reason: String,
}

/// The study's result.
#[derive(Clone, Debug, Serialize)]
struct Study {
    /// Number of tests that were run.
    tests: usize,
    /// Number of tests that passed on every machine.
    passed: usize,
    /// Number of tests that failed or skipped on a machine without a reason in the list.
    failed: usize,
    rows: Vec<Row>,
    not_run: Vec<NotRun>,
}

pub(super) fn main(project: &Project, args: &PapiArgs) -> Result<u8> {
    let list = selected(List::read(project)?, &args.names)?;
    let wanted: Vec<&Listed> = list.wanted(false).collect();
    let artefacts = Artefacts::make(project)?;
    let artefacts = Artefacts { on_demand: papi::make(project, &wanted)?, ..artefacts };
    let machines: Vec<(&Listed, Pmu)> =
        wanted.iter().flat_map(|test| PMUS.map(|(pmu, _)| (*test, pmu))).collect();
    let limit = Duration::from_secs(args.time_limit);
    let runs = match machines.len() as u64 {
        0 => Vec::new(),
        count => seeds::in_parallel("machines", 1..=count, |number| {
            let (test, pmu) = machines[number as usize - 1];
            let ran = run(&artefacts, &[test], pmu, limit, args.verbose)?.remove(0);
            output::note(format_args!(
                "{} on {}: {}",
                ran.test,
                pmu.profile().name,
                ran.verdict.word()
            ));
            Ok(ran)
        })?,
    };
    let study = summarize(&list, &runs);
    output::print(args.json, &study, &render(&study, args.verbose))?;
    Ok(if study.failed == 0 { 0 } else { ExitStatus::CheckFailed.into() })
}

/// The list with the tests of these names, or with all.
fn selected(mut list: List, names: &[String]) -> Result<List> {
    let is_known = |name: &&String| list.tests.iter().any(|test| test.name == **name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let why = format!("the list has no test {unknown}: see tests/papi/list.toml");
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    list.tests.retain(|test| names.is_empty() || names.contains(&test.name));
    Ok(list)
}

fn summarize(list: &List, runs: &[Ran]) -> Study {
    let rows: Vec<Row> = (list.wanted(false).zip(runs.chunks(PMUS.len())))
        .map(|(test, runs)| Row {
            test: test.name.clone(),
            runs: runs.to_vec(),
            skips: test.skips.clone(),
            fails: test.fails.clone(),
        })
        .collect();
    let not_run = list
        .tests
        .iter()
        .filter_map(|test| Some(NotRun { test: test.name.clone(), reason: test.not_run.clone()? }));
    let passed = |row: &&Row| row.runs.iter().all(|run| run.verdict == Verdict::Passed);
    Study {
        tests: rows.len(),
        passed: rows.iter().filter(passed).count(),
        failed: rows.iter().filter(|row| !row.holds()).count(),
        not_run: not_run.collect(),
        rows,
    }
}

fn render(study: &Study, verbose: bool) -> String {
    let mut text = format!("{:<24} {:<8} {:<8}\n", "test", PMUS[0].1, PMUS[1].1);
    for row in &study.rows {
        let words: Vec<&str> = row.runs.iter().map(|run| run.verdict.word()).collect();
        let why = row.skips.as_deref().or(row.fails.as_deref()).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:<24} {:<8} {:<8} {why}", row.test, words[0], words[1]);
        for run in row.runs.iter().filter(|_| verbose || !row.holds()) {
            let _ = writeln!(text, "    {}", run.output.trim_end().replace('\n', "\n    "));
        }
    }
    for NotRun { test, reason } in &study.not_run {
        let _ = writeln!(text, "{test:<24} not run: {reason}");
    }
    let Study { tests, passed, failed, not_run, .. } = study;
    let others = tests - passed - failed;
    let _ = writeln!(
        text,
        "{passed} of {tests} tests passed on both machines, {others} did not for a reason that the \
         list has, {failed} failed without; {} are not run",
        not_run.len()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(status: i32, output: &str) -> Verdict {
        Verdict::of(&Ended { output: [output.into(), Vec::new()], status })
    }

    #[test]
    fn a_verdict_is_what_the_test_printed_and_its_status() {
        assert_eq!(ran(0, "x\nPASSED\n"), Verdict::Passed);
        assert_eq!(ran(0, "SKIPPED\n"), Verdict::Skipped);
        assert_eq!(ran(1, "PASSED\n"), Verdict::Failed);
        assert_eq!(ran(0, ""), Verdict::Failed);
    }

    #[test]
    fn a_test_that_skips_without_a_reason_fails() {
        let list = List::read(&Project::here()).unwrap();
        let list = selected(list, &["zero".into()]).unwrap();
        let study = |verdict| {
            let run = Ran { test: "zero".into(), verdict, output: "why".into() };
            summarize(&list, &[run.clone(), run])
        };
        assert_eq!((study(Verdict::Passed).passed, study(Verdict::Passed).failed), (1, 0));
        let skipped = study(Verdict::Skipped);
        assert_eq!((skipped.passed, skipped.failed), (0, 1));
        assert!(render(&skipped, false).contains("    why\n"));
    }
}
