//! What holds for all CPUs and never changes once programs run: the machine's PMU, whether all CPUs can
//! count by it, and what the command line says of measuring.

use alloc::format;
use core::fmt;

use raw_cpuid::CpuIdReaderNative;
use spin::Once;
use tally_abi::{
    Error,
    boot::{CommandLine, Delivery, Failure, Tracing},
    wire::PmuInfo,
};
use tally_pmu::{DetectedPmu, InitError, NoPmu};

use super::{Refusal, stream};
use crate::machine::vpmu;

static PMU: Once<Result<DetectedPmu, NoPmu>> = Once::new();
/// The CPU that found first that it cannot count, and why.
static LACKING: Once<(u16, InitError)> = Once::new();
static SETTINGS: Once<Settings> = Once::new();

pub(super) struct Settings {
    seed: u64,
    pub(super) trace: Option<Tracing>,
    pub(super) virtual_pmu: bool,
    paranoid: u8,
    overflows: Delivery,
    pub(super) fail: Option<Failure>,
}

/// Why nothing is counted on this machine.
#[derive(Clone, Copy)]
pub(super) enum CannotCount {
    NoPmu(&'static NoPmu),
    /// One of its CPUs cannot. Programs move: on that CPU theirs would go uncounted, and nobody would know.
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

/// Looks for a PMU and keeps what the command line says of measuring. Once, before CPUs start.
pub fn init(line: &CommandLine) {
    let found = PMU.call_once(|| tally_pmu::detect(CpuIdReaderNative));
    match found {
        Ok(found) => {
            log::info!("{}", found.info().name);
            if let Some(note) = found.note {
                log::info!("{note}");
            }
        }
        Err(reason) => log::warn!("no event can be counted: {reason}"),
    }
    let settings = Settings {
        seed: line.seed,
        trace: line.trace,
        virtual_pmu: vpmu::is_there(),
        paranoid: line.paranoid,
        overflows: line.overflows,
        fail: line.fail,
    };
    SETTINGS.call_once(|| settings);
    if line.trace.is_some() {
        stream::init();
    }
}

/// Whether this CPU's counters and events are those that [`init`] found on the first: programs move, and the
/// same selector counts something else on a hybrid processor's other cores.
pub fn is_alike() -> bool {
    match (detected(), tally_pmu::detect(CpuIdReaderNative)) {
        (Ok(first), Ok(this)) => first.is_like(&this),
        (first, this) => first.is_err() && this.is_err(),
    }
}

/// The PMU, for the host.
pub fn pmu_info() -> Option<PmuInfo<'static>> {
    pmu().ok().map(DetectedPmu::info)
}

/// The PMU of this CPU's kind, for its driver to be made.
pub(super) fn detected() -> Result<&'static DetectedPmu, &'static NoPmu> {
    PMU.get().expect("measure::init runs first").as_ref()
}

/// A CPU cannot count.
pub(super) fn lack(cpu: u16, reason: InitError) {
    log::error!("CPU {cpu} cannot count, so nothing is counted on any: {reason}");
    LACKING.call_once(|| (cpu, reason));
}

/// The PMU, by which every CPU can count.
pub(super) fn pmu() -> Result<&'static DetectedPmu, CannotCount> {
    let found = detected().map_err(CannotCount::NoPmu)?;
    match LACKING.get() {
        Some((cpu, reason)) => Err(CannotCount::OnCpu(*cpu, *reason)),
        None => Ok(found),
    }
}

/// The seed of everything random.
pub fn seed() -> u64 {
    settings().seed
}

/// How overflow interrupts are delivered.
pub fn overflows() -> Delivery {
    settings().overflows
}

/// Whether programs may do what takes a level of `paranoid` of at most so much; `what` it is, for
/// people.
///
/// # Errors
/// They may not; the text says what to do.
pub fn permit(level: u8, what: &str) -> Result<(), Refusal> {
    if settings().paranoid <= level {
        return Ok(());
    }
    let detail = format!("{what} is not permitted: boot with paranoid={level} on the command line");
    Err(Refusal { error: Error::NotPermitted, detail })
}

pub(super) fn settings() -> &'static Settings {
    SETTINGS.get().expect("measure::init runs first")
}
