//! Settings of all CPUs that never change once programs run: the machine's PMU, whether all CPUs
//! can count, and the command line's options for measuring.

use alloc::format;
use core::{
    fmt,
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
};

use raw_cpuid::CpuIdReaderNative;
use spin::Once;
use tally_abi::{
    Error,
    boot::{CommandLine, CounterCheck, Delivery, Failure, Takeover, TraceEvents, Tracing},
    branches::BranchFilter,
    halt::{HaltTimer, Halts},
    wire::PmuInfo,
};
use tally_engine::Layout;
use tally_pmu::{Catalogue, DetectedPmu, InitError, NoPmu, virtual_pmu};

use super::refusal::Refusal;

static PMU: Once<Result<DetectedPmu, NoPmu>> = Once::new();
/// The first CPU whose PMU could not be initialized or failed later, and the reason.
static FAILURE: Once<(u16, InitError)> = Once::new();
/// Whether programs ran at the time of the failure.
static FAILED_LATE: AtomicBool = AtomicBool::new(false);
/// Value that [`overcount`] returns.
static OVERCOUNT: AtomicU64 = AtomicU64::new(0);
/// Mask of extra registers that a CPU lacks.
static MISSING_EXTRA: AtomicU8 = AtomicU8::new(0);
/// Whether a CPU has no PERF_METRICS.
static LACKS_METRICS: AtomicBool = AtomicBool::new(false);
/// Whether a started CPU cannot sample precisely.
static LACKS_PRECISE: AtomicBool = AtomicBool::new(false);
/// Filters with which every started CPU records branches.
static BRANCH_FILTERS: AtomicU64 = AtomicU64::new(u64::MAX);
static SETTINGS: Once<Settings> = Once::new();

pub(super) struct Settings {
    /// Seed. Relaxed order is enough: it changes while no program runs.
    seed: AtomicU64,
    pub(super) trace: Option<Tracing>,
    pub(super) trace_pages: Option<usize>,
    trace_events: TraceEvents,
    pub(super) virtual_pmu: bool,
    paranoid: u8,
    delivery: Delivery,
    pub(super) halts: Option<Halts>,
    pub(super) halt_timer: HaltTimer,
    pub(super) fail: Option<Failure>,
    pub(super) check_counters: Option<CounterCheck>,
    pub(super) takeover: Takeover,
}

/// Reason why nothing is counted on this machine.
#[derive(Clone, Copy)]
pub(super) enum CannotCount {
    NoPmu(&'static NoPmu),
    /// A CPU cannot count. Programs move, and on that CPU they would silently not be counted.
    OnCpu(u16, InitError),
}

impl fmt::Display for CannotCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotCount::NoPmu(reason) => reason.fmt(f),
            CannotCount::OnCpu(cpu, reason) => write!(f, "CPU {cpu} cannot count: {reason}"),
        }
    }
}

impl From<CannotCount> for Refusal {
    fn from(reason: CannotCount) -> Refusal {
        Refusal { error: Error::NoPmu, detail: format!("{reason}") }
    }
}

/// Detects the PMU and takes the command line's options for measuring. Once, before CPUs start.
pub(super) fn init(line: &CommandLine) {
    let found = PMU.call_once(|| detect(line.halts));
    match found {
        Ok(found) => {
            log::info!("{}", found.info().name);
            if let Some(note) = found.note {
                log::info!("{note}");
            }
        }
        Err(reason) => log::warn!("no PMU: {reason}; nothing can be counted"),
    }
    let settings = Settings {
        seed: AtomicU64::new(line.seed),
        trace: line.trace,
        trace_pages: line.trace_pages,
        trace_events: line.trace_events,
        virtual_pmu: virtual_pmu::is_there(),
        paranoid: line.paranoid,
        delivery: line.overflows,
        halts: line.halts,
        halt_timer: line.halt_timer.unwrap_or_default(),
        fail: line.fail,
        check_counters: line.check_counters,
        takeover: line.takeover,
    };
    SETTINGS.call_once(|| settings);
}

