//! What the test guests share: checks that name what differed, and the statuses that they end with.

#![no_std]

extern crate alloc;

use core::fmt::Debug;

/// The status of a guest whose checks all held.
pub const PASSED: i32 = 0;
/// The status of a guest with a check that failed.
pub const FAILED: i32 = 1;

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
