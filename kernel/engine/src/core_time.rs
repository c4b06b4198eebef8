//! Core cycles and kernel entries: what passes on a CPU beside the program in ring 3.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::Clock;

/// Per-CPU count of kernel entries, overflow interrupts excluded, and the time at which the kernel
/// has to end the running slice ([`crate::Multiplexer::cut`]). Clones share both. Only its CPU uses
/// them.
#[derive(Clone, Debug)]
pub struct KernelEntries(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    number: AtomicU64,
    /// TSC; [`u64::MAX`]: never.
    deadline: AtomicU64,
}

impl Default for KernelEntries {
    fn default() -> KernelEntries {
        let [number, deadline] = [0, u64::MAX].map(AtomicU64::new);
        KernelEntries(Arc::new(Shared { number, deadline }))
    }
}

impl KernelEntries {
    /// Returns whether the deadline of the running slice has passed. Call it as the kernel returns
    /// to ring 3; if it returns true, call [`crate::Multiplexer::cut`].
    #[inline]
    pub fn is_overdue(&self, clock: &impl Clock) -> bool {
        let deadline = self.0.deadline.load(Ordering::Relaxed);
        deadline != u64::MAX && clock.tsc() >= deadline
    }

    /// Sets the deadline of the running slice.
    pub(crate) fn set_deadline(&self, tsc: Option<u64>) {
        self.0.deadline.store(tsc.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Counts an entry of the kernel: an interrupt, an exception or a system call.
    #[inline]
    pub fn note(&self) {
        // Only one CPU stores the count, so no atomic addition is needed.
        self.0.number.store(self.number().wrapping_add(1), Ordering::Relaxed);
    }

    #[inline]
    fn number(&self) -> u64 {
        self.0.number.load(Ordering::Relaxed)
    }

    /// The processor's core cycles now, if it counts them.
    pub(crate) fn read(&self, clock: &impl Clock) -> Option<CoreReading> {
        clock.core_cycles().map(|cycles| CoreReading { cycles, entries: self.number() })
    }
}

/// A reading of the processor's core cycles, in any ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreReading {
    pub(crate) cycles: u64,
    /// Value of [`KernelEntries`] at that time.
    pub(crate) entries: u64,
}

impl CoreReading {
    /// Core cycles since `then` beside the `counted` ones, and whether the kernel was not entered
    /// meanwhile but for overflow interrupts.
    pub(crate) fn beside(&self, then: &CoreReading, counted: u64) -> (u64, bool) {
        let passed = self.cycles.wrapping_sub(then.cycles);
        (passed.saturating_sub(counted), self.entries == then.entries)
    }
}

/// Start time of the engine's work outside of the overflow path.
#[derive(Clone, Copy, Debug)]
pub struct Began {
    tsc: u64,
    core_cycles: Option<u64>,
}

impl Began {
    /// Reads the clock.
    pub fn now(clock: &impl Clock) -> Began {
        Began { tsc: clock.tsc(), core_cycles: clock.core_cycles() }
    }

    pub(crate) fn tsc(&self) -> u64 {
        self.tsc
    }

    /// TSC ticks and core cycles since; no cycles if the processor does not count them.
    pub(crate) fn elapsed(&self, clock: &impl Clock) -> (u64, u64) {
        let cycles = self.core_cycles.zip(clock.core_cycles());
        let cycles = cycles.map_or(0, |(began, ended)| ended.wrapping_sub(began));
        (clock.tsc().wrapping_sub(self.tsc), cycles)
    }
}
