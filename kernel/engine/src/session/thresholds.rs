//! A session's thresholds and samples; [`crate::bank`] detects when they are reached.

use alloc::boxed::Box;
use core::mem::take;

use tally_abi::{
    branches::BranchFilter,
    trace::{AccessRecord, SampleRecord, ThresholdRecord},
};

use super::{
    publish::counts_of,
    sampling::{InterruptMark, Rate, Sampling},
    state::{Session, SliceStart, Timestamp},
};
use crate::{
    Access, Began, Clock, Counts, MAX_GENERAL, Pinned, PreciseRecord, PreciseRecords, Setup, Sink,
    bank::{Bank, Fired, GroupCounts, ThresholdError},
    core_time::CoreReading,
    for_each_counter,
    histogram::Histogram,
    plan::CounterAssignment,
};

impl Session {
    /// Sets an event's threshold and replaces an earlier one, or removes it. The threshold fires
    /// once, when the bank shows that count or more, and is then passed to [`Sink::threshold`]. It
    /// takes effect at the next [`crate::Multiplexer::sync`] or resume.
    ///
    /// # Errors
    /// See [`ThresholdError`].
    pub fn set_threshold(&mut self, event: usize, at: Option<u64>) -> Result<(), ThresholdError> {
        let assigned = self.plan.assignments.get(event).ok_or(ThresholdError::NoSuchEvent)?;
        let bank = self.bank.as_mut().ok_or(ThresholdError::NoBank)?;
        bank.set_period(event, 0);
        bank.set_threshold(event, *assigned, at)
    }

