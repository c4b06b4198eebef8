//! Allocator of the test: it counts the bytes in use and the memory requests, and ends the process
//! with the number of the case when it exceeds its limits.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::Write,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

/// Counting allocator. All accesses are relaxed: one thread reads files, and the others request
/// little.
struct Counted;

#[global_allocator]
static HEAP: Counted = Counted;

/// Bytes in use.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Limits of a case, in bytes and in requests.
static MOST_USED: AtomicUsize = AtomicUsize::new(usize::MAX);
static MOST_REQUESTS: AtomicU64 = AtomicU64::new(u64::MAX);
/// Requests of the case so far.
static REQUESTS: AtomicU64 = AtomicU64::new(0);
/// Number of the case.
static CASE: AtomicU64 = AtomicU64::new(0);

/// Begins a case, which may have this many more bytes in use, and make this many requests.
pub fn begin(case: u64, bytes: usize, requests: u64) {
    MOST_USED.store(USED.load(Relaxed) + bytes, Relaxed);
    REQUESTS.store(0, Relaxed);
    MOST_REQUESTS.store(requests, Relaxed);
    CASE.store(case, Relaxed);
}

/// Ends the limits. Returns the requests of the case.
pub fn end() -> u64 {
    MOST_USED.store(usize::MAX, Relaxed);
    MOST_REQUESTS.store(u64::MAX, Relaxed);
    REQUESTS.load(Relaxed)
}

fn count(bytes: usize) {
    let used = USED.fetch_add(bytes, Relaxed).saturating_add(bytes);
    let requests = REQUESTS.fetch_add(1, Relaxed) + 1;
    if used > MOST_USED.load(Relaxed) || requests > MOST_REQUESTS.load(Relaxed) {
        // Messages allocate, so the limits end first.
        end();
        let case = CASE.load(Relaxed);
        let _ = writeln!(
            std::io::stderr(),
            "case {case}: {bytes} more bytes, {used} in use, after {requests} requests: too many"
        );
        // An allocator must not panic.
        std::process::abort();
    }
}

// SAFETY: all calls go to the system's allocator; only counters are changed in addition.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's guarantees are those that the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes);
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { System.realloc(at, layout, bytes) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(at, layout) }
    }
}
