//! The engine's budget: the share of the program's time that the engine may take.
//!
//! The cost of a group switch is fixed; the engine chooses how often it switches. Where it took
//! more than its share lately, it lengthens slices by a whole factor, the slice multiplier, and
//! shortens them again, never below the length asked for, when the budget allows. A slice's record
//! has its multiplier.
//!
//! Where the processor counts core cycles in every ring, a switch costs what passed between the
//! ends of two slices, one after the other, and was not counted for the program: the interrupt's
//! delivery and return, which the handler itself cannot time, and the handler. Where the kernel was
//! entered otherwise in that slice, for the program or by a device, the difference has that work,
//! too, and the cost is not more than it. The engine times what it does outside of the interrupt,
//! such as the folding of slices. Elsewhere the handler's time by the TSC is the cost.

/// Millionths of the whole.
const WHOLE_PPM: u64 = 1_000_000;
/// The most that an update lengthens slices by, as a factor. The next update comes a fixed number
/// of slices later, however long they are: one that sees a program start, mostly in ring 0, must
/// not make slices that outlast it.
const MOST_RISE: u32 = 4;
/// Slices become shorter by this part of their length, or not at all.
const LEAST_FALL: u32 = 16;
/// The estimate of what a switch costs rises by this part of itself at most, from one slice that
/// is looked at to the next: hardware may do things that neither the program nor the kernel knows
/// of, such as a system management interrupt.
const COST_RISE: u64 = 16;
/// What is new is this part of an average.
const WEIGHT: u64 = 4;

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
    /// Core cycles of the overflow interrupt; 0 while they are not known.
    interrupt_cycles: u64,
    /// Whether these are not just the most that it takes.
    is_exact: bool,
    /// Core cycles of the engine's other work, for each slice.
    work_cycles: u64,
    /// Those of the work since the last update by core cycles.
    new_work: u64,
}

/// Some slices, one after another.
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
            interrupt_cycles: 0,
            is_exact: false,
            work_cycles: 0,
            new_work: 0,
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
        match self.interrupt_cycles {
            0 => 0,
            known => known + self.work_cycles,
        }
    }

    /// Whether what an overflow interrupt costs is known, and not only the most.
    pub(crate) fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// In a slice and the overflow interrupt at its end, `cycles` passed that were not counted for
    /// the program. `is_exact` if the kernel was not entered otherwise; else they are the most that
    /// the interrupt took.
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
    /// such update, of the present length.
    pub(crate) fn update_by_cycles(&mut self, stretch: Stretch) {
        let work = core::mem::take(&mut self.new_work) / stretch.slices.max(1);
        self.work_cycles = match self.work_cycles {
            0 => work,
            known => average(known, work),
        };
        self.choose(self.switch_cycles().saturating_mul(stretch.slices), stretch.counted);
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

/// The average of what was `known` and what is `new`; different from `known` if `new` is. A fall
/// has twice the weight of a rise: the first costs are those of cold caches.
fn average(known: u64, new: u64) -> u64 {
    match new.checked_sub(known) {
        Some(rise) => known + rise.div_ceil(WEIGHT),
        None => known - (known - new).div_ceil(WEIGHT / 2),
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

    /// Lets stretches of slices of `slice` cycles pass, an interrupt costing `cost`, and other work
    /// of the kernel in the slice that is looked at, `others[i]` in stretch `i`; gives the last
    /// multiplier and the cost found.
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
