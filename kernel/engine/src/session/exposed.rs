//! A session's side of the logical counter bank: what its program sees while it runs.

use alloc::boxed::Box;
use core::mem::take;

use tally_abi::{
    Slice, Value,
    bank::PINNED_SLOT,
    trace::{SampleRecord, ThresholdRecord},
};

use super::{Session, SliceStart, sampling::Sampling};
use crate::{
    Counts, MAX_GENERAL, MAX_PRELOAD, Pinned, Pmu, Sink,
    bank::{Bank, GroupCounts, Page, thresholds::Fired},
    estimate, for_each_counter,
    histogram::Histogram,
    plan::CounterAssignment,
};

/// No event happens more often in a cycle: beyond that times what is left of a slice, a threshold is
/// far. One that is reached all the same fires at the slice's end.
const MOST_PER_CYCLE: u64 = 16;

/// The nearest threshold where ring 0 is counted: more than the overflow path's way out, in which an
/// overflow would be lost.
const LEAST_IN_KERNEL: u64 = 1_000;
/// The nearest sample there: the next, and the next, must leave time for something else than the overflow
/// path, which takes some 2,000 instructions.
const LEAST_SAMPLE_IN_KERNEL: u64 = 20_000;

/// When and where something is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamp {
    pub(crate) cpu: u16,
    pub(crate) tsc: u64,
}

/// A threshold cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdError {
    /// The session has no such event.
    NoSuchEvent,
    /// The session has no logical counter bank.
    NoBank,
    /// There are too many on events that are counted all the time.
    TooMany,
}

