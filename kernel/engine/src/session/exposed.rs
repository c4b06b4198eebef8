//! A session's side of the logical counter bank: what its program sees while it runs.

use alloc::boxed::Box;
use core::mem::take;

use tally_abi::Value;

use super::{Session, SliceStart};
use crate::{
    Counts,
    bank::{Bank, Counted, Page},
    estimate,
    plan::Place,
};

impl Session {
    /// Lets the program see its logical counters in `pages`, which hold zeros and are enough
    /// ([`tally_abi::bank::bytes`]), and start and stop them in `own`, its own page. `rdpmc` is
    /// RDPMC's ECX for a place. Whether they were enough.
    pub fn expose(
        &mut self,
        own: &'static Page,
        pages: Box<[&'static Page]>,
        rdpmc: impl Fn(Place) -> u32,
    ) -> bool {
        self.bank = Bank::new(own, pages, &self.plan, rdpmc);
        self.bank.is_some()
    }

    /// Whether the program sees its logical counters, and may use RDPMC.
    pub fn is_exposed(&self) -> bool {
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
    pub(crate) fn rest(&mut self) {
        self.running = false;
    }

    /// Tells the program the errors of its next `count` logical counters; while it runs, right after
    /// [`crate::Multiplexer::sync`], as an estimate's base may change. Uses floating point: never in
    /// the overflow path.
    pub fn tell_errors(&mut self, count: usize) {
        let Some(mut bank) = self.bank.take() else { return };
        for member in bank.due(count) {
            let Some(event) = bank.event(member) else { continue };
            let Some(&Place::General { group, counter }) = self.plan.places.get(event) else {
                continue;
            };
            let base = estimate::best_base(&self.sample(group, counter));
            // What readers are told: an estimate that runs backwards is told as the one before it.
            let half_width = match self.read(event).value {
                Value::Exact { .. } => 0.0,
                Value::Estimated { half_width_95, .. } => half_width_95,
                Value::NotMeasured { .. } => f64::NAN,
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

    /// Tells the program what was counted of a group whose slice is `of`, and what the counters show
    /// from here on: `base`, if they count.
    #[inline]
    pub(crate) fn publish(&mut self, of: SliceStart, base: Option<&Counts>, tsc: u64) {
        let SliceStart { group, start_tsc } = of;
        let Some(mut bank) = self.bank.take() else { return };
        let mut told = take(&mut self.told);
        let nothing = Counts::default();
        if let Some(counted) = self.counted(group, start_tsc, &nothing) {
            let running = base.map(|base| (self.open.draw.group, self.set(), base));
            bank.publish(group, counted, &mut told, running, tsc);
        }
        if self.fit_share() {
            let group = self.open.draw.group;
            if let Some(counted) = self.counted(group, 0, &nothing) {
                bank.restate(group, counted, &mut told);
            }
        }
        self.told = told;
        self.bank = Some(bank);
    }

    /// What was counted of a group; `nothing` is that.
    fn counted<'a>(
        &'a self,
        group: u16,
        start_tsc: u64,
        nothing: &'a Counts,
    ) -> Option<Counted<'a>> {
        let moments = self.moments.get(usize::from(group))?;
        let is_open = self.open.credited && self.open.draw.group == group;
        let open = if is_open { &self.open.slice } else { nothing };
        Some(Counted { moments, open, start_tsc, total: &self.total })
    }
}
