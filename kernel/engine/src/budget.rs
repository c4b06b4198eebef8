//! The engine's budget: the share of the program's time that the engine may take.
//!
//! The cost of a group switch is fixed; the engine chooses how often it switches. Where it took
//! more than its share lately, it lengthens slices by a whole factor, the slice multiplier, and
//! shortens them again, never below the length asked for, when the budget allows. A slice's record
//! has its multiplier.
//!
//! Where the processor counts core cycles in every ring, a switch costs what passed between two
//! ends of slices and was not counted for the program. That includes the interrupt's delivery and
//! return, which the handler itself cannot time. It also includes whatever else the kernel did
//! meanwhile, for the program or for the timer. So the cost is the least of the last stretches of
//! slices. Elsewhere the handler's time by the TSC is the cost.

/// Millionths of the whole.
const WHOLE_PPM: u64 = 1_000_000;
/// The most that an update lengthens slices by, as a factor. The next update comes a fixed number
/// of slices later, however long they are: one that sees a program start, mostly in ring 0, must
/// not make slices that outlast it.
const MOST_RISE: u32 = 4;
/// Slices become shorter by this part of their length, or not at all.
const LEAST_FALL: u32 = 16;
/// The estimate of what a switch costs rises by this part of itself at most, from one stretch of
/// slices to the next. In one of six stretches of the default job the kernel does nothing else; a
/// part of an eighth kept the estimate a third above the cost in those.
const COST_RISE: u64 = 16;

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
    /// Core cycles of a switch; 0 while they are not known.
    switch_cycles: u64,
}

/// Some slices, one after another: core cycles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// Slices that ended, at least 1.
    pub(crate) slices: u64,
    /// Core cycles that passed, in any ring.
    pub(crate) passed: u64,
    /// Core cycles that were counted for the program.
    pub(crate) counted: u64,
}

impl Budget {
    /// Slices from one update to the next.
    pub(crate) const SLICES: u64 = 16;

    /// The budget for slices of `length`, and at most `max`; the first have `first` times the
    /// length.
    pub(crate) fn new(limit_ppm: u32, length: u64, first: u32, max: u64) -> Budget {
        let max_multiplier = max.checked_div(length).and_then(|max| max.try_into().ok());
        let max_multiplier = max_multiplier.unwrap_or(1).max(1);
        Budget {
            limit_ppm,
            max_multiplier,
            slice_multiplier: first.min(max_multiplier),
            engine_ticks: 0,
            session_ticks: 0,
            switch_cycles: 0,
        }
    }

    /// The length of slices that begin now, in units of the length asked for.
    #[inline]
    pub(crate) fn slice_multiplier(&self) -> u32 {
        self.slice_multiplier
    }

    /// Core cycles of a switch with the interrupt's delivery and return, and of the folding of its
    /// slice; 0 while they are not known.
    pub(crate) fn switch_cycles(&self) -> u64 {
        self.switch_cycles
    }

    /// Estimates the cost of a switch anew.
    pub(crate) fn observe(&mut self, stretch: Stretch) {
        let cost = stretch.passed.saturating_sub(stretch.counted) / stretch.slices.max(1);
        // It stays near the least of the last stretches.
        let most = match self.switch_cycles {
            0 => u64::MAX,
            known => known + known.div_ceil(COST_RISE),
        };
        self.switch_cycles = cost.clamp(1, most);
    }

    /// Chooses the slice multiplier by the cost of a switch. `stretch` had slices of the present
    /// length.
    pub(crate) fn update_by_cycles(&mut self, stretch: Stretch) {
        self.choose(self.switch_cycles.saturating_mul(stretch.slices), stretch.counted);
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
        self.choose(engine, session.saturating_sub(engine));
    }

