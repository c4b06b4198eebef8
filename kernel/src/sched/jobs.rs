//! The jobs of the command line, one after another.

use core::sync::atomic::{AtomicU64, Ordering};

use spin::Once;
use tally_abi::{ExitStatus, boot::CommandLine, wire::Message};

use super::{load::load_all, status::refuse};
use crate::{machine::serial, measure};

/// Reason why no program runs. A boot loader that finds no ramdisk still boots the kernel.
const NO_PROGRAM: &str = "no program is named on the command line, or the boot loader found no \
                          ramdisk: put the file `ramdisk` beside the kernel, or write the image \
                          again";

static LINE: Once<CommandLine<'static>> = Once::new();
/// Number of jobs begun. Relaxed order is enough: no program runs while a job begins, and the CPU
/// that begins it takes the table's lock before and after.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Sets the command line with the jobs, and refuses one without a program. At boot, once.
pub fn set_jobs(line: CommandLine<'static>) {
    if line.programs().next().is_none() {
        refuse("kernel", ExitStatus::ProgramNotFound, NO_PROGRAM);
    }
    LINE.call_once(|| line);
}

/// Begins the next job with a loadable program. Returns whether there is one. No program of the job
/// before may be left.
pub fn begin_job() -> bool {
    let Some(line) = LINE.get() else { return false };
    let is_of_several = line.job(1).is_some();
    loop {
        let Some((job, programs)) = line.job(BEGUN.fetch_add(1, Ordering::Relaxed)) else {
            return false;
        };
        measure::set_seed(job.seed);
        if is_of_several {
            log::info!("job {}, seed {}", job.number, job.seed);
            serial::send(&Message::Job { job });
        }
        if load_all(programs) {
            return true;
        }
    }
}
