//! Checks of a CPU's PMU, and its multiplexer.

use alloc::boxed::Box;

use spin::Once;
use tally_abi::{
    Mode,
    boot::{Delivery, Failure, MAX_CPUS, Takeover},
};
use tally_engine::{CounterMask, Counts, Group, Layout, Multiplexer, Pmu};
use tally_pmu::{
    DebugStore, DetectedPmu, Driver, InitError, RecordBuffer, access_costs, bus::Native,
    check_counters, check_interrupt, recheck_counters, virtual_pmu,
};
use x86_64::structures::paging::PhysFrame;

use crate::{
    arch::{lapic::Lapic, vectors},
    measure::{
        checked::{is_reported, report_costs, report_failure},
        settings::{
            delivery, record_branches, record_extra, record_metrics, record_precise, settings,
        },
    },
    memory::frames::{self, User},
};

/// The memory for each CPU's precise samples, in the kernel's heap, which every address space maps.
static DEBUG_STORES: [Once<Box<DebugStore>>; MAX_CPUS] = [const { Once::new() }; MAX_CPUS];

/// The frame for each CPU's precise samples, where they go to a physical address.
static RECORD_BUFFERS: [Once<PhysFrame>; MAX_CPUS] = [const { Once::new() }; MAX_CPUS];

/// The frame for a CPU's precise samples, with its physical address; `None` without memory.
fn record_buffer(cpu: u16) -> Option<(&'static RecordBuffer, u64)> {
    let buffer = RECORD_BUFFERS.get(usize::from(cpu))?;
    let frame = buffer.try_call_once(|| frames::allocate_in_turn(User::Kernel)).ok()?;
    let start = frame.start_address();
    // SAFETY: (1) the frame is the kernel's, is never freed, and is mapped there; (2) it has the
    // type's size and alignment, and any bytes are words; (3) the processor's writes are like those
    // of another CPU to words that are atomic.
    let memory = unsafe { &*frames::kernel_view(start).as_ptr::<RecordBuffer>() };
    Some((memory, start.as_u64()))
}

/// Access to this CPU's PMU, for one user at a time.
fn bus() -> Native {
    // SAFETY: (1) this is ring 0; (2) `detect` found the PMU on this machine, whose CPUs are alike;
    // (3) the user stays with this CPU; (4) `entry` handles the fault.
    unsafe { Native::new() }
}

/// Makes a driver of this CPU's PMU in the state after [`DetectedPmu::init_cpu`]. One at a time.
fn driver(found: &DetectedPmu) -> Result<Driver<Native>, InitError> {
    found.init_cpu(bus())
}

/// Warns of a counter that firmware or a hypervisor left on, which [`driver`] turns off; refuses it
/// if requested.
fn take_over(cpu: u16, found: &DetectedPmu) -> Result<(), InitError> {
    let Some(control) = found.left_on(bus()) else { return Ok(()) };
    if settings().takeover == Takeover::Refuse {
        return Err(InitError::CounterInUse(control));
    }
    log::warn!("CPU {cpu}: {control}: a counter was left on; it is taken over");
    Ok(())
}

/// Lets the interrupt of an entry of the extended local vector table come as an overflow interrupt;
/// returns whether it does. QEMU's APIC has no such table; in xAPIC mode the virtual PMU delivers
/// the interrupt by the entry of the performance counters.
fn route(lapic: &Lapic, entry: u8) -> bool {
    lapic.unmask_extended(entry, delivery()) || virtual_pmu::is_there()
}

/// Makes the multiplexer of this CPU.
pub(super) fn multiplexer(
    cpu: u16,
    lapic: &Lapic,
    found: &DetectedPmu,
) -> Result<Multiplexer<Driver<Native>>, InitError> {
    let mut driver = driver(found)?;
    if let Some(store) = DEBUG_STORES.get(usize::from(cpu)) {
        let store = || &**store.call_once(Box::default);
        driver.sample_precisely(store, || record_buffer(cpu), |entry| route(lapic, entry));
    }
    driver.record_branches();
    record_extra(cpu, found, driver.extra());
    record_metrics(driver.has_metrics());
    record_precise(driver.can_sample_precisely());
    record_branches(driver.branch_filters());
    Ok(Multiplexer::new(driver, cpu, lapic.pmi_msr_accesses(delivery())))
}

/// Takes over this CPU's counters. Checks, if requested, that every counter counts and that an
/// overflow raises an interrupt, which stays pending. For NMIs, [`check_nmi`] checks the latter. If
/// a report is requested, also times accesses to registers.
pub(super) fn check_ring_0(cpu: u16, lapic: &Lapic, found: &DetectedPmu) -> Result<(), InitError> {
    if settings().fail == Some(Failure::Pmu) && cpu > 0 {
        driver(found)?.restore(&Group::NONE, Mode::User, &Counts::default());
    }
    take_over(cpu, found)?;
    if settings().check_counters.is_none() {
        return Ok(());
    }
    check_at_ring_0(lapic, found).or_else(|reason| report_failure(cpu, reason))?;
    if is_reported() {
        report_costs(cpu, access_costs(driver(found)?, all(found).general));
    }
    Ok(())
}

fn check_at_ring_0(lapic: &Lapic, found: &DetectedPmu) -> Result<(), InitError> {
    check_counters(driver(found)?, all(found), |_| tally_pmu::work())?;
    if delivery() == Delivery::Nmi {
        return Ok(());
    }
    lapic.unmask_pmi(Delivery::Fixed);
    let is_raised = || lapic.is_pending(vectors::PMI);
    let checked = check_interrupt(driver(found)?, all(found), |_| tally_pmu::work(), is_raised);
    tally_pmu::settle();
    checked
}

/// Checks that an overflow raises an NMI, with the interrupt's entry unmasked. `is_pending` returns
/// whether one came.
pub(super) fn check_nmi(
    cpu: u16,
    found: &DetectedPmu,
    is_pending: impl FnMut() -> bool,
) -> Result<(), InitError> {
    let checked = check_interrupt(driver(found)?, all(found), |_| tally_pmu::work(), is_pending);
    tally_pmu::settle();
    checked.or_else(|reason| report_failure(cpu, reason))
}

/// Checks that every counter still counts, while nothing else does.
pub(super) fn recheck_ring_0(found: &DetectedPmu) -> Result<(), InitError> {
    recheck_counters(driver(found)?, all(found), |_| tally_pmu::work())
}

fn all(found: &DetectedPmu) -> CounterMask {
    let Layout { general, reference, .. } = found.layout();
    CounterMask { general, reference }
}

/// Checks the counts in ring 3; see [`tally_pmu::check_ring_3`].
pub(super) fn check_ring_3(
    cpu: u16,
    found: &DetectedPmu,
    mut run: impl FnMut(bool) -> u64,
) -> Result<u64, InitError> {
    tally_pmu::check_ring_3(driver(found)?, |_, until_interrupt| run(until_interrupt))
        .or_else(|reason| report_failure(cpu, reason).map(|()| 0))
}
