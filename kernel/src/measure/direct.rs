//! Direct mode: a program owns the counters itself, and the kernel saves and restores them.

use alloc::vec::Vec;

use tally_abi::Mode;
use tally_engine::Direct;
use tally_pmu::ResolveError;

use super::{
    catalogue,
    claim::{Claim, Purpose},
    refusal::Refusal,
    session_id, settings,
};

/// A direct-mode program's counters.
pub struct DirectCounters {
    /// Number of the direct mode, unique among sessions too.
    pub(super) id: u32,
    pub(super) direct: Direct,
    /// Held so that no session counts whole CPUs.
    _claim: Claim,
}

impl DirectCounters {
    /// Assigns a counter to every event of a list. Returns RDPMC's ECX for each, in the order of
    /// the list.
    ///
    /// # Errors
    /// Direct mode is not permitted, or the events cannot be on counters at once.
    pub fn plan(list: &str, mode: Mode) -> Result<(Self, Vec<u32>), Refusal> {
        settings::permit(0, "direct mode")?;
        let found = settings::pmu()?;
        let (resolved, demands) = catalogue::resolve(found, list, mode)?;
        let direct = Direct::open(&demands, mode, &settings::layout(found))
            .map_err(|refused| ResolveError::of_plan(refused, &resolved))?;
        let indices =
            direct.assignments().iter().map(|assignment| found.rdpmc(*assignment)).collect();
        let claim = Claim::take(Purpose::Alone)?;
        Ok((DirectCounters { id: session_id::next(), direct, _claim: claim }, indices))
    }
}
