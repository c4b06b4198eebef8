//! What the test guests share: checks that name what differed, the statuses that they end with, and a loop
//! of known content.

#![no_std]

extern crate alloc;

pub mod random;
pub mod threads;

use core::{arch::asm, fmt::Debug};

use tally::{Session, Value, sys};

/// The status of a guest whose checks all held.
pub const PASSED: i32 = 0;
/// The status of a guest with a check that failed.
pub const FAILED: i32 = 1;

/// Instructions of a turn of [`spin`].
pub const PER_TURN: u64 = 2;

/// A loop of [`PER_TURN`] instructions, one of them a branch.
#[inline(always)]
pub fn spin(turns: u64) {
    // SAFETY: works on one register.
    unsafe {
        asm!("2:", "sub {0}, 1", "jnz 2b", inout(reg) turns => _, options(nostack, nomem));
    }
}

/// What a session counted of its first event, which is always counted: none before there was anything.
pub fn instructions(session: &Session) -> Option<u64> {
    match session.read().expect("the session is there")[0].value {
        Value::Exact { count } => Some(count),
        Value::NotMeasured { .. } => None,
        ref other => panic!("instructions are always counted: {other:?}"),
    }
}

/// Gives the rest of the turn away.
pub fn yield_turn() {
    // SAFETY: the call touches no memory.
    unsafe { sys::call(sys::SCHED_YIELD, [0; 6]) };
}

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
