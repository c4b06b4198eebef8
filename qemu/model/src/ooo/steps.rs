//! The steps that an instruction waited for, and the causes of the cycles without retirement.

use crate::{counts::Counts, signal::Signal, stacks::Watch};

/// The cycles before a retirement that are charged already, and the cause of the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charged {
    from: u64,
    at: u64,
    cause: Signal,
    before: Option<Signal>,
}

impl Charged {
    /// The last charged cycle, or that of the retirement before.
    pub(super) fn last(self) -> u64 {
        self.at - 1
    }
}

/// Charging of the cycles since the last retirement. Each step of an instruction lasts until a
/// cycle; of concurrent steps the longer hides the other. No step may last beyond the instruction's
/// own retirement.
#[derive(Debug)]
pub(super) struct Steps<'a, W> {
    counts: &'a mut Counts,
    watch: &'a mut W,
    /// The first cycle after the last retirement.
    from: u64,
    at: u64,
    cause: Signal,
    /// The cause of the cycle before `at`; `None` if something retired in it.
    before: Option<Signal>,
}

impl<'a, W: Watch> Steps<'a, W> {
    /// Begins the steps after a retirement at the cycle `retired`.
    pub(super) fn after(retired: u64, counts: &'a mut Counts, watch: &'a mut W) -> Steps<'a, W> {
        let (from, cause) = (retired + 1, Signal::StallFrontEnd);
        Steps { counts, watch, from, at: from, cause, before: None }
    }

    /// Sets the cause of the cycle before, if nothing retired in it.
    pub(super) fn behind(self, before: Option<Signal>) -> Steps<'a, W> {
        Steps { before, ..self }
    }

    /// Charges the cycles up to but not including `end` to `cause`.
    #[inline]
    pub(super) fn until(&mut self, end: u64, cause: Signal) {
        if end > self.at {
            self.counts[cause] += end - self.at;
            self.watch.stalled(self.at, end, cause, self.counts);
            if self.before != Some(cause) {
                cause.begun(self.before).for_each(|signal| self.counts[signal] += 1);
            }
            (self.at, self.cause, self.before) = (end, cause, Some(cause));
        }
    }

    /// Continues the steps of `charged`. Without them begins the steps after the cycle `retired`,
    /// in which no instruction retired because of `before`, if any.
    pub(super) fn go_on(
        charged: Option<Charged>,
        (retired, before): (u64, Option<Signal>),
        counts: &'a mut Counts,
        watch: &'a mut W,
    ) -> Steps<'a, W> {
        match charged {
            Some(charged) => Steps::resume(charged, counts, watch),
            None => Steps::after(retired, counts, watch).behind(before),
        }
    }

    /// Continues the steps before the same retirement.
    pub(super) fn resume(
        charged: Charged,
        counts: &'a mut Counts,
        watch: &'a mut W,
    ) -> Steps<'a, W> {
        let Charged { from, at, cause, before } = charged;
        Steps { counts, watch, from, at, cause, before }
    }

    /// Returns the charged state, to be continued later.
    pub(super) fn suspend(self) -> (Charged, &'a mut Counts, &'a mut W) {
        let Steps { counts, watch, from, at, cause, before } = self;
        (Charged { from, at, cause, before }, counts, watch)
    }

    /// The counts.
    pub(super) fn counts(&mut self) -> &mut Counts {
        self.counts
    }

    /// The watcher of the pipeline, and the counts.
    pub(super) fn watch(&mut self) -> (&mut W, &mut Counts) {
        (self.watch, self.counts)
    }

    /// The cause of the last step, if there was a cycle without retirement before `cycle`.
    pub(super) fn last_cause(&self, retired: u64, cycle: u64) -> Option<Signal> {
        (cycle > retired + 1).then_some(self.cause)
    }

    /// Adds `amount` to a signal.
    #[inline]
    pub(super) fn count(&mut self, signal: Signal, amount: u64) {
        self.counts[signal] += amount;
    }

    /// Retires at `cycle`. Charges the last step's cause for the remaining cycles, which the width
    /// of retirement can add, and in the second account for the whole gap.
    #[inline]
    pub(super) fn retire(mut self, cycle: u64) {
        debug_assert!(self.at <= cycle, "a step lasts until {}, beyond {cycle}", self.at);
        self.until(cycle, self.cause);
        self.counts[self.cause.resumed()] += cycle - self.from;
        self.counts[Signal::RetireCycles] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cycle_has_one_cause() {
        let mut counts = Counts::ZERO;
        let mut watch = ();
        let mut steps = Steps::after(10, &mut counts, &mut watch);
        steps.until(12, Signal::StallMispredict);
        steps.until(11, Signal::StallDtlb);
        steps.until(20, Signal::StallMemory);
        steps.retire(23);
        assert_eq!(counts[Signal::StallMispredict], 1);
        assert_eq!(counts[Signal::StallDtlb], 0);
        assert_eq!(counts[Signal::StallMemory], 11);
        assert_eq!(counts[Signal::RetireCycles], 1);
        assert_eq!(Signal::RESUMED.iter().map(|cause| counts[*cause]).sum::<u64>(), 12);
        assert_eq!(counts[Signal::ResumedMemory], 12);
        let episodes = [Signal::EpisodesAny, Signal::EpisodesEmpty, Signal::EpisodesInMemory];
        assert_eq!(episodes.map(|signal| counts[signal]), [1, 1, 1]);
    }

    #[test]
    fn of_steps_that_end_together_the_first_is_charged() {
        let mut counts = Counts::ZERO;
        let mut watch = ();
        let mut steps = Steps::after(0, &mut counts, &mut watch);
        steps.until(9, Signal::StallL2Hit);
        steps.until(9, Signal::StallInteger);
        steps.retire(9);
        assert_eq!((counts[Signal::ResumedL2Hit], counts[Signal::ResumedInteger]), (8, 0));
        Steps::after(9, &mut counts, &mut watch).retire(10);
        assert_eq!(counts[Signal::RetireCycles], 2);
    }
}
