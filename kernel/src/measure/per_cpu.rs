//! A CPU's part of the sampling engine: its multiplexer, and the session of the running program.

mod bank;
mod checks;
mod cpus;
mod direct;
mod of_cpu;
mod records;
mod start;
mod thread;
mod turn;
mod turns;
mod unit;

use alloc::{boxed::Box, string::String, vec::Vec};
use core::mem::take;

use tally_abi::{Error, Opened, boot::Delivery, trace::End, usage::Usage};
use tally_engine::{Began, KernelEntries, Multiplexer, Session};
use tally_pmu::{Driver, bus::Native};

use super::{
    context::{Context, Samples},
    halt::Halter,
    instances::ThreadTurn,
    refusal::Refusal,
    settings::{delivery, detected, record_failure, settings},
    slot::Slot,
    trace::{AtInterrupt, TraceSink},
    trace_ring::ProcessorClock,
    unit::{Unit, of_this_cpu},
    upcall::{Threshold, Upcall},
};
use crate::{
    arch::{control, frame::InterruptFrame, lapic::Lapic},
    memory::user::UserMemory,
};
use of_cpu::OfCpu;
use turn::Turn;

/// Groups whose spread is computed at each tick of the scheduler, if shares adapt: some thousands
/// of instructions for each of its events, as the kernel has no floating-point unit.
const GROUPS_A_TICK: usize = 1;

/// A CPU's part of the engine. The fields that the overflow path needs come first.
#[repr(C, align(64))]
pub struct Measure {
    /// Slot of the program that runs on this CPU.
    slot: Slot,
    lapic: Lapic,
    /// The multiplexer; `None` if this CPU cannot count.
    multiplexer: Option<Multiplexer<Driver<Native>>>,
    cpu: u16,
    /// The counter unit; `None` if the CPU has none.
    unit: Option<Unit>,
    of_cpu: OfCpu,
    turn: Turn,
    /// Whether ring 3 may execute RDPMC.
    rdpmc_allowed: bool,
    trace: TraceSink,
    /// The halts; `None` if CPUs are not halted.
    halter: Option<Halter>,
    /// Time of the last check of the counters.
    checked_ns: u64,
}

impl Measure {
    /// Initializes this CPU's PMU. Runs on the CPU itself, once.
    pub fn new(cpu: u16, lapic: &Lapic) -> Self {
        let multiplexer = detected().ok().and_then(|found| {
            let made = start::check_ring_0(cpu, lapic, found)
                .and_then(|()| start::multiplexer(cpu, lapic, found));
            made.map_err(|reason| record_failure(cpu, reason)).ok()
        });
        let trace = TraceSink::new(cpu, *lapic, settings().trace);
        let lapic = *lapic;
        let halter = multiplexer.as_ref().and_then(|_| Halter::new(cpu, lapic));
        Measure {
            cpu,
            multiplexer,
            unit: of_this_cpu(),
            slot: Slot::default(),
            of_cpu: OfCpu::default(),
            turn: Turn::new(cpu),
            rdpmc_allowed: false,
            trace,
            halter,
            lapic,
            checked_ns: 0,
        }
    }

    /// Records an interrupt or exception other than a PMI in ring 3 at `rip`.
    #[inline]
    pub fn note_interruption(&mut self, rip: &mut u64) {
        self.slot.sequences.restart(rip);
        if let Some(context) = &mut self.slot.context
            && context.session.is_running()
        {
            context.session.note_interruption();
        }
    }

    /// Handles the overflow interrupt.
    #[inline(always)]
    pub(super) fn overflow(&mut self, interrupted: &mut InterruptFrame, delivery: Delivery) {
        self.handle_overflow(interrupted);
        self.lapic.end_pmi(delivery);
        if self.multiplexer.as_mut().is_some_and(Multiplexer::has_lost_overflow) {
            // At most once: the interrupt is unmasked now, so the next overflow raises one.
            self.handle_overflow(interrupted);
        }
        self.slot.sequences.restart(&mut interrupted.rip);
    }

    /// Handles the engine's part of the overflow interrupt.
    #[inline(always)]
    fn handle_overflow(&mut self, interrupted: &InterruptFrame) {
        if let Some(multiplexer) = &mut self.multiplexer {
            let trace = &mut self.trace;
            let context = self.slot.context.as_deref_mut();
            let (session, stack_bytes) = match context {
                Some(Context { session, stack_bytes, .. }) => (Some(session), &*stack_bytes),
                None => (None, &0),
            };
            multiplexer.overflow(session, &ProcessorClock, move || AtInterrupt {
                trace,
                interrupted,
                stack_bytes,
            });
        }
    }

