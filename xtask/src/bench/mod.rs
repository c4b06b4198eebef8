//! `cargo xtask bench …`: how fast things are, as ratios of one run.
//!
//! Each bench is a module with its arguments, its measurement and its table. What a noisy host does to
//! one setting it is to do to all: benches take turns among their settings, and report medians with
//! the least and the most.

mod engine;
mod ring;
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

/// What repetitions of one measurement gave; never empty.
#[derive(Clone, Debug, PartialEq)]
struct Samples(Vec<f64>);

impl Samples {
    /// The one in the middle, or the mean of the two there.
    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len() / 2;
        match sorted.len() % 2 {
            0 => f64::midpoint(sorted[half - 1], sorted[half]),
            _ => sorted[half],
        }
    }

    fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_whatever_the_order() {
        assert_eq!(Samples(vec![3.0, 1.0, 20.0]).median(), 3.0);
        assert_eq!(Samples(vec![4.0, 1.0, 2.0, 30.0]).median(), 3.0);
        let samples = Samples(vec![3.0, 1.0, 2.0]);
        assert_eq!((samples.least(), samples.most()), (1.0, 3.0));
    }
}
