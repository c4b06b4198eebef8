//! Common driver type for both vendors' drivers.

use tally_abi::{
    Mode,
    branches::{Branch, BranchFilter, MAX_BRANCHES},
};
use tally_engine::{
    CounterMask, Counts, Group, Metrics, Pmu, PreciseRecords, Setup, Switch, Widths,
};

use crate::{
    amd::Amd,
    bus::Bus,
    init::ControlValue,
    intel::{DebugStore, Intel, RecordBuffer},
};

/// PMU of one CPU, of either vendor.
#[derive(Debug)]
pub enum Driver<B: Bus> {
    /// Driver for Intel's architectural performance monitoring.
    Intel(Intel<B>),
    /// Driver for AMD's core counters.
    Amd(Amd<B>),
}

macro_rules! either {
    ($self:ident, $driver:ident => $call:expr) => {
        match $self {
            Driver::Intel($driver) => $call,
            Driver::Amd($driver) => $call,
        }
    };
}

impl<B: Bus> Driver<B> {
    /// Returns a control of the driver's counters whose value is not the one that the driver wrote
    /// last. The counters reserved for others are not looked at.
    pub fn changed_by_others(&mut self) -> Option<ControlValue> {
        either!(self, driver => driver.changed_by_others())
    }

    /// Mask of the extra registers that this CPU has, of those of [`tally_engine::Layout::extra`].
    pub fn extra(&self) -> u8 {
        match self {
            Driver::Intel(driver) => driver.extra(),
            Driver::Amd(_) => 0,
        }
    }

    /// Lets samples of precise events be precise, if this CPU can store their records. Intel's are
    /// in the memory that `store` makes, or, if they are architectural, in that of `buffer`, with
    /// its physical address; nothing else uses either. AMD's interrupt is that of an entry of the
    /// extended local vector table, by its number: `route` returns whether it comes as an overflow
    /// interrupt.
    pub fn sample_precisely(
        &mut self,
        store: impl FnOnce() -> &'static DebugStore,
        buffer: impl FnOnce() -> Option<(&'static RecordBuffer, u64)>,
        route: impl FnOnce(u8) -> bool,
    ) {
        match self {
            Driver::Intel(driver) => driver.sample_precisely(store, buffer),
            Driver::Amd(driver) => driver.sample_precisely(route),
        }
    }

    /// Returns whether this CPU can sample precisely.
    pub fn can_sample_precisely(&self) -> bool {
        either!(self, driver => driver.can_sample_precisely())
    }

    /// Lets sessions record branches, if this CPU has records.
    pub fn record_branches(&mut self) {
        either!(self, driver => driver.record_branches());
    }

    /// The filters with which sessions can record branches on this CPU; empty if they cannot.
    pub fn branch_filters(&self) -> BranchFilter {
        either!(self, driver => driver.branch_filters())
    }

    /// Returns whether this CPU has PERF_METRICS.
    pub fn has_metrics(&self) -> bool {
        matches!(self, Driver::Intel(driver) if driver.has_metrics())
    }
}

impl<B: Bus> Pmu for Driver<B> {
    fn program(&mut self, group: &Group, setup: &Setup, slice: u64) {
        either!(self, driver => driver.program(group, setup, slice));
    }

    fn enable(&mut self) {
        either!(self, driver => driver.enable());
    }

    fn can_restore(&self) -> bool {
        either!(self, driver => driver.can_restore())
    }

    fn restore(&mut self, group: &Group, mode: Mode, values: &Counts) {
        either!(self, driver => driver.restore(group, mode, values));
    }

    fn stop(&mut self) {
        either!(self, driver => driver.stop());
    }

    fn is_counting(&mut self) -> bool {
        either!(self, driver => driver.is_counting())
    }

    fn take_metrics(&mut self) -> Metrics {
        either!(self, driver => driver.take_metrics())
    }

    fn take_precise(&mut self) -> PreciseRecords {
        either!(self, driver => driver.take_precise())
    }

    fn branches(&mut self, to: &mut [Branch; MAX_BRANCHES]) -> usize {
        either!(self, driver => driver.branches(to))
    }

    fn clear_branches(&mut self) {
        either!(self, driver => driver.clear_branches());
    }

    fn scrub(&mut self) {
        either!(self, driver => driver.scrub());
    }

    fn read(&mut self, set: CounterMask) -> Counts {
        either!(self, driver => driver.read(set))
    }

    #[inline(always)]
    fn switch(&mut self, next: &Switch, counts: &mut Counts) -> bool {
        either!(self, driver => driver.switch(next, counts))
    }

    #[inline(always)]
    fn ack_and_resume(&mut self) {
        either!(self, driver => driver.ack_and_resume());
    }

    fn has_lost_overflow(&mut self) -> bool {
        either!(self, driver => driver.has_lost_overflow())
    }

    fn preload(&mut self, slot: usize, remaining: u64) -> u64 {
        either!(self, driver => driver.preload(slot, remaining))
    }

    fn store_records(&mut self, slots: u16) {
        either!(self, driver => driver.store_records(slots));
    }

    fn disarm(&mut self) {
        either!(self, driver => driver.disarm());
    }

    fn widths(&self) -> Widths {
        either!(self, driver => driver.widths())
    }

    #[inline(always)]
    fn msr_accesses(&self) -> u64 {
        either!(self, driver => driver.msr_accesses())
    }
}

#[cfg(test)]
mod tests;
