//! A CPU's [`Measure`], which two use: the kernel, and the overflow interrupt in the middle of it.
//!
//! As a fixed interrupt the overflow waits until the kernel returns to a program. As an NMI it does
//! not: code with interrupts off is seen too. When it finds the kernel holding the CPU's `Measure` it
//! only notes that it came, and is dealt with when the kernel lets go: a counter's owner is never half
//! way between two states when an overflow looks at it.

use core::{
    cell::{Cell, UnsafeCell},
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicBool, Ordering, compiler_fence},
};

use tally_abi::boot::Delivery;

use super::Measure;
use crate::cpu::entry::Interrupted;

/// A CPU's [`Measure`], and who is at it.
pub struct Own {
    measure: UnsafeCell<Measure>,
    /// Whether the kernel is.
    held: AtomicBool,
    /// Whether an overflow came meanwhile. Intel's interrupt controllers let no other through until it has
    /// been dealt with; of AMD's, which do, the last counts.
    missed: AtomicBool,
    /// Where it came.
    missed_at: Cell<Interrupted>,
}

/// The kernel is at a CPU's [`Measure`].
pub struct Held<'a>(&'a Own);

impl Own {
    /// One that nobody is at.
    pub fn new(measure: Measure) -> Own {
        Own {
            measure: measure.into(),
            held: AtomicBool::new(false),
            missed: AtomicBool::new(false),
            missed_at: Cell::default(),
        }
    }

    /// For the kernel, as long as what it gets lives.
    pub fn hold(&self) -> Held<'_> {
        assert!(!self.held.load(Ordering::Relaxed), "an entry to the kernel holds it once");
        self.take();
        Held(self)
    }

    /// The overflow interrupt, on the CPU whose own this is.
    #[inline(always)]
    pub fn overflow(&self, interrupted: &Interrupted) {
        debug_assert!(!self.held.load(Ordering::Relaxed));
        // SAFETY: this interrupt comes while interrupts are on: with a program running, or in the idle
        // loop. The kernel holds the state with interrupts off, and is done with it by then.
        unsafe { &mut *self.measure.get() }.overflow(interrupted, Delivery::Fixed);
    }

    /// The overflow interrupt as an NMI, on the CPU whose own this is.
    #[inline(always)]
    pub fn overflow_nmi(&self, interrupted: &Interrupted) {
        if self.held.load(Ordering::Relaxed) {
            self.missed_at.set(*interrupted);
            self.missed.store(true, Ordering::Relaxed);
        } else {
            // SAFETY: the kernel does not hold it, and does not go on before this returns; no other NMI
            // comes before IRET.
            unsafe { &mut *self.measure.get() }.overflow(interrupted, Delivery::Nmi);
        }
    }

    /// Deals with an overflow that came while the kernel held it, and with the next.
    #[cold]
    fn catch_up(&self) {
        while self.missed.swap(false, Ordering::Relaxed) {
            let at = self.missed_at.get();
            self.take();
            // SAFETY: it is held, here and nowhere else.
            unsafe { &mut *self.measure.get() }.overflow(&at, Delivery::Nmi);
            self.let_go();
        }
    }

    fn take(&self) {
        self.held.store(true, Ordering::Relaxed);
        // An interrupt that comes from here on finds it held.
        compiler_fence(Ordering::SeqCst);
    }

    fn let_go(&self) {
        compiler_fence(Ordering::SeqCst);
        self.held.store(false, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }
}

impl Deref for Held<'_> {
    type Target = Measure;

    fn deref(&self) -> &Measure {
        // SAFETY: it is held, so no other reference is made before this guard is dropped.
        unsafe { &*self.0.measure.get() }
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Measure {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.0.measure.get() }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.let_go();
        if self.0.missed.load(Ordering::Relaxed) {
            self.0.catch_up();
        }
    }
}