/// Detects this CPU's PMU, without the counter that halts need, and with the virtual PMU's own
/// events if it is virtual.
fn detect(halts: Option<Halts>) -> Result<DetectedPmu, NoPmu> {
    let found = tally_pmu::detect(CpuIdReaderNative)?;
    let found = if virtual_pmu::is_there() { found.with_tallys_events() } else { found };
    if halts.is_some() { found.with_halt_timer() } else { Ok(found) }
}

/// Returns whether this CPU's counters and events are those that [`init`] found on the first.
/// Programs move, and on a hybrid processor's other cores the same event select counts another
/// event.
pub fn pmu_matches() -> bool {
    match (detected(), detect(settings().halts)) {
        (Ok(first), Ok(this)) => first.is_like(&this),
        (first, this) => first.is_err() && this.is_err(),
    }
}

/// Description of the PMU, for the host.
pub fn pmu_info() -> Option<PmuInfo<'static>> {
    pmu().ok().map(DetectedPmu::info)
}

/// The PMU as detected on the first CPU, whether every CPU can count or not: for making drivers.
pub(super) fn detected() -> Result<&'static DetectedPmu, &'static NoPmu> {
    PMU.get().expect("measure::init runs first").as_ref()
}

/// Records that a CPU cannot count, so that no session is opened on any CPU, and no values of open
/// sessions are reported.
pub(super) fn record_failure(cpu: u16, reason: InitError) {
    log::error!("CPU {cpu} cannot count: {reason}; no CPU counts");
    FAILURE.call_once(|| (cpu, reason));
}

/// Records that a CPU can no longer count; otherwise as [`record_failure`].
pub(super) fn record_late_failure(cpu: u16, reason: InitError) {
    record_failure(cpu, reason);
    // The last CPU takes the lock of the table of programs between this store and its load.
    FAILED_LATE.store(true, Ordering::Relaxed);
}

/// Returns whether a CPU cannot count, or cannot count any more.
pub(super) fn has_failed() -> bool {
    FAILURE.get().is_some()
}

/// The reason why no values are reported of sessions that were open while programs ran, if there is
/// one.
pub fn late_failure() -> Option<impl fmt::Display> {
    let (cpu, reason) = FAILURE.get().filter(|_| FAILED_LATE.load(Ordering::Relaxed))?;
    Some(CannotCount::OnCpu(*cpu, *reason))
}

/// The counters for groups, with the extra registers that every started CPU has.
pub(super) fn layout(found: &DetectedPmu) -> Layout {
    let layout = found.layout();
    Layout { extra: layout.extra & !MISSING_EXTRA.load(Ordering::Relaxed), ..layout }
}

/// Records the extra registers, `has`, that a CPU has of those that its model should have.
pub(super) fn record_extra(cpu: u16, found: &DetectedPmu, has: u8) {
    let missing = found.layout().extra & !has;
    // Relaxed order is enough: CPUs start before programs ask for events.
    if missing & !MISSING_EXTRA.fetch_or(missing, Ordering::Relaxed) != 0 {
        log::warn!(
            "CPU {cpu} lacks extra registers of its model; events that need them are refused"
        );
    }
}

/// Records whether a CPU has PERF_METRICS.
pub(super) fn record_metrics(has_metrics: bool) {
    LACKS_METRICS.fetch_or(!has_metrics, Ordering::Relaxed);
}

/// Records whether a CPU can sample precisely.
pub(super) fn record_precise(can_sample_precisely: bool) {
    LACKS_PRECISE.fetch_or(!can_sample_precisely, Ordering::Relaxed);
}

/// Records the filters with which a CPU records branches.
pub(super) fn record_branches(filters: BranchFilter) {
    BRANCH_FILTERS.fetch_and(filters.bits(), Ordering::Relaxed);
}

