//! From a list of event names to the events and what they need of the planner.

use alloc::vec::Vec;

use tally_abi::Mode;
use tally_engine::Demand;
use tally_pmu::{DetectedPmu, Resolved};

use super::{refusal::Refusal, settings};

/// Resolves the events of a list, and what they need of the planner.
///
/// # Errors
/// The catalogue has no such event, or this PMU cannot count it.
pub(super) fn resolve(
    found: &DetectedPmu,
    list: &str,
    mode: Mode,
) -> Result<(Vec<Resolved>, Vec<Demand>), Refusal> {
    let resolved = found.catalogue().resolve(list, mode)?;
    let demands = resolved.iter().map(|event| event.demand).collect();
    Ok((resolved, demands))
}

/// Checks that counting in ring 0 is permitted, if the mode or any event counts there.
///
/// # Errors
/// It is not.
pub(super) fn permit_kernel(mode: Mode, demands: &[Demand]) -> Result<(), Refusal> {
    if mode.kernel() || demands.iter().any(|demand| demand.kernel) {
        settings::permit(1, "counting in ring 0")?;
    }
    Ok(())
}
