//! `cargo xtask fuzz`: throws system calls at the kernel until it falls over, or enough were made.

use std::{
    io::{self, Write},
    time::Duration,
};

use clap::Args;
use tally_abi::boot::MAX_CPUS;

use crate::{
    Failure, Result,
    machine::{self, Artefacts, Pmu, Request},
    project::Project,
};

/// What the guest says when all was made and counting was exact after it.
pub const HELD: &str = "fuzz: done, counting is exact";

/// Options of `cargo xtask fuzz`.
#[derive(Args, Clone, Debug)]
pub struct FuzzArgs {
    /// System calls to make
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    calls: u64,
    /// Seed of the calls, and of every other random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Processors; with more than one, programs race
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=MAX_CPUS as i64))]
    cpus: u16,
    /// Whose PMU the machine shows
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// Stop the machine after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 36_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
}

/// The machine for so many calls.
pub fn request(pmu: Pmu, cpus: u16, calls: u64, seed: u64) -> Request {
    // Both vendors' catalogues have it, always counted.
    let line = format!("seed={seed} cpus={cpus} wire -- fuzz {calls} {seed} instructions");
    Request { pmu, cpus: cpus.into(), ..Request::new(line) }
}

/// Does the task.
///
/// # Errors
/// The machine cannot be built or started, or the kernel did not outlive the calls.
pub fn main(project: &Project, args: &FuzzArgs) -> Result<u8> {
    let artefacts = Artefacts::make(project)?;
    let request = Request {
        time_limit: Duration::from_secs(args.time_limit),
        ..request(args.pmu, args.cpus, args.calls, args.seed)
    };
    let mut boot = machine::boot_with_progress(&artefacts, &request, &mut |output| {
        // Somebody who closes our standard error wants no output.
        let _ = io::stderr().write_all(&output.bytes);
    })?;
    // What became of its programs is the fuzz program's affair: only the kernel's end is ours.
    if boot.transcript.text().contains(HELD) && boot.transcript.done.is_some() {
        println!("{HELD}");
        return Ok(0);
    }
    let folder = boot.folder.keep();
    let why = format!("{}; the kernel's log is in {}", boot.outcome, folder.display());
    Err(Failure::new(tally_abi::ExitStatus::KernelPanic, why))
}
