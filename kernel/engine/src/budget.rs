//! The engine's budget: the share of the program's time that the engine may take.
//!
//! The cost of a group switch is fixed; the engine chooses how often it switches. If it has
//! recently taken more than its share, it lengthens slices by an integer factor, the slice
//! multiplier. It shortens them again when the budget allows, never below the requested length. A
//! slice's record has its multiplier.
//!
//! If the processor counts core cycles in every ring, the cost of a switch is the number of core
//! cycles between the ends of two successive slices that were not counted for the program: the
//! interrupt's delivery and return, which the handler itself cannot time, and the handler. If the
//! kernel was entered for another reason in that slice, the difference contains that work too and
//! is only an upper bound. The engine times its work outside of the interrupt, such as the folding
//! of slices. On other processors the cost is the handler's time by the TSC.

/// Parts per million of a whole.
const WHOLE_PPM: u64 = 1_000_000;
/// Maximum factor by which one update lengthens slices. The next update comes a fixed number of
/// slices later, whatever their length: an update that sees a program's start, mostly in ring 0,
/// must not make slices that outlast it.
const MOST_RISE: u32 = 4;
/// Minimum reduction of slices, as a fraction (one in so many) of their length; smaller ones are
/// not made.
const LEAST_FALL: u32 = 16;
/// Maximum rise of the estimated switch cost from one examined slice to the next, as a fraction of
/// the cost. Hardware may take cycles that neither the program nor the kernel knows of, such as a
/// system management interrupt.
const COST_RISE: u64 = 16;
/// Weight of a new value in an average, as a fraction.
const WEIGHT: u64 = 4;

/// A session's budget, and the slice multiplier that keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    limit_ppm: u32,
    /// The longest slice, in units of the requested length.
    max_multiplier: u32,
    slice_multiplier: u32,
    /// TSC ticks of engine and session at the last update.
    engine_ticks: u64,
    session_ticks: u64,
    /// Core cycles of the overflow interrupt; 0 while they are not known.
    interrupt_cycles: u64,
    /// True if `interrupt_cycles` was measured, false if it is an upper bound.
    is_exact: bool,
    /// Core cycles of the engine's other work per slice.
    work_cycles: u64,
    /// Core cycles of the engine outside the interrupt since the last update by core cycles.
    new_work: u64,
}

/// Successive slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// Slices that ended, at least 1.
    pub(crate) slices: u64,
    /// Core cycles that were counted for the program.
    pub(crate) counted: u64,
}

impl Budget {
    /// Slices from one update to the next.
    pub(crate) const SLICES: u64 = 16;

    /// Makes the budget for slices of `length`, and at most `max`; the first slices have `first`
    /// times the length.
    pub(crate) fn new(limit_ppm: u32, length: u64, first: u32, max: u64) -> Budget {
        let max_multiplier = max.checked_div(length).and_then(|max| max.try_into().ok());
        let max_multiplier = max_multiplier.unwrap_or(1).max(1);
        Budget {
            limit_ppm,
            max_multiplier,
            slice_multiplier: first.min(max_multiplier),
            engine_ticks: 0,
            session_ticks: 0,
            interrupt_cycles: 0,
            is_exact: false,
            work_cycles: 0,
            new_work: 0,
        }
    }

    /// Leaves most of the share to samples, which count as the engine's time too. For slices that
    /// rotate no events: shorter ones would gain nothing.
    pub(crate) fn leave_for_samples(&mut self) {
        self.limit_ppm /= 8;
    }

    /// The length of slices that begin now, in units of the requested length.
    #[inline]
    pub(crate) fn slice_multiplier(&self) -> u32 {
        self.slice_multiplier
    }

    /// Core cycles of a switch with the interrupt's delivery and return, and of the folding of its
    /// slice; 0 while they are not known.
    pub(crate) fn switch_cycles(&self) -> u64 {
        match self.interrupt_cycles {
            0 => 0,
            known => known + self.work_cycles,
        }
    }

    /// Returns whether the cost of an overflow interrupt was measured and is not just an upper
    /// bound.
    pub(crate) fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Observes a slice and the overflow interrupt at its end, in which `cycles` passed that were
    /// not counted for the program. `is_exact` says that the kernel was not entered for another
    /// reason; otherwise `cycles` is an upper bound of the interrupt's cost.
    pub(crate) fn observe(&mut self, cycles: u64, is_exact: bool) {
        let (known, cycles) = (self.interrupt_cycles, cycles.max(1));
        self.interrupt_cycles = match (self.is_exact, is_exact) {
            (true, true) => average(known, cycles).min(known + known.div_ceil(COST_RISE)),
            (true, false) => known.min(average(known, cycles)),
            (false, true) => cycles,
            (false, false) if known == 0 => cycles,
            (false, false) => known.min(cycles),
        };
        self.is_exact |= is_exact;
    }

    /// Adds core cycles of the engine outside of the overflow interrupt.
    pub(crate) fn add_work(&mut self, cycles: u64) {
        self.new_work += cycles;
    }

