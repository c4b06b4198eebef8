//! The CPUs that run: numbers from 0 up, the first CPU's being 0.

use core::sync::atomic::{AtomicU32, Ordering};

/// The number of CPUs that run. [`add`]'s release order pairs with [`count`]'s acquire: a CPU that
/// counts the new one sees what that one has set up.
static ONLINE: AtomicU32 = AtomicU32::new(1);

/// Adds the CPU that runs this.
pub fn add() {
    ONLINE.fetch_add(1, Ordering::Release);
}

/// The number of CPUs that run.
pub fn count() -> u32 {
    ONLINE.load(Ordering::Acquire)
}

/// The CPUs that run, a bit for each.
pub fn mask() -> u64 {
    u64::MAX >> (u64::BITS - count())
}
