//! How a run was made.

use serde::{Deserialize, Serialize};

/// How a run was made: what to repeat it with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The words of the command line behind `cargo xtask`.
    pub command: Vec<String>,
    /// The machine's name, as of `--pmu`.
    pub machine: String,
    /// What executed the guest's instructions, as of `--accel`.
    pub accel: String,
    /// Number of processors.
    pub cpus: u32,
    /// Tally's version.
    pub version: String,
    /// The commit of Tally's sources, with `+` behind it if they were changed since; none without
    /// a repository.
    pub commit: Option<String>,
}
