//! The engine's budget: the share of a program's time that it may take for itself.
//!
//! A switch costs what it costs; what the engine can choose is how often it happens. So where the
//! engine took more than its share lately, slices become longer, by a whole factor, and shorter
//! again, never below what was asked for, when they need not be so long. Slices that are longer say
//! so in their records.

use tally_abi::session::MAX_SLICE;

/// Millionths of the whole.
const WHOLE_PPM: u64 = 1_000_000;

/// What a session may take, and how long its slices are for that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit_ppm: u32,
    /// The most that a timer can be set to, in units of what was asked for.
    max_multiplier: u32,
    slice_multiplier: u32,
    /// TSC ticks of engine and session at the last look.
    engine_ticks: u64,
    session_ticks: u64,
}

impl Budget {
    /// Slices from one look to the next.
    pub(crate) const SLICES: u64 = 16;

    /// For slices that are to have `length`.
    pub(crate) fn new(limit_ppm: u32, length: u64) -> Budget {
        let max_multiplier = MAX_SLICE.checked_div(length).and_then(|max| max.try_into().ok());
        let max_multiplier = max_multiplier.unwrap_or(1).max(1);
        Budget { limit_ppm, max_multiplier, slice_multiplier: 1, engine_ticks: 0, session_ticks: 0 }
    }

    /// The length of slices that begin now, in units of what was asked for.
    #[inline]
    pub(crate) fn slice_multiplier(&self) -> u32 {
        self.slice_multiplier
    }

    /// Takes in what the engine and the session took so far, and chooses the length of the next
    /// slices. In the overflow path: a few divisions each [`Self::SLICES`] slices.
    pub(crate) fn update(&mut self, engine_ticks: u64, session_ticks: u64) {
        let engine = engine_ticks.wrapping_sub(self.engine_ticks);
        let session = session_ticks.wrapping_sub(self.session_ticks);
        (self.engine_ticks, self.session_ticks) = (engine_ticks, session_ticks);
        // The engine's time is inside the session's. What the program had for itself grows with the
        // slices, what the engine takes does not.
        let program = session.saturating_sub(engine).max(1);
        let limit = u64::from(self.limit_ppm);
        let wanted = engine.saturating_mul(WHOLE_PPM - limit) / limit;
        let slice_multiplier =
            wanted.saturating_mul(self.slice_multiplier.into()).div_ceil(program);
        let slice_multiplier =
            u32::try_from(slice_multiplier).unwrap_or(u32::MAX).clamp(1, self.max_multiplier);
        // Down only where it is worth it, so that lengths do not go back and forth.
        if slice_multiplier > self.slice_multiplier
            || slice_multiplier < self.slice_multiplier - self.slice_multiplier / 4
        {
            self.slice_multiplier = slice_multiplier;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets slices of `slice` ticks pass, a switch costing `cost`, until lengths stay; then gives
    /// the slice_multiplier and the share that the engine takes, in ppm.
    fn settle(limit_ppm: u32, slice: u64, cost: u64) -> (u32, u64) {
        let mut budget = Budget::new(limit_ppm, slice);
        let (mut engine, mut session, mut share) = (0, 0, 0);
        for _ in 0..20 {
            let more = Budget::SLICES * (slice * u64::from(budget.slice_multiplier()) + cost);
            engine += Budget::SLICES * cost;
            session += more;
            share = Budget::SLICES * cost * WHOLE_PPM / more;
            budget.update(engine, session);
        }
        (budget.slice_multiplier(), share)
    }

    #[test]
    fn cheap_switches_change_nothing() {
        assert_eq!(settle(20_000, 200_000, 1_000), (1, 4_975));
    }

    #[test]
    fn dear_switches_make_slices_just_long_enough() {
        for (slice, cost) in [(5_000, 1_000), (1, 500), (300, 77), (5_000, 5_000)] {
            let (slice_multiplier, share) = settle(20_000, slice, cost);
            assert!(share <= 20_000, "{slice} {cost}: {share} ppm");
            let shorter = slice * u64::from(slice_multiplier - 1);
            assert!(
                cost * WHOLE_PPM / (shorter + cost) > 19_000,
                "{slice} {cost}: {slice_multiplier}"
            );
        }
    }

    #[test]
    fn no_budget_limits_nothing() {
        assert_eq!(settle(1_000_000, 10, 1_000).0, 1);
    }

    #[test]
    fn what_became_cheap_becomes_short_again() {
        let mut budget = Budget::new(20_000, 1_000);
        budget.update(1_000, 2_000);
        assert_eq!(budget.slice_multiplier(), 49);
        budget.update(1_100, 1_000_000);
        assert_eq!(budget.slice_multiplier(), 1);
    }
}
