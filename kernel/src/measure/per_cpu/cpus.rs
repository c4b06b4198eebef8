//! Contexts of sessions on whole CPUs for this CPU (decision 49), which take turns with those of
//! the running program.

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
    /// Carries out the requests of calls to this CPU; `running` returns the usage of its running
    /// program, if there is one. A call with a request interrupts the CPU.
    pub fn serve(&mut self, running: impl FnOnce() -> Option<Usage>) {
        let changes = cpus::changes();
        if self.of_cpu.seen != changes {
            self.of_cpu.seen = changes;
            let cpu = self.trace.cpu();
            cpus::serve(self, cpu, running());
        }
    }

    /// Posts the upcalls of fired thresholds in sessions on this CPU for their owners. Returns
    /// whether there were any.
    pub fn post_upcalls(&mut self) -> bool {
        let posted = self.all_contexts().map(Context::post_upcalls_of_cpu);
        posted.fold(false, |any, has_posted| any | has_posted)
    }

    /// All contexts: those that wait for a program, and those of the running program.
    fn all_contexts(&mut self) -> impl Iterator<Item = &mut Context> {
        let waiting = self.of_cpu.waiting.iter_mut().map(|context| &mut **context);
        waiting.chain(self.slot.contexts_mut())
    }

    /// Finds this CPU's context of a session on CPUs.
    fn context_of_cpu(&mut self, session: u32) -> Option<&mut Context> {
        self.all_contexts().find(|context| context.is_of_cpu_session(session))
    }

    /// Raises the upcall interrupt on this CPU.
    pub fn raise_upcall(&self) {
        self.trace.upcall();
    }

    /// Returns whether sessions on whole CPUs count this CPU.
    pub(super) fn has_cpu_contexts(&self) -> bool {
        !self.of_cpu.waiting.is_empty() || self.slot.contexts().any(Context::is_of_a_cpu)
    }

    /// Joins the contexts on this CPU to a program that starts to run here and has used `usage`.
    pub(super) fn join_program(&mut self, usage: Usage) {
        for mut context in take(&mut self.of_cpu.waiting) {
            if self.multiplexer.is_some() {
                context.begin_on_cpu(usage);
            }
            self.slot.put(context);
        }
    }

    /// Separates the contexts on this CPU from the program, which has used `usage` and leaves.
    /// Nothing is on the counters.
    pub(super) fn leave_program(&mut self, usage: Usage) {
        self.of_cpu.waiting.extend(self.slot.take_where(Context::is_of_a_cpu));
        self.of_cpu.waiting.iter_mut().for_each(|context| context.end_on_cpu(usage));
    }
}

impl CpuSide for Measure {
    fn take_on(&mut self, mut context: Option<Box<Context>>, running: Option<Usage>) {
        context.iter_mut().for_each(|context| context.start_on_cpu());
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
            // The call has checked that the event and a bank exist.
            let set = context.set_threshold(threshold);
            debug_assert!(set.is_ok());
        }
        self.settle();
    }
}