/// Checks that every started CPU records branches, and that a session records those to ring 0 only
/// if it `counts_kernel`.
///
/// # Errors
/// They do not, or it does not; the log has the reason.
pub(super) fn permit_branches(filter: BranchFilter, counts_kernel: bool) -> Result<(), Error> {
    let filters = BRANCH_FILTERS.load(Ordering::Relaxed);
    if filters == 0 {
        log::warn!("no branches are recorded: this processor, or its hypervisor, has no records");
        return Err(Error::EventNotSupported);
    }
    if filter.bits() & !filters != 0 {
        log::warn!("this processor's records have no stack of calls: record -g copies the stack");
        return Err(Error::EventNotSupported);
    }
    if filter.has(BranchFilter::KERNEL) && !counts_kernel {
        log::warn!("branches to ring 0 are recorded in sessions that count ring 0: use --kernel");
        return Err(Error::NotPermitted);
    }
    Ok(())
}

/// The catalogue of the processor's events, with the metrics and the precise samples that every
/// started CPU has.
pub(super) fn catalogue(found: &DetectedPmu) -> Catalogue {
    let [lacks_metrics, lacks_precise] =
        [&LACKS_METRICS, &LACKS_PRECISE].map(|lacks| lacks.load(Ordering::Relaxed));
    found.catalogue().with_metrics(!lacks_metrics).with_precise(!lacks_precise)
}

/// Records the instructions that this CPU counts in ring 3 for an interrupt there.
pub(super) fn record_overcount(cpu: u16, overcount: u64) {
    if overcount > 0 {
        log::info!(
            "CPU {cpu}: an interrupt in ring 3 counts as up to {overcount} instructions; half widths \
             have them"
        );
    }
    OVERCOUNT.fetch_max(overcount, Ordering::Relaxed);
}

/// Maximum number of instructions that a CPU counts in ring 3 for an interrupt there.
pub(super) fn overcount() -> u64 {
    OVERCOUNT.load(Ordering::Relaxed)
}

/// The PMU, if every CPU can count.
pub(super) fn pmu() -> Result<&'static DetectedPmu, CannotCount> {
    let found = detected().map_err(CannotCount::NoPmu)?;
    match FAILURE.get() {
        Some((cpu, reason)) => Err(CannotCount::OnCpu(*cpu, *reason)),
        None => Ok(found),
    }
}

/// Seed of everything random.
pub fn seed() -> u64 {
    settings().seed.load(Ordering::Relaxed)
}

/// Sets the seed of everything random from now on.
pub fn set_seed(seed: u64) {
    settings().seed.store(seed, Ordering::Relaxed);
}

/// Configuration of the halts of CPUs; `None` before the options are known.
pub fn halts() -> Option<Halts> {
    SETTINGS.get()?.halts
}

/// Returns whether there is a trace.
pub fn is_tracing() -> bool {
    settings().trace.is_some()
}

/// The trace's events in addition to slices, thresholds and samples.
pub fn trace_events() -> TraceEvents {
    settings().trace_events
}

/// Delivery of overflow interrupts.
pub fn delivery() -> Delivery {
    settings().delivery
}

/// Returns whether NMIs are overflow interrupts; not before [`init`], which a wrong command line
/// does not reach.
pub fn overflows_are_nmis() -> bool {
    SETTINGS.get().is_some_and(|settings| settings.delivery == Delivery::Nmi)
}

/// Checks that the command line's `paranoid` is at most `level`, which `what` requires.
///
/// # Errors
/// The option is higher; the text says how to permit it.
pub fn permit(level: u8, what: &str) -> Result<(), Refusal> {
    if settings().paranoid <= level {
        return Ok(());
    }
    let detail =
        format!("{what} is not permitted: boot with paranoid={level} or less on the command line");
    Err(Refusal { error: Error::NotPermitted, detail })
}

pub(super) fn settings() -> &'static Settings {
    SETTINGS.get().expect("measure::init runs first")
}
