//! What holds for all CPUs and never changes: the machine's PMU, and what the command line says of
//! measuring.

use alloc::format;

use raw_cpuid::CpuIdReaderNative;
use spin::Once;
use tally_abi::{
    Error,
    boot::{CommandLine, Delivery, Tracing},
    wire::PmuInfo,
};
use tally_pmu::{Found, NoPmu};

use super::{Refusal, stream};
use crate::machine::vpmu;

static PMU: Once<Result<Found, NoPmu>> = Once::new();
static SETTINGS: Once<Settings> = Once::new();

pub(super) struct Settings {
    seed: u64,
    pub(super) trace: Option<Tracing>,
    pub(super) virtual_pmu: bool,
    paranoid: u8,
    overflows: Delivery,
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
    };
    SETTINGS.call_once(|| settings);
    if line.trace.is_some() {
        stream::init();
    }
}

/// The PMU, for the host.
pub fn pmu_info() -> Option<PmuInfo<'static>> {
    PMU.get()?.as_ref().ok().map(Found::info)
}

pub(super) fn pmu() -> Result<&'static Found, &'static NoPmu> {
    PMU.get().expect("measure::init runs first").as_ref()
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