impl Session {
    /// Lets the program see its logical counters in `pages`, which hold zeros and are enough
    /// ([`tally_abi::bank::bytes`]), and start and stop them in `own`, its own page. `rdpmc` is
    /// RDPMC's ECX for a place. Whether they were enough.
    pub fn map_bank(
        &mut self,
        own: &'static Page,
        pages: Box<[&'static Page]>,
        rdpmc: impl Fn(CounterAssignment) -> u32,
    ) -> bool {
        self.bank = Bank::new(own, pages, &self.plan, rdpmc);
        self.bank.is_some()
    }

    /// The pages go: the program does not see its logical counters any more.
    pub fn unmap_bank(&mut self) {
        self.bank = None;
    }

    /// Whether the program sees its logical counters, and may use RDPMC.
    pub fn has_bank(&self) -> bool {
        self.bank.is_some()
    }

    /// Whether it is the program that ended counting, by its own word.
    pub fn is_stopped(&self) -> bool {
        self.bank.as_ref().is_some_and(Bank::is_stopped)
    }

    /// Takes off `counted`, counts of the slice under way since the last credit, what was counted
    /// while the program had stopped its counters; whether they are stopped now.
    #[inline]
    pub(crate) fn discount(&mut self, counted: &mut Counts) -> bool {
        let set = self.set();
        self.bank.as_mut().is_some_and(|bank| bank.discount(set, counted))
    }

    /// In the overflow path, where a slice has just ended: the program had stopped its counters.
    pub(crate) fn mark_idle(&mut self) {
        self.running = false;
    }

    /// Tells the program the errors of its next logical counters, so many that it has been told all in so many
    /// `calls`; while it runs, right after [`crate::Multiplexer::sync`], as an estimate's base may change. Uses
    /// floating point: never in the overflow path.
    pub fn publish_errors(&mut self, calls: usize) {
        let Some(mut bank) = self.bank.take() else { return };
        for member in bank.due(calls) {
            let Some(event) = bank.event(member) else { continue };
            let Some(&CounterAssignment::General { group, counter }) =
                self.plan.assignments.get(event)
            else {
                continue;
            };
            let base = estimate::best_base(&self.sample(group, counter));
            // What readers are told: an estimate that runs backwards is told as the one before it.
            let half_width = match self.read(event).value {
                Value::Estimated { half_width_95, .. } => half_width_95,
                _ => f64::NAN,
            };
            let mut told = take(&mut self.told);
            let nothing = Counts::default();
            if let Some(counted) = self.counted(group, 0, &nothing) {
                bank.tell_error(member, base, half_width, counted, &mut told);
            }
            self.told = told;
        }
        self.bank = Some(bank);
    }

    /// Sets the threshold of an event in place of the one that it has, or takes it away: it fires once,
    /// when the bank shows that count or more, and is told to [`Sink::threshold`] then. From the next
    /// [`crate::Multiplexer::sync`] or resume on.
    ///
    /// # Errors
    /// See [`ThresholdError`].
    pub fn set_threshold(&mut self, event: usize, at: Option<u64>) -> Result<(), ThresholdError> {
        let place = *self.plan.assignments.get(event).ok_or(ThresholdError::NoSuchEvent)?;
        let bank = self.bank.as_mut().ok_or(ThresholdError::NoBank)?;
        bank.set_period(event, 0);
        bank.set_threshold(event, place, at)
    }

    /// Takes a sample each time when the event's logical counter has gone on by `period`, give or take
    /// an eighth; none any more if that is 0. In place of the event's threshold. Where that would take
    /// more than the session's budget, periods become longer.
    ///
    /// # Errors
    /// See [`ThresholdError`].
    pub fn set_period(&mut self, event: usize, period: u64) -> Result<(), ThresholdError> {
        let first = self.told.get(event).copied().unwrap_or_default().max(self.exact(event));
        self.set_threshold(event, (period > 0).then(|| first.saturating_add(period)))?;
        if let Some(bank) = &mut self.bank {
            bank.set_period(event, period);
        }
        let budget_ppm = self.config.budget_ppm;
        match &mut self.sampling {
            _ if period == 0 => {}
            Some(sampling) => sampling.also(budget_ppm, period),
            none => *none = Some(Sampling::new(budget_ppm, period)),
        }
        Ok(())
    }

    /// The count of an event that is counted all the time.
    fn exact(&self, event: usize) -> u64 {
        match self.plan.assignments.get(event) {
            Some(CounterAssignment::Pinned(always)) => self.total[*always],
            _ => 0,
        }
    }

    /// Where samples fell, if any were taken.
    pub fn samples(&self) -> Option<&Histogram> {
        self.sampling.as_ref().map(|sampling| &sampling.histogram)
    }

    /// Whether a threshold is set, or was when counters were preloaded.
    pub(crate) fn is_watched(&self) -> bool {
        self.bank.as_ref().is_some_and(Bank::is_watched)
    }

    /// A threshold that has fired and was not taken yet: its event, and the count. Each but once; of
    /// one that fires again before it is taken, the last count.
    pub fn take_fired(&mut self) -> Option<(usize, u64)> {
        self.bank.as_mut()?.take_fired()
    }

    /// Whether [`Self::take_fired`] has something to give.
    pub fn has_fired(&self) -> bool {
        self.bank.as_ref().is_some_and(Bank::has_fired)
    }

    /// Tells the program what was counted of a group whose slice is `of`, and what the counters show
    /// from here on: `base`, if they count. Thresholds that are reached fire, and counters that are
    /// near others are preloaded; then `base` says so, and [`Pmu::ack_and_resume`] has to follow: whether it
    /// has.
    #[inline]
    pub(crate) fn publish(
        &mut self,
        of: SliceStart,
        base: Option<&mut Counts>,
        at: Timestamp,
        pmu: &mut impl Pmu,
        sink: &mut impl Sink,
    ) -> bool {
        let SliceStart { group, start_tsc } = of;
        let Some(mut bank) = self.bank.take() else { return false };
        let mut told = take(&mut self.told);
        let mut sampling = self.sampling.take();
        let nothing = Counts::default();
        let mut preloaded = false;
        if let Some(counted) = self.counted(group, start_tsc, &nothing) {
            bank.tell(group, counted, &mut told, at.tsc);
        }
        if self.fit_share()
            && let Some(counted) = self.counted(self.current.draw.group, 0, &nothing)
        {
            bank.restate(self.current.draw.group, counted, &mut told);
        }
        if let Some(counted) = self.counted(group, start_tsc, &nothing) {
            let watched = bank.is_watched();
            if watched {
                let period_multiplier =
                    sampling.as_ref().map_or(1, |sampling| sampling.period_multiplier());
                bank.check(group, counted, &told, period_multiplier, |fired| match &mut sampling {
                    Some(sampling) if fired.sample => {
                        // An NMI can come just behind SYSCALL: where ring 0 is not counted, it is none
                        // of the program's business.
                        let kernel = self.setup.kernel;
                        let found = sink.interrupted().filter(|(_, user)| *user || kernel);
                        let record =
                            self.sampled(fired, at, group, counted, period_multiplier, found);
                        sampling.add(record.address);
                        sink.sample(record);
                    }
                    _ => sink.threshold(self.fired(fired, at)),
                });
                if let Some(sampling) = &mut sampling {
                    sampling.update(&self.stats);
                }
            }
            let running = base.map(|base| {
                if watched {
                    let armed = self.preload(&bank, base, pmu);
                    bank.set_armed(armed);
                    preloaded = true;
                }
                (self.current.draw.group, self.set(), &*base)
            });
            bank.go_on(running);
        }
        self.told = told;
        self.sampling = sampling;
        self.bank = Some(bank);
        preloaded
    }

    fn fired(&self, Fired { event, at, count, .. }: Fired, moment: Timestamp) -> ThresholdRecord {
        ThresholdRecord {
            session: self.id,
            cpu: moment.cpu,
            event,
            threshold: at,
            count,
            address_space: self.address_space,
            tsc: moment.tsc,
        }
    }

    fn sampled(
        &self,
        fired: Fired,
        moment: Timestamp,
        group: u16,
        counted: GroupCounts,
        period_multiplier: u32,
        interrupted: Option<(u64, bool)>,
    ) -> SampleRecord {
        let used = self.group_at(group).used;
        let (address, user) = interrupted.unwrap_or_default();
        let mut counts = [0; MAX_GENERAL];
        let mut members = counts.iter_mut();
        for_each_counter(used, |counter| {
            if let Some(count) = members.next() {
                *count = counted.events(counter as u8);
            }
        });
        SampleRecord {
            session: self.id,
            cpu: moment.cpu,
            event: fired.event,
            address,
            user,
            address_space: self.address_space,
            tsc: moment.tsc,
            count: fired.count,
            cycles: counted.total[Pinned::Cycles],
            instructions: counted.total[Pinned::Instructions],
            group,
            events: used.count_ones() as u8,
            period_multiplier: period_multiplier.try_into().unwrap_or(u16::MAX),
            counts,
        }
    }

    /// Preloads the counters whose thresholds may be reached in what is left of the slice under way:
    /// whether there are any.
    fn preload(&self, bank: &Bank, base: &mut Counts, pmu: &mut impl Pmu) -> bool {
        pmu.disarm();
        let (group, nothing) = (self.current.draw.group, Counts::default());
        let Some(counted) = self.counted(group, 0, &nothing) else { return false };
        let left = self.left();
        let timer = PINNED_SLOT + self.setup.timer as usize;
        let most = match self.config.slice {
            Slice::Cycles(_) => left.saturating_mul(MOST_PER_CYCLE).min(MAX_PRELOAD),
            Slice::Instructions(_) => MAX_PRELOAD,
        };
        let mut any = false;
        let least = match (self.setup.kernel, &self.sampling) {
            (false, _) => 1,
            (true, None) => LEAST_IN_KERNEL,
            (true, Some(_)) => LEAST_SAMPLE_IN_KERNEL,
        };
        for (slot, distance) in bank.distances(group, counted).into_iter().enumerate() {
            let distance = distance.max(least);
            // The slice timer overflows where the slice ends anyhow.
            let most = if slot == timer { left.saturating_sub(1) } else { most };
            if distance <= most
                && let Some(base) = base.slot_mut(slot)
            {
                *base = pmu.preload(slot, distance);
                any = true;
            }
        }
        any
    }

    /// What was counted of a group; `nothing` is that.
    fn counted<'a>(
        &'a self,
        group: u16,
        start_tsc: u64,
        nothing: &'a Counts,
    ) -> Option<GroupCounts<'a>> {
        let moments = self.moments.get(usize::from(group))?;
        let is_open = self.current.credited && self.current.draw.group == group;
        let open = if is_open { &self.current.slice } else { nothing };
        Some(GroupCounts { moments, open, start_tsc, total: &self.total })
    }
}
