//! A session's setup of the PMU, from the checked configuration.

use tally_abi::{
    SessionConfig, Shares, Slice,
    branches::BranchFilter,
    session::{AUTO_FIRST, MAX_SLICE, MIN_SLICE, NO_BUDGET_PPM},
};

use crate::{
    demand::{Demand, Layout, Pinned},
    hardware::Setup,
    plan::PlanError,
    precise::Records,
};

/// Upper bound of an event's frequency per cycle (the widest cores retire eight micro-operations).
/// AMD's floating-point operations can be more, up to 64; counters of 48 bits have room for them.
pub(crate) const MOST_PER_CYCLE: u64 = 16;
/// Upper bound of cycles, and of events, per instruction on average over a slice: a chain of loads
/// from memory takes some 300 cycles each.
const MOST_PER_INSTRUCTION: u64 = 1 << 10;

/// Number of halvings of the short slices in a pair of rounds ([`Shares::Paired`]).
pub(crate) const PAIR_HALVINGS: u8 = 2;

/// Length of a session's longest slices.
pub(crate) fn longest(config: SessionConfig) -> u64 {
    let is_paired = config.shares == Shares::Paired;
    config.slice.length().saturating_mul(if is_paired { 1 << PAIR_HALVINGS } else { 1 })
}

impl Setup {
    /// The setup of a session of `demands`.
    ///
    /// # Errors
    /// The slice's length or the budget is out of range.
    pub fn new(
        config: SessionConfig,
        layout: &Layout,
        demands: &[Demand],
    ) -> Result<Setup, PlanError> {
        let (length, max) = (config.slice.length(), max_slice(config.slice, layout));
        let longest = longest(config);
        if length < MIN_SLICE || longest > max {
            let max = max / (longest / length.max(1)).max(1);
            return Err(PlanError::SliceOutOfRange { length, max });
        }
        let ppm = config.budget_ppm;
        if !(1..=NO_BUDGET_PPM).contains(&ppm) {
            return Err(PlanError::BudgetOutOfRange { ppm });
        }
        let timer = match config.slice {
            Slice::Cycles(_) | Slice::Auto => Pinned::Cycles,
            Slice::Instructions(_) => Pinned::Instructions,
        };
        let kernel = config.mode.kernel() || demands.iter().any(|demand| demand.kernel);
        let pairs = demands.iter().any(|demand| demand.pair.is_some());
        let metrics = demands.iter().any(|demand| demand.metric.is_some());
        let records = |all: Option<Records>, of| Some(all.unwrap_or_default().with(of));
        let precise = demands.iter().filter_map(|demand| demand.precise).fold(None, records);
        let (mode, branches) = (config.mode, BranchFilter::default());
        Ok(Setup { mode, kernel, pairs, metrics, precise, branches, timer, max_slice: max })
    }
}

/// The longest slice in which no counter can wrap more than once, because a count is the difference
/// of two readings. At most [`MAX_SLICE`].
fn max_slice(slice: Slice, layout: &Layout) -> u64 {
    let fits = layout.widths.pinned.min(layout.widths.general);
    let most = match slice {
        Slice::Cycles(_) | Slice::Auto => MOST_PER_CYCLE,
        Slice::Instructions(_) => MOST_PER_INSTRUCTION,
    };
    (fits / most).min(MAX_SLICE)
}

/// The length of a session's first slices, in units of [`longest`].
pub(crate) fn first_multiplier(slice: Slice) -> u32 {
    match slice {
        Slice::Cycles(_) | Slice::Instructions(_) => 1,
        Slice::Auto => AUTO_FIRST,
    }
}
