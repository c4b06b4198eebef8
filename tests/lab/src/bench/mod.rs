//! `cargo xtask bench …`: speeds, as ratios within one run.
//!
//! Each bench is a module with its arguments, its measurement and its table. Benches alternate
//! between their settings, so that a noisy host affects all settings alike, and report the median
//! with the minimum and the maximum.

mod engine;
mod ring;
mod samples;
mod switch;
mod vpmu;

use clap::{Args, Subcommand};
use xtask::{Result, project::Project};

/// Options of `cargo xtask bench`.
#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Million guest instructions per second with each mode and model of the virtual PMU
    Vpmu(vpmu::VpmuArgs),
    /// All figures of the engine: planner, group switch, estimators, adaptive shares, readings,
    /// overhead
    Engine(engine::EngineArgs),
    /// Nanoseconds and instructions per trace record of 16 bytes, compared with other rings and
    /// LTTng-UST
    Ring(ring::RingArgs),
    /// Instructions, MSR accesses, cache lines and TLB entries of a group switch, by step; latency
    /// of thresholds
    Switch(switch::SwitchArgs),
}

/// Runs the bench.
///
/// # Errors
/// A crate does not build, a machine cannot be started, or its job fails.
pub fn main(project: &Project, args: &BenchArgs) -> Result<u8> {
    match &args.bench {
        Bench::Vpmu(args) => vpmu::main(project, args),
        Bench::Engine(args) => engine::main(project, args),
        Bench::Ring(args) => ring::main(project, args),
        Bench::Switch(args) => switch::main(project, args),
    }
}
