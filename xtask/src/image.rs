//! `cargo xtask image`: writes a disk image that runs jobs on a test machine.

mod place;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tally_abi::{ExitStatus, boot::MAX_CPUS};

use crate::{
    Failure, Result, boot_files,
    build::{self, efi},
    guest_files,
    job::Job,
    machine::{self, Pmu},
    output, phases,
    project::Project,
    setup,
    workload::Workload,
};

/// Time in milliseconds for which each page of results stays on the screen, if they go to a serial
/// port too.
const PAGE_MS: u32 = 8_000;

/// Options of `cargo xtask image`.
#[derive(Args, Debug)]
pub struct ImageArgs {
    /// File to write, or the whole stick, such as /dev/sdX, which loses what it has
    #[arg(short, long, default_value = "tally.img", value_name = "PATH")]
    out: PathBuf,
    /// Size of the stick, which the image must not exceed: MiB, or with the suffix M or G
    #[arg(long, value_name = "SIZE", value_parser = place::size)]
    size: Option<u64>,
    /// Processor of the test machine, whose events are checked [default: any]
    #[arg(long, value_enum)]
    pmu: Option<Pmu>,
    #[command(flatten)]
    work: Workload,
    /// Run all jobs N times in one boot, with seeds from --seed on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeat: Option<u64>,
    /// Send a record of every slice, threshold and sample with the results, as far as the codes
    /// have room, for `import --trace`
    #[arg(long)]
    trace: bool,
    /// Send the results by the second serial port (COM2) too, for `import --messages`
    #[arg(long)]
    wire: bool,
}

impl ImageArgs {
    /// Checks the options before anything is built. Returns them with the programs' paths on the
    /// machine, and the kernel's command line.
    fn checked(&self) -> Result<(Workload, String)> {
        let work = self.work.read()?;
        work.check(None)?;
        if !work.stat_files().is_empty() {
            let why = "stat -o FILE: no file comes back from a test machine: leave out -o";
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        place::check(&self.out)?;
        let work = work.located()?;
        place::check_room(&self.out, self.size, guest_files::bytes(&work.files()?))?;
        self.check_events(&work)?;
        let phases = work.phases.config()?;
        let (events, has_phases) = (self.events(&work)?, phases.is_some());
        let work = work.with_job(Job { phases, events, ..work.job.clone() });
        // A physical machine may have more CPUs than the job requests, and others may use its
        // counters. A check covers all of them, unless several are requested.
        let is_of_all = work.job.check && work.job.cpus == 1;
        let cpus = if is_of_all { MAX_CPUS } else { work.job.cpus.into() };
        let mut options = format!("check-counters cpus={cpus}");
        if let Some(times) = self.repeat {
            options += &format!(" repeat={times}");
        }
        if self.wire {
            options += &format!(" wire codes={PAGE_MS}");
        }
        let line = work.command_line(&options, self.trace || has_phases)?;
        Ok((work, line))
    }

    /// The events of the job. With phases they default to those of the processor's cost model.
    fn events(&self, work: &Workload) -> Result<Option<String>> {
        if work.phases.phases.is_none() || work.job.events.is_some() {
            return Ok(work.job.events.clone());
        }
        let Some(pmu) = self.pmu else {
            let why = "--phases counts events of the processor's cost model: name it with --pmu, or \
                       the events with --events";
            return Err(Failure::new(ExitStatus::Usage, why));
        };
        Ok(Some(phases::events(&machine::virtual_pmu_of(pmu, &[])?)?.join(",")))
    }

    /// Checks that the named processor has the events; without a name, that any processor has.
    fn check_events(&self, work: &Workload) -> Result<()> {
        let check = |pmu| work.check_events(&machine::virtual_pmu_of(pmu, &[])?, false);
        if let Some(pmu) = self.pmu {
            return check(pmu);
        }
        let refused: Option<Vec<Failure>> =
            Pmu::value_variants().iter().map(|pmu| check(*pmu).err()).collect();
        // Report the processor that lacks the fewest events.
        let least =
            |all: Vec<Failure>| all.into_iter().min_by_key(|why| why.message.lines().count());
        refused.and_then(least).map_or(Ok(()), Err)
    }
}

/// Writes the disk image.
///
/// # Errors
/// An option is not valid, a tool is missing, a crate does not build, or the image cannot be
/// written.
pub fn main(project: &Project, args: &ImageArgs) -> Result<u8> {
    let (work, line) = args.checked()?;
    let library = setup::library(project)?;
    let built = build::for_run(project, &library)?;
    let files = built.with_files(&work.files()?);
    let efi = efi::build(project, &library)?;
    let image = boot_files::disk(project, &built.kernel, &efi, &files, &library, &line)?;
    place::write(&image, &args.out, args.size)?;
    output::text(&format!("{}: boots by UEFI and runs `{line}`\n", args.out.display()))?;
    Ok(0)
}
