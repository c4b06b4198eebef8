//! What is counted of the threads of the program that runs on this CPU.

use alloc::boxed::Box;

use tally_abi::Error;

use super::Measure;
use crate::measure::threads::ThreadCounts;

impl Measure {
    /// The CPU runs the thread `next` of the program from here on.
    pub fn run_thread(&mut self, next: u32) {
        if self.slot.context.as_ref().is_some_and(|context| context.threads.is_some()) {
            self.sync();
            self.credit_thread(next);
        }
    }

    fn credit_thread(&mut self, next: u32) {
        if let Some(context) = &mut self.slot.context
            && let Some(threads) = &mut context.threads
        {
            threads.switch(&context.session, next);
        }
    }

    /// A thread of the program has ended.
    pub fn end_thread(&mut self, thread: u32) {
        let context = self.slot.context.as_mut();
        if let Some(threads) = context.and_then(|context| context.threads.as_mut()) {
            threads.forget(thread);
        }
    }

    /// The words of the running thread, as [`tally_abi::thread`] has them, of the session that
    /// [`Self::session`] returned.
    ///
    /// # Errors
    /// There is no session, or no memory is left.
    pub fn thread_words(&mut self, thread: u32) -> Result<impl Iterator<Item = u64> + '_, Error> {
        self.credit_thread(thread);
        let context = self.slot.context.as_mut().ok_or(Error::NoSession)?;
        let new = || Box::new(ThreadCounts::new(&context.session, thread));
        context.threads.get_or_insert_with(new).running()
    }
}
