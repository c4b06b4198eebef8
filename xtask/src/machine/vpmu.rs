//! The options of `--vpmu`. They are checked before anything is built, with the plugin's own
//! checks.

use tally_abi::ExitStatus;
use tally_vpmu::{PluginOptions, VirtualPmu};

use super::profile::Pmu;
use crate::{Failure, Result, project};

/// The virtual PMU of a machine with these `options` (qemu/README.md).
///
/// # Errors
/// The virtual PMU does not support an option.
pub fn virtual_pmu_of(pmu: Pmu, options: &[String]) -> Result<VirtualPmu> {
    let options = parse(pmu, options)?;
    if options.truth.is_some() {
        return Err(refused("truth=... would take the truth from the results: omit it".into()));
    }
    Ok(VirtualPmu::new(options.profile, options.counters))
}

/// Checks options for a machine with this number of CPUs, and that their files can be written.
///
/// # Errors
/// The virtual PMU does not support an option, or a file cannot be written.
pub fn check_vpmu(pmu: Pmu, options: &[String], cpus: u16) -> Result<()> {
    let options = parse(pmu, options)?.check_cpus(cpus.into()).map_err(refused)?;
    let series = options.series.as_ref().map(|series| &series.path);
    let files =
        [&options.truth, &options.blocks, &options.instructions, &options.handlers, &options.log];
    files.into_iter().flatten().chain(series).try_for_each(|path| project::check_writable(path))
}

fn parse(pmu: Pmu, options: &[String]) -> Result<PluginOptions> {
    let machine =
        [format!("profile={}", pmu.profile().name), format!("counters={}", pmu.machine().counters)];
    let parsed = PluginOptions::parse(&[&machine, options].concat()).map_err(refused)?;
    let (name, vendor) = (parsed.profile.name, parsed.profile.vendor);
    if vendor != pmu.profile().vendor {
        let other = parsed.profile.machine.name;
        return Err(refused(format!("profile={name} needs another machine: use --pmu {other}")));
    }
    Ok(parsed)
}

fn refused(why: String) -> Failure {
    Failure::new(ExitStatus::Usage, format!("--vpmu: {why}"))
}
