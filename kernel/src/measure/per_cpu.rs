//! One CPU's part of the sampling engine: its multiplexer, and the session of the program that runs
//! there.

mod records;
mod thread;

use alloc::boxed::Box;
use core::mem::take;

use tally_abi::{
    Error, Mode, Opened,
    boot::{Delivery, Failure},
    trace::End,
    vpmu::Op,
};
use tally_engine::{Counts, Group, Multiplexer, Pmu};
use tally_pmu::{DetectedPmu, Driver, InitError, bus::Native};

use super::{
    context::{Context, UpcallHandler},
    direct::DirectCounters,
    readings::{EVENTS_A_STEP, PendingReadings},
    refusal::Refusal,
    settings::{delivery, detected, record_init_failure, settings},
    slot::Slot,
    trace::{AtInterrupt, TraceSink},
    trace_ring::TscClock,
    truth::mark,
};
use crate::{
    arch::{control, frame::InterruptFrame, lapic::Lapic},
    memory::user::UserMemory,
};

/// Groups whose spread is computed at each turn of the scheduler, where shares adapt: some
/// thousands of instructions for each of its events, as the kernel has no floating-point unit.
const GROUPS_A_TICK: usize = 1;

/// Makes the driver of this CPU, once.
fn driver(cpu: u16, found: &DetectedPmu) -> Result<Driver<Native>, InitError> {
    let init = || {
        // SAFETY: (1) this is ring 0; (2) `detect` found the PMU on this machine, whose CPUs are
        // alike; (3) the driver stays with this CPU.
        let bus = unsafe { Native::new() };
        found.init_cpu(bus, delivery() == Delivery::Nmi)
    };
    if settings().fail == Some(Failure::Pmu) && cpu > 0 {
        init()?.restore(&Group::NONE, Mode::User, &Counts::default());
    }
    init()
}

/// One CPU's part of the engine.
pub struct Measure {
    /// None if this CPU cannot count.
    multiplexer: Option<Multiplexer<Driver<Native>>>,
    /// What is counted of the program that runs on this CPU.
    slot: Slot,
    /// Whether ring 3 may execute RDPMC.
    rdpmc_allowed: bool,
    trace: TraceSink,
    lapic: Lapic,
}

impl Measure {
    /// Initializes this CPU's PMU. Runs on the CPU itself, once.
    pub fn new(cpu: u16, lapic: &Lapic) -> Self {
        let multiplexer = detected().ok().and_then(|found| {
            let others = lapic.pmi_msr_accesses(delivery());
            let multiplexer = |driver| Multiplexer::new(driver, cpu, others);
            let driver = driver(cpu, found).map_err(|reason| record_init_failure(cpu, reason));
            driver.ok().map(multiplexer)
        });
        let trace = TraceSink::new(cpu, *lapic, settings().trace);
        let lapic = *lapic;
        Measure { multiplexer, slot: Slot::default(), rdpmc_allowed: false, trace, lapic }
    }

    /// The overflow interrupt.
    #[inline(always)]
    pub(super) fn overflow(&mut self, interrupted: &InterruptFrame, delivery: Delivery) {
        if let Some(multiplexer) = &mut self.multiplexer {
            let session = self.slot.context.as_mut().map(|context| &mut context.session);
            let mut sink = AtInterrupt { trace: &mut self.trace, interrupted };
            multiplexer.overflow(session, &TscClock, &mut sink);
        }
        self.lapic.end_pmi(delivery);
    }

    /// Context-switch in: takes over what is counted of the program and counts on.
    pub fn enter(&mut self, slot: &mut Slot) {
        self.slot = take(slot);
        if let (Some(multiplexer), Some(own)) = (&mut self.multiplexer, &self.slot.direct) {
            multiplexer.restore_direct(&own.direct);
        }
        self.update_rdpmc_access();
        if let Some(context) = &mut self.slot.context {
            if take(&mut context.start_pending) {
                if self.start().is_err() {
                    let program = self.slot.context.as_ref().map_or("", |it| it.program());
                    log::error!("{program}: session not started: this CPU cannot count");
                }
            } else if let Some(multiplexer) = &mut self.multiplexer
                && context.started
            {
                multiplexer.resume(&mut context.session, &TscClock, &mut self.trace);
            }
        }
        // A threshold may have fired as the program was switched out.
        self.repost_upcall();
    }

    /// Raises the upcall interrupt again if a threshold of the running program has fired whose
    /// upcall was not made.
    pub fn repost_upcall(&self) {
        if self.slot.context.as_ref().is_some_and(|context| context.session.has_fired()) {
            self.trace.upcall();
        }
    }

    /// Context-switch out: stops counting and gives what is counted back to the program.
    pub fn leave(&mut self, slot: &mut Slot) {
        self.suspend(End::SwitchedOut);
        self.notice_stop();
        self.save_direct();
        *slot = take(&mut self.slot);
        self.update_rdpmc_access();
    }

