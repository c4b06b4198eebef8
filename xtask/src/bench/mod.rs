//! `cargo xtask bench …`: how fast things are, as ratios of one run.
//!
//! Each bench is a module with its arguments, its measurement and its table. What a noisy host does to
//! one setting it is to do to all: benches take turns among their settings, and report medians with
//! the least and the most.

mod engine;
mod ring;
mod samples;
mod switch;
mod vpmu;

use clap::{Args, Subcommand};

use crate::{Result, project::Project};

/// Options of `cargo xtask bench`.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Million guest instructions a second under each gear and model of the virtual PMU
    Vpmu(vpmu::VpmuArgs),
    /// All of the engine's figures: planner, switch, estimators, adaptive shares, readings, its share
    Engine(engine::EngineArgs),
    /// Nanoseconds and instructions of a trace record of 16 bytes, beside other rings and LTTng-UST
    Ring(ring::RingArgs),
    /// Instructions and MSR accesses of a switch between groups, step by step
    Switch(switch::SwitchArgs),
}

/// Does the task.
///
/// # Errors
/// Something does not build, a machine cannot be started, or its job fails.
pub fn main(project: &Project, args: &BenchArgs) -> Result<u8> {
    match &args.bench {
        Bench::Vpmu(args) => vpmu::main(project, args),
        Bench::Engine(args) => engine::main(project, args),
        Bench::Ring(args) => ring::main(project, args),
        Bench::Switch(args) => switch::main(project, args),
    }
}
