//! A session's samples: their addresses, and the shortest period that the budget allows.

use alloc::{boxed::Box, vec::Vec};

use tally_abi::{SessionStats, session::MAX_SLICE};

use crate::{
    PreciseRecords,
    budget::{Budget, average},
    core_time::CoreReading,
    histogram::Histogram,
};

/// Samples from one update of the period multiplier to the next.
const SAMPLES: u64 = 16;

/// Ticks per event that determine the first period of an event sampled at a rate. A period that is
/// too long is noticed late, so the first one assumes a frequent event.
const FIRST_TICKS_AN_EVENT: u64 = 4;
/// Maximum factor by which a rate's period changes at once.
const MOST_CHANGE: u64 = 16;

/// An event that is sampled at a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// The event, by its index in the session's list.
    pub(super) event: usize,
    /// TSC ticks of the session between two samples.
    ticks: u64,
    /// The period that gives the rate at the event's present frequency.
    pub(super) period: u64,
    /// The event's count and the session's ticks when the period was set.
    count: u64,
    since: u64,
    /// Whether the period was changed and not taken yet.
    has_changed: bool,
}

impl Rate {
    /// Makes a rate of one sample every `ticks` of the session.
    pub(super) fn new(event: usize, ticks: u64, count: u64, since: u64) -> Rate {
        let period = (ticks / FIRST_TICKS_AN_EVENT).max(1);
        Rate { event, ticks, period, count, since, has_changed: false }
    }

    /// Returns whether the last sample is longer ago than two sampling intervals.
    fn is_silent(&self, session_ticks: u64) -> bool {
        session_ticks.saturating_sub(self.since) > 2 * self.ticks
    }

    /// Sets the period from the number of events since it was last set.
    fn adapt(&mut self, count: u64, session_ticks: u64) {
        let elapsed = session_ticks.saturating_sub(self.since);
        let events = count.saturating_sub(self.count);
        if elapsed == 0 {
            return;
        }
        let wanted = u128::from(events) * u128::from(self.ticks) / u128::from(elapsed);
        let most = self.period.saturating_mul(MOST_CHANGE);
        let least = (self.period / MOST_CHANGE).max(1);
        self.period = u64::try_from(wanted).unwrap_or(most).clamp(least, most);
        (self.count, self.since, self.has_changed) = (count, session_ticks, true);
    }
}

/// An observation in the handler of an overflow interrupt.
#[derive(Clone, Copy, Debug)]
pub(super) struct InterruptMark {
    pub(super) reading: CoreReading,
    /// Core cycles that were counted for the program.
    pub(super) counted: u64,
    /// Overflow interrupts of the session.
    pub(super) interrupts: u64,
}

/// A session's samples.
#[derive(Debug)]
pub(super) struct Sampling {
    pub(super) histogram: Histogram,
    /// Records of precise samples that were not taken yet.
    pub(super) precise: PreciseRecords,
    /// The shortest requested period.
    period: u64,
    /// Lengthens periods if samples would take more than the budget.
    budget: Budget,
    taken: u64,
    /// Whether a sample was taken since the branches were read last.
    pub(super) wants_branches: bool,
    /// The session's core cycles at the last update.
    cycles: u64,
    /// Core cycles of an overflow interrupt; 0 while they are not known.
    interrupt_cycles: u64,
    /// Core cycles since the last update that samples took outside of the interrupt, for stacks.
    stack_cycles: u64,
    /// The last observation since the last update, and whether an interrupt was timed since.
    mark: Option<InterruptMark>,
    is_timed: bool,
    /// Events that are sampled at rates.
    rates: Vec<Rate>,
}

impl Sampling {
    /// Makes the state for an event sampled with this period.
    pub(super) fn new(budget_ppm: u32, period: u64) -> Box<Sampling> {
        let budget = Budget::new(budget_ppm, period, 1, MAX_SLICE);
        Box::new(Sampling {
            histogram: Histogram::default(),
            precise: PreciseRecords::default(),
            period,
            budget,
            taken: 0,
            wants_branches: false,
            cycles: 0,
            interrupt_cycles: 0,
            stack_cycles: 0,
            mark: None,
            is_timed: false,
            rates: Vec::new(),
        })
    }

    /// Adds another event sampled with this period.
    pub(super) fn also(&mut self, budget_ppm: u32, period: u64) {
        if period < self.period {
            self.period = period;
            self.budget = Budget::new(budget_ppm, period, 1, MAX_SLICE);
        }
    }

    /// The factor by which periods are longer than requested.
    pub(super) fn period_multiplier(&self) -> u32 {
        self.budget.slice_multiplier()
    }

