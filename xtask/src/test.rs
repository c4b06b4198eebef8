//! `cargo xtask test`: the tests.
//!
//! The task builds everything, the tests beside what they boot. Loom checks the interleavings of
//! the lock-free code, in a separate target folder. Then `cargo test` runs once for the host
//! crates' tests and, with [`ARTEFACTS_VARIABLE`] set, the boot tests.
//!
//! Long tests have the attribute `#[ignore = "long"]`.

use std::{panic::resume_unwind, process::Command, thread};

use clap::Args;
use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    lint::check,
    machine::{self, ARTEFACTS_VARIABLE, Artefacts},
    project::Project,
};

/// Threads of a test binary per processor of the host: tests that wait for a machine that another
/// test has booted take threads too, and no processor.
const THREADS_PER_PROCESSOR: usize = 8;
/// The variable from which test binaries take the number of their threads.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// The variable with what the boot tests add to each machine's seed.
pub const SEED_VARIABLE: &str = "TALLY_TEST_SEED";

/// Tests behind `cfg(loom)`.
const LOOM: [&str; 3] = ["bank_loom", "exchange_loom", "ring_loom"];

/// Options of `cargo xtask test`.
#[derive(Args, Debug)]
pub struct TestArgs {
    /// Run the long tests too
    #[arg(long)]
    long: bool,
    /// Add N to the seed of each machine: a test that fails with another seed gambles
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Run only tests whose name contains one of these words, long ones too, without loom
    filter: Vec<String>,
}

/// Runs the tests.
///
/// # Errors
/// Something does not build, or a test failed.
pub fn main(project: &Project, args: &TestArgs) -> Result<u8> {
    let artefacts = thread::scope(|scope| {
        // What the tests boot is built in other folders, and hardly ever keeps two processors busy.
        let built = scope.spawn(|| build(project, args));
        let artefacts = Artefacts::make_for_tests(project);
        built.join().unwrap_or_else(|panic| resume_unwind(panic)).and(artefacts)
    })?;
    let artefacts = serde_json::to_string(&artefacts).map_err(|error| {
        Failure::new(
            ExitStatus::HostError,
            format!("cannot pass the artefacts to the tests: {error}"),
        )
    })?;
    let mut tests = project.cargo("test", &project.target);
    tests.arg("--no-fail-fast").env(ARTEFACTS_VARIABLE, artefacts);
    tests.env(SEED_VARIABLE, args.seed.to_string());
    if std::env::var_os(THREADS_VARIABLE).is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        tests.env(THREADS_VARIABLE, (THREADS_PER_PROCESSOR * processors).to_string());
    }
    // Machines that several tests check leave their folders behind.
    machine::keep_newest(project);
    tests.arg("--");
    if args.long || !args.filter.is_empty() {
        tests.arg("--include-ignored");
    }
    if !args.filter.is_empty() {
        check("tests", tests.args(&args.filter))?;
        return Ok(0);
    }
    // First, as they are short.
    let loom = check("loom tests", &mut loom_tests(project));
    loom.and(check("tests", &mut tests))?;
    Ok(0)
}

/// Builds the tests.
fn build(project: &Project, args: &TestArgs) -> Result<()> {
    let mut tests = project.cargo("test", &project.target);
    check("building the tests", tests.args(["--quiet", "--no-run"]))?;
    if args.filter.is_empty() {
        let mut loom = loom_tests(project);
        check("building the loom tests", loom.args(["--quiet", "--no-run"]))?;
    }
    Ok(())
}

/// The command that runs the tests by loom.
fn loom_tests(project: &Project) -> Command {
    let mut loom = project.cargo("test", &project.target.join("loom"));
    loom.args(["--release", "--package", "tally-engine", "--package", "tally-ring"])
        .args(LOOM.iter().flat_map(|test| ["--test", test]))
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", "--cfg loom");
    loom
}