    /// Allows ring 3 RDPMC if the running program has a bank or is in direct mode.
    fn update_rdpmc_access(&mut self) {
        let context = self.slot.context.as_deref().filter(|it| it.session.has_bank());
        if let (Some(multiplexer), Some(context)) = (&mut self.multiplexer, context)
            && !context.session.is_running()
        {
            multiplexer.scrub_counters(&context.session);
        }
        let allowed = context.is_some() || self.slot.direct.is_some();
        if allowed != self.rdpmc_allowed {
            control::set_rdpmc_access(allowed);
            self.rdpmc_allowed = allowed;
        }
    }

    /// The scheduler's timer: adapts shares, and publishes counts in the running program's bank, so
    /// that what a counter counts between two updates fits the 32 bits that the program reads,
    /// however long a slice is. A session that counts ring 0 is synchronized too, as an overflow of
    /// its slice timer may have been lost.
    pub fn tick(&mut self) {
        self.fold();
        let (Some(multiplexer), Some(context)) = (&mut self.multiplexer, &mut self.slot.context)
        else {
            return;
        };
        context.session.adapt(GROUPS_A_TICK);
        let session = &mut context.session;
        if session.has_bank() || session.counts_kernel() {
            multiplexer.sync(session, &TscClock, &mut self.trace);
        }
    }

    /// Folds what overflow interrupts have stored into the running program's session, and publishes
    /// the errors in its bank that are due.
    pub fn fold(&mut self) {
        let (Some(multiplexer), Some(context)) = (&mut self.multiplexer, &mut self.slot.context)
        else {
            return;
        };
        multiplexer.fold(&mut context.session, &TscClock, &mut self.trace);
        if context.session.errors_are_due() {
            self.sync();
            self.publish_errors();
        }
    }

    /// Marks the session stopped if the program stopped its counters by a word in its own page.
    fn notice_stop(&mut self) {
        if let Some(context) = &mut self.slot.context
            && context.started
            && context.session.is_stopped()
        {
            context.started = false;
            mark(Op::CloseSession, context.id());
        }
    }

    fn suspend(&mut self, end: End) {
        if let (Some(multiplexer), Some(context)) = (&mut self.multiplexer, &mut self.slot.context)
            && context.session.is_running()
        {
            multiplexer.suspend(&mut context.session, end, &TscClock, &mut self.trace);
        }
    }

    /// Returns whether anything is counted of the running program.
    pub fn is_measuring(&self) -> bool {
        self.slot.is_measured()
    }

    /// Takes the session that the running program has opened; it has none yet.
    pub fn install(&mut self, context: Context) -> Opened {
        self.slot.context.insert(Box::new(context)).opened()
    }

    /// The session of this number, brought up to date, if the running program opened it on itself.
    pub fn session(&mut self, id: u32) -> Option<&mut Self> {
        self.slot.context.as_ref().filter(|context| context.id() == id && context.is_own())?;
        self.sync();
        self.notice_stop();
        Some(self)
    }

    /// Brings the values of the running program's session up to date, if it has one.
    fn sync(&mut self) {
        if let (Some(multiplexer), Some(context)) = (&mut self.multiplexer, &mut self.slot.context)
        {
            multiplexer.sync(&mut context.session, &TscClock, &mut self.trace);
        }
    }

    /// The running program's context, after [`Self::session`].
    pub(super) fn context(&mut self) -> Result<&mut Context, Error> {
        Ok(self.slot.context.as_mut().ok_or(Error::NoSession)?)
    }

    /// How many calls of [`Self::publish_errors`] publish all: none without a bank.
    pub(super) fn publishing_steps(&self) -> u64 {
        let context = self.slot.context.as_ref().filter(|context| context.session.has_bank());
        context.map_or(0, |context| context.events().div_ceil(EVENTS_A_STEP) as u64)
    }

    /// Publishes the errors of a part of the running program's values in its bank, if it has one.
    pub(super) fn publish_errors(&mut self) {
        let steps = self.publishing_steps() as usize;
        if let Some(context) = &mut self.slot.context {
            context.session.publish_errors(steps);
        }
    }

    /// Maps the running program's bank into its memory. Returns the bank's address.
    pub(super) fn map(&mut self, memory: &mut UserMemory) -> Result<u64, Error> {
        let address = self.slot.context.as_mut().ok_or(Error::NoSession)?.map(memory)?;
        self.update_rdpmc_access();
        Ok(address)
    }

    /// Takes samples of an event of the running program.
    pub(super) fn set_period(
        &mut self,
        memory: &mut UserMemory,
        event: usize,
        period: u64,
    ) -> Result<(), Error> {
        let context = self.slot.context.as_mut().ok_or(Error::NoSession)?;
        context.set_period(memory, event, period)?;
        self.sync();
        self.update_rdpmc_access();
        Ok(())
    }

