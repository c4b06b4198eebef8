//! Time on CPUs, separately for ring 3 and ring 0, from the time-stamp counter, which is read at
//! each entry to the kernel and at each return. The overflow interrupt does not read it: its time
//! counts for the ring that it interrupts.

use crate::machine::clock;

/// Ticks of the time-stamp counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Ticks in ring 3.
    user: u64,
    /// Ticks in ring 0, for the thread.
    system: u64,
}

impl Times {
    /// Adds `other`.
    pub fn add(&mut self, other: Times) {
        self.user += other.user;
        self.system += other.system;
    }

    /// Nanoseconds in ring 3.
    pub fn user_ns(self) -> u64 {
        clock::to_ns(self.user)
    }

    /// Nanoseconds in ring 0.
    pub fn system_ns(self) -> u64 {
        clock::to_ns(self.system)
    }

    /// Nanoseconds in both rings.
    pub fn all_ns(self) -> u64 {
        self.user_ns() + self.system_ns()
    }
}

/// The times of the running thread's turn.
#[derive(Debug, Default)]
pub struct Stopwatch {
    /// Time of the last change of the ring.
    since: u64,
    spent: Times,
}

impl Stopwatch {
    /// Starts a turn, in ring 0.
    pub fn start(&mut self) {
        *self = Stopwatch { since: clock::tsc(), spent: Times::default() };
    }

    /// Records an entry to the kernel from ring 3.
    #[inline]
    pub fn enter_kernel(&mut self) {
        self.spent.user += self.lap();
    }

    /// Records the return to ring 3.
    #[inline]
    pub fn leave_kernel(&mut self) {
        self.spent.system += self.lap();
    }

    #[inline]
    fn lap(&mut self) -> u64 {
        let now = clock::tsc();
        now.saturating_sub(core::mem::replace(&mut self.since, now))
    }

    /// The turn's times up to now, in ring 0.
    pub fn times(&self) -> Times {
        let system = self.spent.system + clock::tsc().saturating_sub(self.since);
        Times { system, ..self.spent }
    }
}
