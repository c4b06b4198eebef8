//! Lock for the library's own data that several threads use.

use crate::sys;

/// Lets other threads run while a thread waits: threads take turns on one CPU.
#[derive(Debug)]
pub struct Yield;

impl spin::RelaxStrategy for Yield {
    fn relax() {
        // SAFETY: the call has no buffer.
        unsafe { sys::call(sys::SCHED_YIELD, [0; 6]) };
    }
}

/// Lock around data of the library.
pub type Lock<T> = spin::mutex::SpinMutex<T, Yield>;
