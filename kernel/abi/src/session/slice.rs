//! The length of a time slice.

use core::fmt;

use serde::{Deserialize, Serialize};

/// The unit of slices that the engine chooses, in cycles: its multiples are the lengths.
pub const AUTO_UNIT: u64 = 5_000;

/// The length of a time slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slice {
    /// In core cycles at the session's privilege.
    Cycles(u64),
    /// In instructions retired at the session's privilege (paper 000, section 3).
    Instructions(u64),
    /// The shortest length that keeps the budget, in core cycles at the session's privilege: a
    /// multiple of [`AUTO_UNIT`] that the engine finds while it counts.
    #[default]
    Auto,
}

impl Slice {
    /// The number of cycles or instructions; the unit for [`Slice::Auto`].
    pub fn length(self) -> u64 {
        match self {
            Slice::Cycles(n) | Slice::Instructions(n) => n,
            Slice::Auto => AUTO_UNIT,
        }
    }

    /// Parses an option's value: a number of cycles, a number of instructions with an `i` behind
    /// it, or `auto`.
    pub fn parse(word: &str) -> Option<Slice> {
        match word.strip_suffix('i') {
            Some(number) => number.parse().ok().map(Slice::Instructions),
            None if word == "auto" => Some(Slice::Auto),
            None => word.parse().ok().map(Slice::Cycles),
        }
    }
}

/// Formats as an option's value.
impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slice::Cycles(n) => write!(f, "{n}"),
            Slice::Instructions(n) => write!(f, "{n}i"),
            Slice::Auto => f.write_str("auto"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn slices_are_parsed_as_they_are_printed() {
        for slice in [Slice::Cycles(9_000), Slice::Instructions(50_000), Slice::Auto] {
            assert_eq!(Slice::parse(&std::format!("{slice}")), Some(slice));
        }
        for wrong in ["", "i", "9k", "-5", "50000 i", "50000I"] {
            assert_eq!(Slice::parse(wrong), None, "{wrong}");
        }
    }
}