    /// Chooses the slice multiplier by what the engine and the program took, in one unit.
    fn choose(&mut self, engine: u64, program: u64) {
        let program = program.max(1);
        let limit = u64::from(self.limit_ppm);
        let wanted = engine.saturating_mul(WHOLE_PPM - limit) / limit;
        let slice_multiplier =
            wanted.saturating_mul(self.slice_multiplier.into()).div_ceil(program);
        let most = self.slice_multiplier.saturating_mul(MOST_RISE).min(self.max_multiplier);
        let slice_multiplier = u32::try_from(slice_multiplier).unwrap_or(u32::MAX).clamp(1, most);
        // A small step down is not worth the setting of lengths anew.
        if slice_multiplier > self.slice_multiplier
            || slice_multiplier < self.slice_multiplier - self.slice_multiplier / LEAST_FALL
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
        let mut budget = Budget::new(limit_ppm, slice, 1, MAX_SLICE);
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

    /// Lets stretches of slices of `slice` cycles pass, a switch costing `cost`, and other work of
    /// the kernel `others[i]` in stretch `i`; gives the last multiplier and the cost found.
    fn settle_by_cycles(slice: u64, cost: u64, others: &[u64]) -> (u32, u64) {
        let mut budget = Budget::new(20_000, slice, 1, MAX_SLICE);
        for other in others {
            let slices = Budget::SLICES;
            let counted = slices * slice * u64::from(budget.slice_multiplier());
            let stretch = Stretch { slices, counted, passed: counted + slices * cost + other };
            budget.observe(stretch);
            budget.update_by_cycles(stretch);
        }
        (budget.slice_multiplier(), budget.switch_cycles())
    }

    #[test]
    fn core_cycles_tell_what_a_switch_costs() {
        assert_eq!(settle_by_cycles(5_000, 2_000, &[0; 4]), (20, 2_000));
        assert_eq!(settle_by_cycles(200_000, 2_000, &[0; 4]), (1, 2_000));
    }

    #[test]
    fn what_else_the_kernel_does_is_no_cost_of_switches() {
        let busy = 16 * 50_000;
        let (multiplier, cost) = settle_by_cycles(5_000, 2_000, &[busy, 0, busy, busy, 0, busy]);
        assert!((2_000..=2_250).contains(&cost), "{cost}");
        assert!((20..=25).contains(&multiplier), "{multiplier}");
    }

    #[test]
    fn a_switch_that_becomes_dearer_is_noticed() {
        let mut budget = Budget::new(20_000, 5_000, 1, MAX_SLICE);
        let stretch =
            |cost: u64| Stretch { slices: 16, counted: 80_000, passed: 80_000 + 16 * cost };
        budget.observe(stretch(1_000));
        (0..20).for_each(|_| budget.observe(stretch(3_000)));
        assert_eq!(budget.switch_cycles(), 3_000);
    }

    #[test]
    fn no_budget_limits_nothing() {
        assert_eq!(settle(1_000_000, 10, 1_000).0, 1);
    }

    #[test]
    fn slices_become_short_again_when_switches_become_cheap() {
        let mut budget = Budget::new(20_000, 1_000, 1, MAX_SLICE);
        budget.update(1_000, 6_000);
        budget.update(2_000, 21_000);
        assert_eq!(budget.slice_multiplier(), 14);
        budget.update(2_100, 1_000_000);
        assert_eq!(budget.slice_multiplier(), 1);
    }

    #[test]
    fn a_start_in_ring_0_does_not_make_slices_that_outlast_the_program() {
        // The engine's time is ahead of the session's while nothing of the program is credited.
        let mut budget = Budget::new(100_000, 1_800, 1, MAX_SLICE);
        budget.update(5_000, 4_000);
        assert_eq!(budget.slice_multiplier(), 4);
        let mut by_cycles = Budget::new(100_000, 1_800, 1, MAX_SLICE);
        let start = Stretch { slices: 16, passed: 9_000_000, counted: 16 * 1_800 };
        by_cycles.observe(start);
        by_cycles.update_by_cycles(start);
        assert_eq!(by_cycles.slice_multiplier(), 4);
    }
}