    /// Sets or removes an event's rate.
    pub(super) fn set_rate(&mut self, event: usize, rate: Option<Rate>) {
        self.rates.retain(|known| known.event != event);
        self.rates.extend(rate);
    }

    /// Sets the period after a sample of an event that is sampled at a rate; [`Self::take_changed`]
    /// returns it. Runs in the overflow path: a division.
    pub(super) fn adapt(&mut self, event: u16, count: u64, ticks: u64) {
        if let Some(rate) = self.rates.iter_mut().find(|rate| rate.event == usize::from(event)) {
            rate.adapt(count, ticks);
        }
    }

    /// Takes a changed period with its event, each once.
    pub(super) fn take_changed(&mut self) -> Option<(usize, u64)> {
        let rate = self.rates.iter_mut().find(|rate| rate.has_changed)?;
        rate.has_changed = false;
        Some((rate.event, rate.period))
    }

    /// Finds a rate whose event had no sample for long, and sets its period from the event's count.
    pub(super) fn adapt_silent(
        &mut self,
        ticks: u64,
        mut count: impl FnMut(usize) -> u64,
    ) -> Option<Rate> {
        let rate = self.rates.iter_mut().find(|rate| rate.is_silent(ticks))?;
        rate.adapt(count(rate.event), ticks);
        Some(*rate)
    }

    /// Adds a sample. Runs in the overflow path.
    pub(super) fn add(&mut self, address: u64) {
        self.histogram.add(address);
        self.taken += 1;
        self.wants_branches = true;
    }

    /// Adds core cycles that the stack of a sample took.
    pub(super) fn add_stack(&mut self, cycles: u64) {
        self.stack_cycles += cycles;
    }

    /// Returns whether overflow interrupts are to be timed: one in a few samples is.
    pub(super) fn is_to_time(&self) -> bool {
        !self.is_timed
    }

    /// Observes the core cycles in the handler of an overflow interrupt. Those since the last
    /// observation that were not counted for the program are an interrupt's, unless the kernel was
    /// entered for another reason.
    pub(super) fn observe(&mut self, now: InterruptMark) {
        let Some(then) = self.mark.replace(now) else { return };
        let interrupts = now.interrupts.saturating_sub(then.interrupts);
        let (cycles, is_exact) = now.reading.beside(&then.reading, now.counted - then.counted);
        let Some(cost) = cycles.checked_div(interrupts).filter(|_| is_exact) else { return };
        let known = self.interrupt_cycles;
        self.interrupt_cycles = if known == 0 { cost } else { average(known, cost) };
        self.is_timed = true;
    }

    /// Updates the period multiplier every few samples, by the session's core cycles and those of
    /// its interrupts, or by time while the latter are not known. Runs in the overflow path: a few
    /// divisions.
    pub(super) fn update(&mut self, stats: &SessionStats, cycles: u64) {
        if self.taken < SAMPLES {
            return;
        }
        if self.interrupt_cycles > 0 {
            let engine = self.interrupt_cycles * self.taken + self.stack_cycles;
            self.budget.choose(engine, cycles.saturating_sub(self.cycles));
        } else {
            self.budget.update(stats.engine_ticks, stats.session_ticks);
        }
        (self.taken, self.cycles) = (0, cycles);
        (self.mark, self.is_timed, self.stack_cycles) = (None, false, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cycles of the program between two samples once the period is stable, for interrupts and
    /// stacks that take these cycles, with a budget of 2 % and a requested period of 20,000 cycles.
    fn settled(interrupt: u64, stack: u64) -> u64 {
        let mut sampling = Sampling::new(20_000, 20_000);
        let (mut cycles, mut core, mut interrupts) = (0, 0, 0);
        for entries in 0..20 * SAMPLES {
            let period = 20_000 * u64::from(sampling.period_multiplier());
            for _ in 0..2 {
                // An interrupt without a sample follows, as at the end of a slice.
                (interrupts, core) = (interrupts + 1, core + interrupt);
                let reading = CoreReading { cycles: core, entries };
                sampling.observe(InterruptMark { reading, counted: cycles, interrupts });
            }
            sampling.add(0);
            sampling.add_stack(stack);
            (cycles, core) = (cycles + period, core + period + stack);
            sampling.update(&SessionStats::default(), cycles);
        }
        20_000 * u64::from(sampling.period_multiplier())
    }

    #[test]
    fn samples_and_their_stacks_keep_to_the_budget() {
        for (interrupt, stack) in [(4_000, 0), (4_000, 16_000), (4_000, 60_000)] {
            let period = settled(interrupt, stack);
            let share = (interrupt + stack) as f64 / (interrupt + stack + period) as f64;
            assert!((0.0187..0.0201).contains(&share), "{interrupt} {stack}: {share}");
        }
    }
}
