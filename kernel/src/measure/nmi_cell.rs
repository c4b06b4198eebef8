//! A CPU's [`Measure`], shared by the kernel and the overflow interrupt that interrupts it.
//!
//! A fixed interrupt waits until the kernel returns to a program. An NMI can interrupt code that
//! runs with interrupts off. An NMI that finds the `Measure` locked by the kernel only sets a
//! pending flag, and the kernel replays the overflow when it unlocks. So the overflow path never
//! sees a counter whose owner is being changed.

use core::{
    cell::{Cell, UnsafeCell},
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicBool, Ordering, compiler_fence},
};

use tally_abi::boot::Delivery;

use super::per_cpu::Measure;
use crate::arch::frame::InterruptFrame;

/// A CPU's [`Measure`] behind a lock that the CPU's own NMIs respect.
///
/// Only one CPU uses the cell, so the atomics need only the compiler's order ([`compiler_fence`]).
pub struct NmiCell {
    measure: UnsafeCell<Measure>,
    /// Whether the kernel holds an [`NmiGuard`].
    locked: AtomicBool,
    /// Whether an overflow came while the cell was locked. Intel's interrupt controllers mask the
    /// next overflow until this one is replayed; AMD's do not, and the last overflow replaces
    /// earlier ones.
    pending: AtomicBool,
    /// Frame that the pending overflow interrupted.
    pending_frame: Cell<InterruptFrame>,
}

/// The kernel's access to a CPU's [`Measure`]; dropping it unlocks.
pub struct NmiGuard<'a>(&'a NmiCell);

impl NmiCell {
    /// An unlocked cell.
    pub fn new(measure: Measure) -> NmiCell {
        NmiCell {
            measure: measure.into(),
            locked: AtomicBool::new(false),
            pending: AtomicBool::new(false),
            pending_frame: Cell::default(),
        }
    }

    /// Locks the cell for the kernel.
    ///
    /// # Panics
    /// The kernel has already locked the cell.
    pub fn lock(&self) -> NmiGuard<'_> {
        assert!(!self.locked.load(Ordering::Relaxed), "an entry to the kernel locks the cell once");
        self.mark_locked();
        NmiGuard(self)
    }

    /// Checks on the cell's CPU that overflows raise NMIs, if that is their delivery: an NMI during
    /// the check finds the cell locked, and is replayed after it.
    pub fn check_nmi(&self) {
        self.lock().check_nmi(|| self.pending.load(Ordering::Relaxed));
    }

    /// Handles the overflow interrupt as a fixed interrupt, on the cell's CPU.
    #[inline(always)]
    pub fn overflow(&self, interrupted: &mut InterruptFrame) {
        debug_assert!(!self.locked.load(Ordering::Relaxed));
        // SAFETY: this interrupt comes while interrupts are on: in a program or in the idle loop.
        // The kernel holds guards with interrupts off, and has dropped them by then.
        unsafe { &mut *self.measure.get() }.overflow(interrupted, Delivery::Fixed);
    }

    /// [`Self::overflow`] on a machine with halts.
    #[inline(always)]
    pub fn overflow_or_halt(&self, interrupted: &mut InterruptFrame) {
        debug_assert!(!self.locked.load(Ordering::Relaxed));
        // SAFETY: as in `overflow`.
        unsafe { &mut *self.measure.get() }.overflow_or_halt(interrupted);
    }

    /// Handles the overflow interrupt as an NMI, on the cell's CPU.
    #[inline(always)]
    pub fn overflow_nmi(&self, interrupted: &mut InterruptFrame) {
        if self.locked.load(Ordering::Relaxed) {
            self.pending_frame.set(*interrupted);
            self.pending.store(true, Ordering::Relaxed);
        } else {
            // SAFETY: (1) the kernel holds no guard, and does not run before this returns; (2) no
            // other NMI comes before IRET.
            unsafe { &mut *self.measure.get() }.overflow(interrupted, Delivery::Nmi);
        }
    }

    /// Handles an overflow that came while the cell was locked, and any that come during the
    /// handling.
    #[cold]
    fn replay_pending(&self) {
        while self.pending.swap(false, Ordering::Relaxed) {
            // The overflow came in ring 0: entries from ring 3 restart sequences themselves.
            let mut interrupted = self.pending_frame.get();
            self.mark_locked();
            // SAFETY: the cell is locked, and no guard exists.
            unsafe { &mut *self.measure.get() }.overflow(&mut interrupted, Delivery::Nmi);
            self.unlock();
        }
    }

    fn mark_locked(&self) {
        self.locked.store(true, Ordering::Relaxed);
        // An NMI after the store finds the cell locked.
        compiler_fence(Ordering::SeqCst);
    }

    fn unlock(&self) {
        compiler_fence(Ordering::SeqCst);
        self.locked.store(false, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }
}

impl Deref for NmiGuard<'_> {
    type Target = Measure;

    fn deref(&self) -> &Measure {
        // SAFETY: the cell is locked, so no other reference is made before this guard is dropped.
        unsafe { &*self.0.measure.get() }
    }
}

impl DerefMut for NmiGuard<'_> {
    fn deref_mut(&mut self) -> &mut Measure {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.0.measure.get() }
    }
}

impl Drop for NmiGuard<'_> {
    fn drop(&mut self) {
        self.0.unlock();
        if self.0.pending.load(Ordering::Relaxed) {
            self.0.replay_pending();
        }
    }
}
