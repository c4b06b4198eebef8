//! `cargo xtask test`: every test there is.
//!
//! Everything is built first; then one call of `cargo test` runs the host crates' tests and, with
//! [`ARTEFACTS_VARIABLE`] set, those that boot; then loom walks through the trace ring's
//! interleavings, in a target folder of its own.

use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    lint::check,
    machine::{ARTEFACTS_VARIABLE, Artefacts},
    project::Project,
};

/// The tests behind `cfg(loom)`.
const LOOM: &str = "kernel/engine/tests/ring_loom.rs";

/// Does the task.
///
/// # Errors
/// Something does not build, or a test failed.
pub fn main(project: &Project) -> Result<u8> {
    let artefacts =
        serde_json::to_string(&Artefacts::make_for_tests(project)?).map_err(|error| {
            Failure::new(ExitStatus::HostError, format!("cannot tell the tests: {error}"))
        })?;
    let mut tests = project.cargo("test", &project.target);
    let all = check("tests", tests.arg("--no-fail-fast").env(ARTEFACTS_VARIABLE, artefacts));
    let loom = match project.root.join(LOOM).is_file() {
        true => check(
            "loom tests",
            project
                .cargo("test", &project.target.join("loom"))
                .args(["--release", "--package", "tally-engine", "--test", "ring_loom"])
                .env_remove("CARGO_ENCODED_RUSTFLAGS")
                .env("RUSTFLAGS", "--cfg loom"),
        ),
        false => Ok(()),
    };
    all.and(loom)?;
    Ok(0)
}