    /// Chooses the slice multiplier by the cost of a switch. `stretch` is all slices since the last
    /// such update; they had the present length.
    pub(crate) fn update_by_cycles(&mut self, stretch: Stretch) {
        let work = core::mem::take(&mut self.new_work) / stretch.slices.max(1);
        self.work_cycles = match self.work_cycles {
            0 => work,
            known => average(known, work),
        };
        self.choose(self.switch_cycles().saturating_mul(stretch.slices), stretch.counted);
    }

    /// Excludes the time up to now from the next update.
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
    pub(crate) fn choose(&mut self, engine: u64, program: u64) {
        let program = program.max(1);
        let limit = u64::from(self.limit_ppm);
        let wanted = engine.saturating_mul(WHOLE_PPM - limit) / limit;
        let slice_multiplier =
            wanted.saturating_mul(self.slice_multiplier.into()).div_ceil(program);
        let most = self.slice_multiplier.saturating_mul(MOST_RISE).min(self.max_multiplier);
        let slice_multiplier = u32::try_from(slice_multiplier).unwrap_or(u32::MAX).clamp(1, most);
        // A small reduction is not worth setting the lengths again.
        if slice_multiplier > self.slice_multiplier
            || slice_multiplier < self.slice_multiplier - self.slice_multiplier / LEAST_FALL
        {
            self.slice_multiplier = slice_multiplier;
        }
    }
}

/// The weighted average of `known` and `new`; differs from `known` if `new` does. A fall has twice
/// the weight of a rise: the first costs are those of cold caches.
pub(crate) fn average(known: u64, new: u64) -> u64 {
    match new.checked_sub(known) {
        Some(rise) => known + rise.div_ceil(WEIGHT),
        None => known - (known - new).div_ceil(WEIGHT / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_abi::session::MAX_SLICE;

    /// Simulates slices of `slice` ticks with a switch cost of `cost` until the length is stable;
    /// returns the slice multiplier and the engine's share, in ppm.
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
    fn samples_have_most_of_the_share() {
        let mut budget = Budget::new(20_000, 5_000, 1, MAX_SLICE);
        budget.leave_for_samples();
        let (mut engine, mut session) = (0, 0);
        for _ in 0..20 {
            engine += Budget::SLICES * 1_000;
            session += Budget::SLICES * (5_000 * u64::from(budget.slice_multiplier()) + 1_000);
            budget.update(engine, session);
        }
        assert_eq!(budget.slice_multiplier(), settle(2_500, 5_000, 1_000).0);
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

    /// Simulates stretches of slices of `slice` cycles with an interrupt cost of `cost` and other
    /// kernel work of `others[i]` in the examined slice of stretch `i`; returns the last multiplier
    /// and the cost found.
    fn settle_by_cycles(slice: u64, cost: u64, others: &[u64]) -> (u32, u64) {
        let mut budget = Budget::new(20_000, slice, 1, MAX_SLICE);
        for &other in others {
            let slices = Budget::SLICES;
            let counted = slices * slice * u64::from(budget.slice_multiplier());
            budget.observe(cost + other, other == 0);
            budget.update_by_cycles(Stretch { slices, counted });
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
        let at_first = [[0].as_slice(), &[50_000; 100]].concat();
        assert_eq!(settle_by_cycles(5_000, 2_000, &at_first), (20, 2_000));
        let at_last = [[50_000; 100].as_slice(), &[0; 2]].concat();
        assert_eq!(settle_by_cycles(5_000, 2_000, &at_last), (20, 2_000));
    }

    #[test]
    fn of_a_kernel_that_works_in_every_slice_the_least_is_the_cost() {
        let others = [30_000, 90_000, 10_000, 20_000, 50_000];
        assert_eq!(settle_by_cycles(5_000, 2_000, &others).1, 12_000);
    }

    #[test]
    fn a_switch_that_becomes_dearer_is_noticed() {
        let mut budget = Budget::new(20_000, 5_000, 1, MAX_SLICE);
        budget.observe(1_000, true);
        (0..20).for_each(|_| budget.observe(3_000, false));
        assert_eq!(budget.switch_cycles(), 1_000);
        (0..40).for_each(|_| budget.observe(3_000, true));
        assert_eq!(budget.switch_cycles(), 3_000);
    }

    #[test]
    fn work_outside_of_the_interrupt_is_part_of_the_cost() {
        let mut budget = Budget::new(20_000, 5_000, 1, MAX_SLICE);
        budget.observe(1_000, true);
        for _ in 0..4 {
            budget.add_work(16 * 300);
            budget.add_work(16 * 700);
            let counted = 16 * 5_000 * u64::from(budget.slice_multiplier());
            budget.update_by_cycles(Stretch { slices: 16, counted });
        }
        assert_eq!((budget.switch_cycles(), budget.slice_multiplier()), (2_000, 20));
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
        by_cycles.observe(500_000, true);
        by_cycles.update_by_cycles(Stretch { slices: 16, counted: 16 * 1_800 });
        assert_eq!(by_cycles.slice_multiplier(), 4);
    }
}
