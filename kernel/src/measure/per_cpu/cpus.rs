//! What sessions on whole CPUs count of this one (decision 49): contexts that take turns with those
//! of the program that runs.

use alloc::{boxed::Box, vec::Vec};
use core::mem::take;

use tally_abi::{Instance, Reading, trace::End, usage::Usage};

use super::Measure;
use crate::measure::{
    context::Context,
    cpus::{self, CpuSide},
    upcall::Threshold,
};

impl Measure {
    /// Does what calls have asked of this CPU; the program that it runs, if it runs one, has used
    /// `running`. A call that asks interrupts the CPU.
    pub fn serve(&mut self, running: impl FnOnce() -> Option<Usage>) {
        let changes = cpus::changes();
        if self.of_cpu.seen != changes {
            self.of_cpu.seen = changes;
            let cpu = self.trace.cpu();
            cpus::serve(self, cpu, running());
        }
    }

    /// Leaves the upcalls of thresholds that have fired in sessions on this CPU to their owners.
    /// Returns whether there were any.
    pub fn post_upcalls(&mut self) -> bool {
        let posted = self.all_contexts().map(Context::post_upcalls_of_cpu);
        posted.fold(false, |any, has_posted| any | has_posted)
    }

    /// The contexts that wait for a program, and those of the program that runs.
    fn all_contexts(&mut self) -> impl Iterator<Item = &mut Context> {
        let waiting = self.of_cpu.waiting.iter_mut().map(|context| &mut **context);
        waiting.chain(self.slot.contexts_mut())
    }

    /// This CPU's context of a session on CPUs.
    fn context_of_cpu(&mut self, session: u32) -> Option<&mut Context> {
        self.all_contexts().find(|context| context.is_of_cpu_session(session))
    }

    /// Raises the upcall interrupt on this CPU.
    pub fn raise_upcall(&self) {
        self.trace.upcall();
    }

    /// Returns whether sessions on whole CPUs count this one.
    pub(super) fn has_cpu_contexts(&self) -> bool {
        !self.of_cpu.waiting.is_empty() || self.slot.contexts().any(Context::is_of_a_cpu)
    }

    /// The CPU runs a program from here on, which has used `usage`.
    pub(super) fn join_program(&mut self, usage: Usage) {
        for mut context in take(&mut self.of_cpu.waiting) {
            if self.multiplexer.is_some() {
                context.begin_on_cpu(usage);
            }
            self.slot.put(context);
        }
    }

    /// The program, which has used `usage`, leaves the CPU. Nothing is on the counters.
    pub(super) fn leave_program(&mut self, usage: Usage) {
        self.of_cpu.waiting.extend(self.slot.take_where(Context::is_of_a_cpu));
        self.of_cpu.waiting.iter_mut().for_each(|context| context.end_on_cpu(usage));
    }
}

impl CpuSide for Measure {
    fn take_on(&mut self, context: Option<Box<Context>>, running: Option<Usage>) {
        self.of_cpu.waiting.extend(context);
        if let Some(usage) = running {
            self.suspend(End::SwitchedOut);
            self.join_program(usage);
            self.settle();
        }
    }

    fn give_back(&mut self, session: u32, running: Option<Usage>) -> Option<Box<Context>> {
        self.suspend(End::SwitchedOut);
        self.leave_program(running.unwrap_or_default());
        let waiting = &mut self.of_cpu.waiting;
        let index = waiting.iter().position(|context| context.is_of_cpu_session(session));
        let context = index.map(|index| waiting.remove(index));
        if let Some(usage) = running {
            self.join_program(usage);
            self.settle();
        }
        context
    }

    fn values_of_cpu(
        &mut self,
        session: u32,
        running: Option<Usage>,
    ) -> Option<(Instance, Vec<Reading>)> {
        self.suspend(End::SwitchedOut);
        let context = self.context_of_cpu(session);
        let values = context.and_then(|context| context.values_of_cpu(running));
        self.settle();
        values
    }

    fn set_threshold_of_cpu(&mut self, session: u32, threshold: Threshold) {
        self.suspend(End::SwitchedOut);
        if let Some(context) = self.context_of_cpu(session) {
            // The call has checked that there are such an event and a bank.
            let set = context.set_threshold(threshold);
            debug_assert!(set.is_ok());
        }
        self.settle();
    }
}