    /// Handles the overflow interrupt on a machine with halts.
    #[inline(always)]
    pub(super) fn overflow_or_halt(&mut self, interrupted: &mut InterruptFrame) {
        let is_due = self.halter.as_mut().is_some_and(Halter::is_due);
        let context = self.slot.context.as_ref();
        if !is_due || context.is_some_and(|context| context.session.is_running()) {
            self.handle_overflow(interrupted);
        }
        if let Some(halter) = self.halter.as_mut().filter(|_| is_due) {
            halter.halt();
        }
        self.lapic.end_pmi(Delivery::Fixed);
        self.slot.sequences.restart(&mut interrupted.rip);
    }

    /// Context-switch in: takes over the program's slot, whose thread's turn is `first`, and
    /// continues counting.
    pub fn enter(&mut self, slot: &mut Slot, first: impl FnOnce() -> ThreadTurn) {
        if let Some(halter) = &mut self.halter {
            halter.start();
        }
        self.slot = take(slot);
        if let (Some(multiplexer), Some(own)) = (&mut self.multiplexer, &self.slot.direct) {
            multiplexer.restore_direct(&own.direct);
        }
        self.update_rdpmc_access();
        self.start_pending();
        if self.slot.is_measured() || self.has_cpu_contexts() {
            let first = first();
            self.join_program(first.usage);
            self.enter_thread(first);
        }
        self.resume();
        self.update_unit();
        // A threshold may have fired while the program was switched out.
        self.repost_upcall();
    }

    /// Raises the upcall interrupt again if a threshold of the running program has fired, or its
    /// phase has changed, and the upcall was not made yet.
    pub fn repost_upcall(&self) {
        if self
            .slot
            .contexts()
            .any(|context| context.session.has_fired() || context.session.has_changed())
        {
            self.trace.upcall();
        }
    }

    /// Context-switch out: stops counting and returns the slot to the program, which has used
    /// `usage`.
    pub fn leave(&mut self, slot: &mut Slot, usage: impl FnOnce() -> Usage) {
        self.suspend(End::SwitchedOut);
        if self.has_instances() || self.has_cpu_contexts() {
            let usage = usage();
            self.credit_usage(usage);
            self.leave_program(usage);
        }
        self.save_direct();
        self.unload_unit();
        *slot = take(&mut self.slot);
        self.update_rdpmc_access();
    }

    /// Allows ring 3 RDPMC if the running program has a bank or is in direct mode.
    fn update_rdpmc_access(&mut self) {
        // A program does not read the bank of the CPU on which it runs.
        let has_bank = self.slot.contexts().any(|it| it.session.has_bank() && !it.is_of_a_cpu());
        if let (Some(multiplexer), Some(context)) = (&mut self.multiplexer, &self.slot.context)
            && has_bank
            && !context.session.is_running()
        {
            multiplexer.scrub_counters(&context.session);
        }
        let allowed = has_bank || self.slot.direct.is_some();
        if allowed != self.rdpmc_allowed {
            control::set_rdpmc_access(allowed);
            self.rdpmc_allowed = allowed;
        }
    }

    /// Handles a tick of the scheduler: adapts shares, and publishes counts in the running
    /// program's bank, so that a counter's count between two publications fits the 32 bits that the
    /// program reads, however long a slice is. A session that counts ring 0 is synchronized too,
    /// because an overflow of its slice timer may have been lost.
    pub fn tick(&mut self) {
        if let Some(halter) = &mut self.halter {
            halter.end_turn();
        }
        self.fold();
        self.recover();
        self.recheck_at_tick();
        let Some(context) = &mut self.slot.context else { return };
        context.session.adapt(GROUPS_A_TICK);
        let has_new_period = context.session.adapt_rates();
        let session = &context.session;
        if session.has_bank() || session.counts_kernel() || has_new_period {
            self.sync();
            self.change_turn();
        }
    }

    /// The running program's session, with its multiplexer and the sink of its records.
    fn counted(
        &mut self,
    ) -> Option<(&mut Multiplexer<Driver<Native>>, &mut Session, &mut TraceSink)> {
        let context = self.slot.context.as_mut()?;
        Some((self.multiplexer.as_mut()?, &mut context.session, &mut self.trace))
    }

    /// Ends the current slice if its overflow interrupt was lost.
    fn recover(&mut self) {
        let Some((multiplexer, session, trace)) = self.counted() else { return };
        if multiplexer.recover(session, &ProcessorClock, trace) {
            // Delivery may have masked the entry even though the interrupt was lost.
            self.lapic.unmask_pmi(delivery());
        }
    }

