//! Unique numbers for sessions and other regions of the truth.

use core::sync::atomic::{AtomicU32, Ordering};

/// The next number. Relaxed order is enough: each number is given once, and their order does not
/// matter.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// Returns a unique number.
pub(super) fn next() -> u32 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}
