//! Numbers for sessions and for whatever else the truth is marked with.

use core::sync::atomic::{AtomicU32, Ordering};

/// The next number. Relaxed order is enough: each number is given once, and nothing follows from
/// their order.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A number that nothing else has.
pub(super) fn next() -> u32 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}
