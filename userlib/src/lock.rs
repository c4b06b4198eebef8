//! A lock for data of the library's own that several threads use.

use crate::sys;

/// A thread that waits lets others run: threads take turns on one CPU.
#[derive(Debug)]
pub struct Yield;

impl spin::RelaxStrategy for Yield {
    fn relax() {
        // SAFETY: the call has no buffer.
        unsafe { sys::call(sys::SCHED_YIELD, [0; 6]) };
    }
}

/// A lock.
pub type Lock<T> = spin::mutex::SpinMutex<T, Yield>;
