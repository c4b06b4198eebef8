//! The engine's budget: the share of the program's time that the engine may take.
//!
//! The cost of a group switch is fixed; the engine chooses how often it switches. Where it took
//! more than its share lately, it lengthens slices by a whole factor, the slice multiplier, and
//! shortens them again, never below the length asked for, when the budget allows. A slice's record
//! has its multiplier.

/// Millionths of the whole.
const WHOLE_PPM: u64 = 1_000_000;

/// What the engine may take for a session, and the slice multiplier that keeps it within that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit_ppm: u32,
    /// The longest slice, in units of the length asked for.
    max_multiplier: u32,
    slice_multiplier: u32,
    /// TSC ticks of engine and session at the last update.
    engine_ticks: u64,
    session_ticks: u64,
}

impl Budget {
    /// Slices from one update to the next.
    pub(crate) const SLICES: u64 = 16;

    /// The budget for slices of `length`, and at most `max`.
    pub(crate) fn new(limit_ppm: u32, length: u64, max: u64) -> Budget {
        let max_multiplier = max.checked_div(length).and_then(|max| max.try_into().ok());
        let max_multiplier = max_multiplier.unwrap_or(1).max(1);
        Budget { limit_ppm, max_multiplier, slice_multiplier: 1, engine_ticks: 0, session_ticks: 0 }
    }

    /// The length of slices that begin now, in units of the length asked for.
    #[inline]
    pub(crate) fn slice_multiplier(&self) -> u32 {
        self.slice_multiplier
    }

    /// Leaves the time up to now out of the next update.
    pub(crate) fn skip(&mut self, engine_ticks: u64, session_ticks: u64) {
        (self.engine_ticks, self.session_ticks) = (engine_ticks, session_ticks);
    }

    /// Chooses the slice multiplier by the time that the engine and the session have taken so far.
    /// In the overflow path: a few divisions each [`Self::SLICES`] slices.
    pub(crate) fn update(&mut self, engine_ticks: u64, session_ticks: u64) {
        let engine = engine_ticks.wrapping_sub(self.engine_ticks);
        let session = session_ticks.wrapping_sub(self.session_ticks);
        (self.engine_ticks, self.session_ticks) = (engine_ticks, session_ticks);
        // The engine's time is part of the session's. The program's own time grows with the slices,
        // the engine's does not.
        let program = session.saturating_sub(engine).max(1);
        let limit = u64::from(self.limit_ppm);
        let wanted = engine.saturating_mul(WHOLE_PPM - limit) / limit;
        let slice_multiplier =
            wanted.saturating_mul(self.slice_multiplier.into()).div_ceil(program);
        let slice_multiplier =
            u32::try_from(slice_multiplier).unwrap_or(u32::MAX).clamp(1, self.max_multiplier);
        // Down by a quarter or not at all, so that lengths do not alternate.
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
    use tally_abi::session::MAX_SLICE;

    /// Lets slices of `slice` ticks pass, a switch costing `cost`, until lengths stay; then gives
    /// the slice_multiplier and the share that the engine takes, in ppm.
    fn settle(limit_ppm: u32, slice: u64, cost: u64) -> (u32, u64) {
        let mut budget = Budget::new(limit_ppm, slice, MAX_SLICE);
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
    fn slices_become_just_long_enough_for_the_budget() {
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
    fn slices_become_short_again_when_switches_become_cheap() {
        let mut budget = Budget::new(20_000, 1_000, MAX_SLICE);
        budget.update(1_000, 2_000);
        assert_eq!(budget.slice_multiplier(), 49);
        budget.update(1_100, 1_000_000);
        assert_eq!(budget.slice_multiplier(), 1);
    }
}
