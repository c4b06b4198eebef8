//! The online CPUs: numbers from 0 up; the first CPU has number 0.

use core::sync::atomic::{AtomicU32, Ordering};

use tally_abi::CpuSet;

/// Number of online CPUs. [`add`]'s release order pairs with [`count`]'s acquire: a CPU that counts
/// the new one sees its set-up.
static ONLINE: AtomicU32 = AtomicU32::new(1);

/// Adds the executing CPU.
pub fn add() {
    ONLINE.fetch_add(1, Ordering::Release);
}

/// Number of online CPUs.
pub fn count() -> u32 {
    ONLINE.load(Ordering::Acquire)
}

/// The online CPUs.
pub fn set() -> CpuSet {
    CpuSet::first(count() as usize)
}
