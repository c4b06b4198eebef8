//! The origin of a run.

use serde::{Deserialize, Serialize};

/// Settings of a run that are needed to repeat it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The words of the command line after `cargo xtask`.
    pub command: Vec<String>,
    /// The machine's name, as in `--pmu`.
    pub machine: String,
    /// Executor of the guest's instructions, as in `--accel`.
    pub accel: String,
    /// Number of processors.
    pub cpus: u32,
    /// Tally's version.
    pub version: String,
    /// The commit of Tally's sources, with `+` appended if they were changed since; `None` without
    /// a repository.
    pub commit: Option<String>,
}
