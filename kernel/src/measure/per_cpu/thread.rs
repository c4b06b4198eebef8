//! What is counted of the threads of the program that runs on this CPU.

use alloc::boxed::Box;

use tally_abi::{Error, trace::End};

use super::Measure;
use crate::measure::{context::Context, threads::ThreadCounts};

impl Measure {
    /// The CPU runs the thread `next` of the program from here on.
    pub fn run_thread(&mut self, next: u32) {
        if !self.slot.contexts().any(|context| context.threads.is_some()) {
            return;
        }
        if self.slot.others.is_empty() {
            self.sync();
            self.credit_threads(next);
        } else {
            self.suspend(End::SwitchedOut);
            self.credit_threads(next);
            self.settle();
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