    /// Takes a sample each time the event's logical counter has grown by `period`, plus or minus up
    /// to an eighth; 0 ends sampling. Sampling replaces the event's threshold. If samples would
    /// take more than the session's budget, periods become longer.
    ///
    /// # Errors
    /// See [`ThresholdError`].
    pub fn set_period(&mut self, event: usize, period: u64) -> Result<(), ThresholdError> {
        let first = self.sampled_count(event);
        self.set_threshold(event, (period > 0).then(|| first.saturating_add(period)))?;
        if let Some(bank) = &mut self.bank {
            bank.set_period(event, period);
        }
        let budget_ppm = self.config.budget_ppm;
        match &mut self.sampling {
            Some(sampling) => {
                sampling.set_rate(event, None);
                if period > 0 {
                    sampling.also(budget_ppm, period);
                }
            }
            none if period > 0 => {
                *none = Some(Sampling::new(budget_ppm, period));
                if self.plan.groups.len() < 2 {
                    self.budget.leave_for_samples();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes samples of an event at a rate of one in `ticks` of the TSC in which the session
    /// counts: sets the period from the event's frequency. Otherwise as [`Self::set_period`].
    ///
    /// # Errors
    /// See [`ThresholdError`].
    pub fn set_rate(&mut self, event: usize, ticks: u64) -> Result<(), ThresholdError> {
        let rate = Rate::new(event, ticks, self.sampled_count(event), self.stats.session_ticks);
        self.set_period(event, rate.period)?;
        if let Some(sampling) = &mut self.sampling {
            sampling.set_rate(event, Some(rate));
        }
        Ok(())
    }

    /// Shortens the periods of events that are sampled at rates and have become rarer. Takes effect
    /// as a threshold does. Returns whether there were any. Not in the overflow path.
    pub fn adapt_rates(&mut self) -> bool {
        let ticks = self.stats.session_ticks;
        let Some(mut sampling) = self.sampling.take() else { return false };
        let mut has_adapted = false;
        while let Some(rate) = sampling.adapt_silent(ticks, |event| self.sampled_count(event)) {
            let count = self.sampled_count(rate.event);
            let at = count.saturating_add(rate.period);
            if let Some((bank, assigned)) =
                self.bank.as_mut().zip(self.plan.assignments.get(rate.event))
            {
                bank.set_period(rate.event, rate.period);
                // The event already has a threshold, so there is room for one.
                has_adapted |= bank.set_threshold(rate.event, *assigned, Some(at)).is_ok();
            }
        }
        self.sampling = Some(sampling);
        has_adapted
    }

    /// The count with which an event's samples are compared.
    fn sampled_count(&mut self, event: usize) -> u64 {
        match self.plan.assignments.get(event) {
            Some(CounterAssignment::Pinned(pinned)) => self.total[*pinned],
            Some(CounterAssignment::Metric(metric)) => self.metrics.count(*metric),
            Some(CounterAssignment::General { group, .. }) => {
                let counts = counts_of(&self.moments, &self.current, &self.total, *group, 0);
                let bank = self.bank.as_mut().zip(counts);
                bank.map_or(0, |(bank, counts)| bank.sampled_count(event, counts))
            }
            None => 0,
        }
    }

    /// Charges the session for the copy of a sample's stack, outside of the overflow interrupt:
    /// since `copied`, and before that since `folded` for rows that were folded for it, which have
    /// charged their time themselves.
    pub fn charge_stack(&mut self, [folded, copied]: [&Began; 2], clock: &impl Clock) {
        self.stats.engine_ticks += copied.elapsed(clock).0;
        let (_, cycles) = folded.elapsed(clock);
        self.sampling.iter_mut().for_each(|sampling| sampling.add_stack(cycles));
    }

    /// Records branches with each sample from the next start on: those of `filter`, in the rings
    /// that the session counts if it names none.
    pub fn set_branches(&mut self, filter: BranchFilter) {
        let Setup { mode, kernel, .. } = self.setup;
        self.setup.branches = filter.in_rings(mode.user(), kernel);
    }

    /// Returns whether samples were taken whose branches are to be recorded, once.
    pub(crate) fn take_wanted_branches(&mut self) -> bool {
        let is_wanted = |sampling: &mut Box<Sampling>| take(&mut sampling.wants_branches);
        self.sampling.as_mut().is_some_and(is_wanted) && !self.setup.branches.is_empty()
    }

    /// Takes what the driver knows of precise samples, before they are recorded.
    pub(crate) fn set_precise(&mut self, records: PreciseRecords) {
        self.sampling.iter_mut().for_each(|sampling| sampling.precise = records);
    }

    /// Observes what overflow interrupts cost, for the budget of samples. `read` returns the
    /// processor's core cycles. Where ring 0 is counted, the handler is a part of the counts.
    pub(crate) fn time_samples(&mut self, read: impl FnOnce() -> Option<CoreReading>) {
        let interrupts = self.stats.pmis + self.stats.spurious_pmis;
        let counted = self.total[Pinned::Cycles];
        let sampling = self.sampling.as_mut().filter(|of| !self.setup.kernel && of.is_to_time());
        if let Some(sampling) = sampling
            && let Some(reading) = read()
        {
            sampling.observe(InterruptMark { reading, counted, interrupts });
        }
    }

    /// The addresses of samples, if any were taken.
    pub fn samples(&self) -> Option<&Histogram> {
        self.sampling.as_ref().map(|sampling| &sampling.histogram)
    }

    /// Returns whether a threshold is set, or was set when counters were preloaded.
    pub(crate) fn is_watched(&self) -> bool {
        self.bank.as_ref().is_some_and(Bank::is_watched)
    }

    /// Returns whether a pinned event can reach a threshold in another session's next slice, of so
    /// many cycles, at up to twice its frequency so far. `ahead` has what it counted in others'
    /// turns and was not passed yet. Samples are put off in others' turns: they have none.
    pub(crate) fn is_near_threshold(&self, ahead: &Counts, cycles: u64) -> bool {
        let Some(bank) = &self.bank else { return false };
        let mut total = self.total;
        total.add(ahead, 0);
        let all = u128::from(total[Pinned::Cycles].max(1));
        Pinned::ALL.into_iter().any(|pinned| {
            let Some(at) = bank.nearest(pinned) else { return false };
            let count = total[pinned];
            let near = 2 * u128::from(cycles) * u128::from(count) / all;
            u128::from(at.saturating_sub(count)) <= near
        })
    }

    /// Takes a threshold that has fired: its event and the count. Each is returned once, with the
    /// last count if it has fired again since.
    pub fn take_fired(&mut self) -> Option<(usize, u64)> {
        self.bank.as_mut()?.take_fired()
    }

    /// Returns whether [`Self::take_fired`] would return a threshold.
    pub fn has_fired(&self) -> bool {
        self.bank.as_ref().is_some_and(Bank::has_fired)
    }

    /// Fires the reached thresholds: of the group of the slice `of`, which was just published, of
    /// the current slice's group, and of pinned events.
    pub(super) fn check_thresholds(&mut self, of: SliceStart, at: Timestamp, sink: &mut impl Sink) {
        let Some(mut bank) = self.bank.take() else { return };
        let mut sampling = self.sampling.take();
        let ticks = self.stats.session_ticks;
        let multiplier = sampling.as_ref().map_or(1, |sampling| sampling.period_multiplier());
        let coming = self.current.drawn.draw.group;
        let stored = sampling.as_ref().map_or(0, |sampling| sampling.precise.taken());
        // Records are of the slice that was published, not of another group on the same counters.
        let groups = [Some((of.group, stored)), (coming != of.group).then_some((coming, 0))];
        for (group, stored) in groups.into_iter().flatten() {
            let can_sample = |event| self.can_sample(event, stored);
            let counts = counts_of(&self.moments, &self.current, &self.total, group, of.start_tsc);
            let Some(counts) = counts else { continue };
            let mut fire = |fired: Fired| match &mut sampling {
                Some(sampling) if fired.sample => {
                    // An NMI can come right after SYSCALL: addresses of ring 0 are only for
                    // sessions that count ring 0.
                    let kernel = self.setup.kernel;
                    let found = sink.interrupted().filter(|(_, user)| *user || kernel);
                    let precise = self.precise_record(fired.event, sampling);
                    let record =
                        self.sampled(fired, at, group, counts, multiplier, (found, precise));
                    sampling.add(record.address);
                    sampling.adapt(fired.event, fired.count, ticks);
                    sink.sample(record);
                    if let Some(access) = self.access_of(fired.event, precise) {
                        sink.access(accessed(&record, access));
                    }
                }
                _ => sink.threshold(self.fired(fired, at)),
            };
            bank.check(group, counts, multiplier, can_sample, &mut fire);
            if group == of.group {
                bank.check_pinned(&self.total, multiplier, can_sample, fire);
            }
        }
        if let Some(sampling) = &mut sampling {
            sampling.update(&self.stats, self.total[Pinned::Cycles]);
            while let Some((event, period)) = sampling.take_changed() {
                bank.set_period(event, period);
            }
        }
        self.sampling = sampling;
        self.bank = Some(bank);
    }

    /// Returns whether a sample of an event that is due can be taken now. That of a precise event
    /// waits for its record, which the next event writes.
    /// `stored` are the slots of the records.
    fn can_sample(&self, event: u16, stored: u16) -> bool {
        let Some(&assigned) = self.plan.assignments.get(usize::from(event)) else { return true };
        let is_precise = match assigned {
            CounterAssignment::General { group, counter } => {
                self.plan.group(group).precise >> counter & 1 == 1
            }
            CounterAssignment::Pinned(Pinned::Instructions) => self.samples_precise_instructions(),
            CounterAssignment::Pinned(_) | CounterAssignment::Metric(_) => false,
        };
        !is_precise || assigned.slot().is_some_and(|slot| stored >> slot & 1 == 1)
    }

    /// Returns whether the pinned instructions are sampled precisely: they are not if they time the
    /// slices.
    pub(super) fn samples_precise_instructions(&self) -> bool {
        self.setup.precise.is_some() && self.setup.timer != Pinned::Instructions
    }

    /// The record of an event's precise sample.
    fn precise_record(&self, event: u16, sampling: &mut Sampling) -> Option<PreciseRecord> {
        let assigned = self.plan.assignments.get(usize::from(event))?;
        sampling.precise.take(assigned.slot()?)
    }

    /// The memory access of an event's precise sample, if its instructions have one.
    fn access_of(&self, event: u16, record: Option<PreciseRecord>) -> Option<Access> {
        let assigned = self.plan.assignments.get(usize::from(event))?;
        let CounterAssignment::General { group, counter } = *assigned else { return None };
        let has_access = self.plan.group(group).accesses >> counter & 1 == 1;
        let access = record.filter(|_| has_access).map(|record| record.access);
        access.filter(|access| *access != Access::default())
    }

    fn fired(
        &self,
        Fired { event, at, count, .. }: Fired,
        timestamp: Timestamp,
    ) -> ThresholdRecord {
        ThresholdRecord {
            session: self.id,
            cpu: timestamp.cpu,
            event,
            threshold: at,
            count,
            address_space: self.address_space,
            tsc: timestamp.tsc,
        }
    }

    fn sampled(
        &self,
        fired: Fired,
        timestamp: Timestamp,
        group: u16,
        counted: GroupCounts,
        period_multiplier: u32,
        (found, precise): (Option<(u64, bool)>, Option<PreciseRecord>),
    ) -> SampleRecord {
        let exact = precise.map(|record| (record.address, is_in_ring_3(record.address)));
        let used = self.plan.group(group).used;
        let (address, user) = exact.or(found).unwrap_or_default();
        let mut counts = [0; MAX_GENERAL];
        let mut members = counts.iter_mut();
        for_each_counter(used, |counter| {
            if let Some(count) = members.next() {
                *count = counted.events(counter as u8);
            }
        });
        SampleRecord {
            session: self.id,
            cpu: timestamp.cpu,
            event: fired.event,
            address,
            user,
            precise: precise.is_some(),
            // The sink fills in the thread.
            thread: 0,
            address_space: self.address_space,
            tsc: timestamp.tsc,
            count: fired.count,
            late: fired.count.saturating_sub(fired.at).try_into().unwrap_or(u32::MAX),
            cycles: counted.total[Pinned::Cycles],
            instructions: counted.total[Pinned::Instructions],
            group,
            events: used.count_ones() as u8,
            period_multiplier: period_multiplier.try_into().unwrap_or(u16::MAX),
            counts,
        }
    }
}

/// The record of a sample's memory access.
fn accessed(sample: &SampleRecord, access: Access) -> AccessRecord {
    AccessRecord {
        tsc: sample.tsc,
        session: sample.session,
        cpu: sample.cpu,
        event: sample.event,
        address: access.address,
        info: access.info,
        latency: access.latency,
    }
}

/// Returns whether an address is in the lower half, which is ring 3's. A precise sample has no
/// ring.
fn is_in_ring_3(address: u64) -> bool {
    address >> 63 == 0
}
