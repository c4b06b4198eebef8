//! Code shared by the test guests: checks with names, the statuses of a guest, and a loop of known
//! content.

#![no_std]

extern crate alloc;

pub mod random;
pub mod threads;

use core::{arch::asm, fmt::Debug};

use tally::{Session, Value, sys};

/// Status of a guest whose checks all passed.
pub const PASSED: i32 = 0;
/// Status of a guest with a failed check.
pub const FAILED: i32 = 1;

/// Instructions of an iteration of [`spin`].
pub const PER_ITERATION: u64 = 2;

/// Executes a loop of [`PER_ITERATION`] instructions, one of them a branch.
#[inline(always)]
pub fn spin(iterations: u64) {
    // SAFETY: the code changes only one register.
    unsafe {
        asm!("2:", "sub {0}, 1", "jnz 2b", inout(reg) iterations => _, options(nostack, nomem));
    }
}

/// Exact count of a session's first event, which is pinned; `None` before the session has run.
pub fn instructions(session: &Session) -> Option<u64> {
    match session.read().expect("the session is open")[0].value {
        Value::Exact { count } => Some(count),
        Value::NotMeasured { .. } => None,
        ref other => panic!("instructions are not exact: {other:?}"),
    }
}

/// Yields the rest of the program's turn.
pub fn yield_turn() {
    // SAFETY: the call touches no memory.
    unsafe { sys::call(sys::SCHED_YIELD, [0; 6]) };
}

/// Redirects descriptors 1 and 2 to /dev/null.
pub fn discard_output() {
    let null = c"/dev/null".as_ptr() as u64;
    // SAFETY: the path is a string that ends with a 0; the other calls touch no memory.
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
    /// Checks that `found` is as expected; otherwise prints a line that begins with `FAILED`.
    pub fn equal<T: PartialEq + Debug>(&mut self, what: &str, found: T, expected: T) {
        if found != expected {
            tally::println!("FAILED {what}: found {found:?}, expected {expected:?}");
            self.failed += 1;
        }
    }

    /// Exit status of the guest.
    pub fn status(&self) -> i32 {
        if self.failed == 0 { PASSED } else { FAILED }
    }
}
