//! The results of the checks.

use core::fmt::{self, Display, Write};

use crate::machine::Serial;

/// The results up to now.
#[derive(Default)]
pub struct CheckReport {
    held: u32,
    failed: u32,
}

impl CheckReport {
    /// Checks that `got` equals `want`.
    pub fn equal(&mut self, what: impl Display, got: u64, want: u64) {
        let held = got == want;
        self.line(held, what, format_args!("{got:#x} ({got}), want {want:#x} ({want})"));
    }

    /// Checks that `got` is in the range.
    pub fn within(&mut self, what: impl Display, got: u64, low: u64, high: u64) {
        let held = (low..=high).contains(&got);
        self.line(held, what, format_args!("{got}, want {low} to {high}"));
    }

    fn line(&mut self, held: bool, what: impl Display, detail: fmt::Arguments<'_>) {
        // The serial port cannot fail.
        let _ = if held {
            writeln!(Serial, "ok   {what}")
        } else {
            writeln!(Serial, "FAIL {what}: {detail}")
        };
        self.held += u32::from(held);
        self.failed += u32::from(!held);
    }

    /// Returns whether every check held.
    pub fn all_held(&self) -> bool {
        self.failed == 0
    }
}

impl Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} checks, {} failed", self.held + self.failed, self.failed)
    }
}