    /// Sets the threshold of an event of the running program.
    pub(super) fn set_threshold(
        &mut self,
        event: usize,
        count: Option<u64>,
        handler: Option<UpcallHandler>,
    ) -> Result<(), Error> {
        let context = self.slot.context.as_mut().ok_or(Error::NoSession)?;
        context.set_threshold(event, count, handler)?;
        self.sync();
        Ok(())
    }

    /// Takes a threshold of the running program that has fired: handler, event and count.
    pub fn take_upcall(&mut self) -> Option<(UpcallHandler, u64, u64)> {
        self.slot.context.as_mut()?.take_upcall()
    }

    /// Starts counting.
    pub(super) fn start(&mut self) -> Result<(), Error> {
        let context = self.slot.context.as_mut().ok_or(Error::NoSession)?;
        if context.started {
            return Err(Error::WrongState);
        }
        let multiplexer = self.multiplexer.as_mut().ok_or(Error::NoPmu)?;
        context.started = true;
        context.last_readings = None;
        mark(Op::OpenSession, context.id());
        multiplexer.resume(&mut context.session, &TscClock, &mut self.trace);
        Ok(())
    }

    /// Stops counting.
    pub(super) fn stop(&mut self) -> Result<(), Error> {
        if !self.slot.context.as_ref().is_some_and(|context| context.started) {
            return Err(Error::WrongState);
        }
        self.pause();
        Ok(())
    }

    /// The running program ends: stops counting, and begins the readings that the end reports, in
    /// steps. `None` if the end reports none, or can compute them at once.
    pub fn begin_end(&mut self) -> Option<Box<PendingReadings>> {
        self.pause();
        let context = self.slot.context.as_ref().filter(|context| context.reports_at_end())?;
        // Without memory for it, the end computes them in one step.
        context.begin_readings().ok().flatten()
    }

    /// The running program ends, whose readings are these: see [`Self::begin_end`].
    pub fn set_last_readings(&mut self, pending: PendingReadings) {
        if let Some(context) = &mut self.slot.context {
            context.set_last_readings(pending);
        }
    }

    /// Stops counting, if it is started.
    pub(super) fn pause(&mut self) {
        self.suspend(End::Stopped);
        if let Some(context) = self.slot.context.as_mut().filter(|context| context.started) {
            context.started = false;
            mark(Op::CloseSession, context.id());
        }
    }

    /// Ends the running program's session, if it has one: stops counting and reports the last
    /// values. `memory` is the program's.
    pub(super) fn close(&mut self, memory: &mut UserMemory) {
        self.pause();
        if let Some(context) = self.slot.context.take() {
            context.close(Some(memory));
            self.update_rdpmc_access();
        }
    }

    /// The running program ends: stops counting. Returns the context that another program opened.
    pub fn end(&mut self, memory: &mut UserMemory) -> Option<Box<Context>> {
        self.close_direct();
        if self.slot.context.as_ref().is_none_or(|context| context.is_own()) {
            self.close(memory);
        }
        self.pause();
        let mut context = self.slot.context.take();
        if let Some(context) = &mut context {
            context.lose_bank();
        }
        context
    }

    /// Puts the running program into direct mode, which allows it RDPMC: it is not measured, and
    /// its counters count from here on.
    ///
    /// # Errors
    /// The PMU's counters cannot be restored, or this CPU cannot count.
    pub fn install_direct(&mut self, counters: DirectCounters) -> Result<(), Refusal> {
        let multiplexer = self.multiplexer.as_mut().ok_or(Error::NoPmu)?;
        if !multiplexer.can_restore_direct() {
            let detail =
                "direct mode needs counters that can be written in full width, which this \
                          PMU's cannot: open a session instead"
                    .into();
            return Err(Refusal { error: Error::EventNotSupported, detail });
        }
        let own = self.slot.direct.insert(Box::new(counters));
        mark(Op::OpenSession, own.id);
        multiplexer.restore_direct(&own.direct);
        self.update_rdpmc_access();
        Ok(())
    }

    /// Ends the running program's direct mode. Returns whether it was in direct mode.
    pub fn close_direct(&mut self) -> bool {
        self.save_direct();
        let own = self.slot.direct.take();
        if let Some(own) = &own {
            mark(Op::CloseSession, own.id);
        }
        self.update_rdpmc_access();
        own.is_some()
    }

    /// Stops the counters of a direct-mode program and saves them.
    fn save_direct(&mut self) {
        if let (Some(multiplexer), Some(own)) = (&mut self.multiplexer, &mut self.slot.direct) {
            multiplexer.save_direct(&mut own.direct);
        }
    }
}
