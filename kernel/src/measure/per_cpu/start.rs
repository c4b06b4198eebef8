//! Checks of a CPU's PMU, and its multiplexer.

use tally_abi::{
    Mode,
    boot::{Delivery, Failure},
};
use tally_engine::{CounterMask, Counts, Group, Layout, Multiplexer, Pmu};
use tally_pmu::{
    DetectedPmu, Driver, InitError, access_costs, bus::Native, check_counters, recheck_counters,
};

use crate::{
    arch::{lapic::Lapic, vectors},
    measure::{
        checked::{is_reported, report_costs, report_failure},
        settings::{delivery, settings},
    },
};

/// A driver of this CPU's PMU, which is as after [`DetectedPmu::init_cpu`] then. One at a time.
fn driver(found: &DetectedPmu) -> Result<Driver<Native>, InitError> {
    // SAFETY: (1) this is ring 0; (2) `detect` found the PMU on this machine, whose CPUs are alike;
    // (3) the driver stays with this CPU.
    let bus = unsafe { Native::new() };
    found.init_cpu(bus)
}

/// The multiplexer of this CPU.
pub(super) fn multiplexer(
    cpu: u16,
    lapic: &Lapic,
    found: &DetectedPmu,
) -> Result<Multiplexer<Driver<Native>>, InitError> {
    Ok(Multiplexer::new(driver(found)?, cpu, lapic.pmi_msr_accesses(delivery())))
}

/// If that is asked for, checks that every counter counts and that an overflow raises an interrupt,
/// which stays pending; if a report is asked for, also what accesses to registers cost. Nothing
/// shows that an NMI is pending, so the interrupt is not checked where overflows are NMIs.
pub(super) fn check_ring_0(cpu: u16, lapic: &Lapic, found: &DetectedPmu) -> Result<(), InitError> {
    if settings().fail == Some(Failure::Pmu) && cpu > 0 {
        driver(found)?.restore(&Group::NONE, Mode::User, &Counts::default());
    }
    if settings().check_counters.is_none() {
        return Ok(());
    }
    let is_fixed = delivery() == Delivery::Fixed;
    if is_fixed {
        lapic.unmask_pmi(Delivery::Fixed);
    }
    let is_raised = || !is_fixed || lapic.is_pending(vectors::PMI);
    check_counters(driver(found)?, all(found), |_| tally_pmu::work(), is_raised)
        .or_else(|reason| report_failure(cpu, reason))?;
    if is_reported() {
        report_costs(cpu, access_costs(driver(found)?, all(found).general));
    }
    Ok(())
}

/// Checks that every counter still counts, while nothing else does.
pub(super) fn recheck_ring_0(found: &DetectedPmu) -> Result<(), InitError> {
    recheck_counters(driver(found)?, all(found), |_| tally_pmu::work())
}

fn all(found: &DetectedPmu) -> CounterMask {
    let Layout { general, reference, .. } = found.layout();
    CounterMask { general, reference }
}

/// Checks what is counted in ring 3, see [`tally_pmu::check_ring_3`].
pub(super) fn check_ring_3(
    cpu: u16,
    found: &DetectedPmu,
    mut run: impl FnMut(bool) -> u64,
) -> Result<u64, InitError> {
    tally_pmu::check_ring_3(driver(found)?, |_, until_interrupt| run(until_interrupt))
        .or_else(|reason| report_failure(cpu, reason).map(|()| 0))
}