    /// Ends the running slice, which ring 0 has made too long.
    pub fn cut(&mut self) {
        if let Some((multiplexer, session, trace)) = self.counted() {
            multiplexer.cut(session, &ProcessorClock, trace);
        }
    }

    /// Folds the rows of overflow interrupts into the running program's session, publishes due
    /// errors in its bank, and makes room in a trace ring that is half full.
    pub fn fold(&mut self) {
        self.trace.make_room();
        let Some((multiplexer, session, trace)) = self.counted() else { return };
        multiplexer.fold(session, &ProcessorClock, trace);
        trace.make_room();
        if session.errors_are_due() {
            let began = Began::now(&ProcessorClock);
            self.sync();
            self.publish_errors();
            self.charge(&began);
        }
        self.change_turn();
    }

    /// Charges the running program's session for work of the engine since `began`.
    fn charge(&mut self, began: &Began) {
        if let Some(context) = &mut self.slot.context {
            context.session.charge(began, &ProcessorClock);
        }
    }

    /// The count of kernel entries on this CPU.
    pub fn entries(&self) -> KernelEntries {
        self.multiplexer.as_ref().map(Multiplexer::entries).unwrap_or_default()
    }

    /// The running program's slot.
    pub fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Installs the session that the running program has opened.
    ///
    /// # Errors
    /// See [`Slot::add`].
    pub fn install(&mut self, context: Context) -> Result<(Opened, String), Refusal> {
        let opened = context.opened();
        self.slot.add(Box::new(context)).map(|cost| (opened, cost))
    }

    /// Updates the values of the running program's session, if it has one.
    fn sync(&mut self) {
        let Some((multiplexer, session, trace)) = self.counted() else { return };
        multiplexer.sync(session, &ProcessorClock, trace);
        if !session.is_running() {
            self.end_turn();
        }
    }

    /// The running program's context, after [`Self::session`].
    pub(super) fn context(&mut self) -> Result<&mut Context, Error> {
        Ok(self.slot.context.as_mut().ok_or(Error::NoSession)?)
    }

    /// Takes samples of an event of the running program.
    pub(super) fn set_period(
        &mut self,
        memory: &mut UserMemory,
        samples: Samples,
    ) -> Result<(), Error> {
        let context = self.slot.context.as_mut().ok_or(Error::NoSession)?;
        context.set_period(memory, samples)?;
        self.sync();
        self.update_rdpmc_access();
        Ok(())
    }

    /// Sets the threshold of an event of the running program.
    pub(super) fn set_threshold(&mut self, threshold: Threshold) -> Result<(), Error> {
        let context = self.slot.context.as_mut().ok_or(Error::NoSession)?;
        context.set_threshold(threshold)?;
        self.sync();
        Ok(())
    }

    /// Takes a fired threshold of the running program: handler, event and count.
    pub fn take_upcall(&mut self) -> Option<Upcall> {
        let mut contexts = self.slot.contexts_mut().filter(|context| !context.is_of_a_cpu());
        contexts.find_map(Context::take_upcall)
    }

    /// Starts counting.
    pub(super) fn start(&mut self) -> Result<(), Error> {
        let context = self.slot.context.as_mut().ok_or(Error::NoSession)?;
        if context.started {
            return Err(Error::WrongState);
        }
        if self.multiplexer.is_none() {
            return Err(Error::NoPmu);
        }
        context.begin();
        if !self.others_started() {
            self.resume();
        }
        self.update_unit();
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

    /// Stops counting, if it is started.
    pub(super) fn pause(&mut self) {
        self.recheck_at_end();
        self.suspend(End::Stopped);
        if let Some(context) = &mut self.slot.context {
            context.end();
        }
        self.update_unit();
    }

    /// Counts of the counter unit for the running program's session, after [`Self::session`].
    pub(super) fn unit_counts(&mut self) -> Result<Vec<u64>, Error> {
        self.unload_unit();
        let counts = self.context().and_then(|context| context.unit_counts());
        self.update_unit();
        counts
    }

    /// Ends a session of the running program: stops counting, and removes it. `memory` is the
    /// program's.
    pub(super) fn close(&mut self, memory: &mut UserMemory) -> Option<Box<Context>> {
        self.pause();
        let id = self.slot.context.as_ref()?.id();
        let mut context = self.slot.remove(id)?;
        context.unmap(memory);
        self.update_rdpmc_access();
        Some(context)
    }
}
