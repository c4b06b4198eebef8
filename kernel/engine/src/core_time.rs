//! Core cycles, and their use by the kernel besides the program and the engine.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::Clock;

/// Per-CPU count of kernel entries, overflow interrupts excluded. Clones share the count. Only its
/// CPU uses it.
#[derive(Clone, Debug, Default)]
pub struct KernelEntries(Arc<AtomicU64>);

impl KernelEntries {
    /// Counts an entry of the kernel: an interrupt, an exception or a system call.
    #[inline]
    pub fn note(&self) {
        // Only one CPU stores the count, so no atomic addition is needed.
        self.0.store(self.number().wrapping_add(1), Ordering::Relaxed);
    }

    #[inline]
    fn number(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
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
