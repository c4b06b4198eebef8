//! What is counted of the threads of the program that runs on this CPU.

use alloc::boxed::Box;

use tally_abi::{Error, trace::End, usage::Usage};

use super::Measure;
use crate::measure::{context::Context, instances::ThreadTurn, threads::ThreadCounts};

impl Measure {
    /// The CPU runs the next thread of the program from here on.
    pub fn run_thread(&mut self, next: impl FnOnce() -> ThreadTurn) {
        let apart = self.has_instances();
        if !apart && !self.slot.contexts().any(|context| context.threads.is_some()) {
            return;
        }
        let next = next();
        if self.slot.others.is_empty() && !apart {
            self.sync();
            self.credit_threads(next.thread);
        } else {
            self.suspend(End::SwitchedOut);
            self.credit_threads(next.thread);
            self.switch_instances(next);
            self.settle();
        }
    }

    /// The first turn of a thread since the program was switched in: the sessions are on no counter
    /// yet.
    pub(super) fn enter_thread(&mut self, first: ThreadTurn) {
        self.credit_threads(first.thread);
        self.switch_instances(first);
    }

    fn switch_instances(&mut self, next: ThreadTurn) {
        self.slot.contexts_mut().for_each(|context| context.switch_thread(next));
    }

    /// Returns whether a session counts the program's threads apart.
    pub(super) fn has_instances(&self) -> bool {
        self.slot.contexts().any(|context| context.instances.is_some())
    }

    /// The running program has used `usage` up to now.
    pub(super) fn credit_usage(&mut self, usage: Usage) {
        self.slot.contexts_mut().for_each(|context| context.credit_usage(usage));
    }

    /// A thread of the program has a new name.
    pub fn rename_thread(&mut self, thread: u32, name: [u8; 16]) {
        for context in self.slot.contexts_mut() {
            if let Some(instances) = &mut context.instances {
                instances.rename(thread, name);
            }
        }
    }

    /// The sessions are up to date.
    fn credit_threads(&mut self, next: u32) {
        for Context { session, threads, .. } in self.slot.contexts_mut() {
            if let Some(threads) = threads {
                threads.switch(session, next);
            }
        }
    }

    /// A thread of the program has ended.
    pub fn end_thread(&mut self, thread: u32) {
        for context in self.slot.contexts_mut() {
            if let Some(threads) = &mut context.threads {
                threads.forget(thread);
            }
        }
    }

    /// The words of the running thread, as [`tally_abi::thread`] has them, of the session that
    /// [`Self::session`] returned.
    ///
    /// # Errors
    /// There is no session, or no memory is left.
    pub fn thread_words(&mut self, thread: u32) -> Result<impl Iterator<Item = u64> + '_, Error> {
        let context = self.slot.context.as_mut().ok_or(Error::NoSession)?;
        let Context { session, threads, .. } = &mut **context;
        let threads = threads.get_or_insert_with(|| Box::new(ThreadCounts::new(session, thread)));
        threads.switch(session, thread);
        threads.running()
    }
}
