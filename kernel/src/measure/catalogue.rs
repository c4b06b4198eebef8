//! Resolution of a list of event names to events and their demands.

use alloc::vec::Vec;

use tally_abi::Mode;
use tally_engine::Demand;
use tally_pmu::{DetectedPmu, ResolveError, Resolved, virtual_pmu};

use super::{refusal::Refusal, settings};

/// Resolves the events of a list and their demands.
///
/// # Errors
/// The catalogue has no such event, or this PMU cannot count it.
pub(super) fn resolve(
    found: &DetectedPmu,
    list: &str,
    mode: Mode,
) -> Result<(Vec<Resolved>, Vec<Demand>), Refusal> {
    let resolved = settings::catalogue(found).resolve(list, mode)?;
    require_modelled(&resolved)?;
    let demands = resolved.iter().map(|event| event.demand).collect();
    Ok((resolved, demands))
}

/// Checks that the virtual PMU, if this machine has it, models the events.
fn require_modelled(resolved: &[Resolved]) -> Result<(), ResolveError> {
    let mut unmodelled = resolved.iter().filter(|event| !virtual_pmu::models(&event.demand));
    match unmodelled.next().filter(|_| settings::settings().virtual_pmu) {
        None => Ok(()),
        Some(event) => Err(virtual_pmu::unmodelled(event)),
    }
}

/// Checks that counting in ring 0 is permitted, if the mode or any event counts there.
///
/// # Errors
/// The command line does not permit it.
pub(super) fn permit_kernel(mode: Mode, demands: &[Demand]) -> Result<(), Refusal> {
    if mode.kernel() || demands.iter().any(|demand| demand.kernel) {
        settings::permit(1, "counting in ring 0")?;
    }
    Ok(())
}
