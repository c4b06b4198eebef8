//! Counts of the threads of the program that runs on this CPU.

use alloc::boxed::Box;

use tally_abi::{Error, trace::End, usage::Usage};

use super::Measure;
use crate::measure::{context::Context, instances::ThreadTurn, threads::ThreadCounts};

impl Measure {
    /// Switches to the program's next thread.
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

    /// Starts the first turn of a thread since the program was switched in, while the sessions are
    /// on no counter yet.
    pub(super) fn enter_thread(&mut self, first: ThreadTurn) {
        self.credit_threads(first.thread);
        self.switch_instances(first);
    }

    fn switch_instances(&mut self, next: ThreadTurn) {
        self.slot.contexts_mut().for_each(|context| context.switch_thread(next));
    }

    /// Returns whether a session counts the program's threads separately.
    pub(super) fn has_instances(&self) -> bool {
        self.slot.contexts().any(|context| context.instances.is_some())
    }

    /// Credits the running program's usage up to now, which is `usage`.
    pub(super) fn credit_usage(&mut self, usage: Usage) {
        self.slot.contexts_mut().for_each(|context| context.credit_usage(usage));
    }

    /// Records the new name of a thread of the program.
    pub fn rename_thread(&mut self, thread: u32, name: [u8; 16]) {
        for context in self.slot.contexts_mut() {
            if let Some(instances) = &mut context.instances {
                instances.rename(thread, name);
            }
        }
    }

    /// Credits the counts of the thread's turn; the sessions must be up to date.
    fn credit_threads(&mut self, next: u32) {
        for Context { session, threads, .. } in self.slot.contexts_mut() {
            if let Some(threads) = threads {
                threads.switch(session, next);
            }
        }
    }

    /// Forgets a thread of the program that has ended.
    pub fn end_thread(&mut self, thread: u32) {
        for context in self.slot.contexts_mut() {
            if let Some(threads) = &mut context.threads {
                threads.forget(thread);
            }
        }
    }

    /// The words of the running thread ([`tally_abi::thread`]), for the session that
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
