//! What the test guests share: checks that name what differed, and the statuses that they end with.

#![no_std]

extern crate alloc;

pub mod random;
pub mod threads;

use core::fmt::Debug;

use tally::sys;

/// The status of a guest whose checks all held.
pub const PASSED: i32 = 0;
/// The status of a guest with a check that failed.
pub const FAILED: i32 = 1;

/// What the program writes to its outputs from here on goes nowhere.
pub fn hush() {
    let null = c"/dev/null".as_ptr() as u64;
    // SAFETY: the path is a string; the calls touch no memory.
    unsafe {
        let null = sys::call(sys::OPEN, [null, 2, 0, 0, 0, 0]) as u64;
        sys::call(sys::DUP2, [null, 1, 0, 0, 0, 0]);
        sys::call(sys::DUP2, [null, 2, 0, 0, 0, 0]);
    }
}

/// Counts failed checks.
#[derive(Debug, Default)]
pub struct Checks {
    failed: u32,
}

impl Checks {
    /// Checks that `found` is as expected.
    pub fn equal<T: PartialEq + Debug>(&mut self, what: &str, found: T, expected: T) {
        if found != expected {
            tally::println!("FAILED {what}: found {found:?}, expected {expected:?}");
            self.failed += 1;
        }
    }

    /// The guest's status.
    pub fn status(&self) -> i32 {
        if self.failed == 0 { PASSED } else { FAILED }
    }
}
