//! The origin of this run, for its report.

use clap::ValueEnum;

use crate::{
    machine::{Accel, Pmu},
    project::Project,
    report::Made,
};

/// Describes how a run on this machine is made, with this process' command line.
pub(super) fn made(project: &Project, pmu: Pmu, accel: Accel, cpus: u16) -> Made {
    Made {
        command: std::env::args_os().skip(1).map(|w| w.to_string_lossy().into_owned()).collect(),
        machine: name(pmu),
        accel: name(accel),
        cpus: cpus.into(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: project.commit(),
    }
}

fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
