//! A line of a table, in the format read by `tally_pmu::catalogue::Entry`.

use std::fmt;

/// Comment that names the columns.
pub(crate) const COLUMNS: &str =
    "# name\tcode\tumask\tcmask\tinv\tedge\tcounters\tflag\tmsr\tvalue\n";

/// Line of an event.
pub(crate) struct Line {
    pub(crate) name: String,
    /// Event code, or two separated by a comma, one per extra register.
    pub(crate) code: String,
    pub(crate) umask: u8,
    pub(crate) cmask: u8,
    pub(crate) inv: bool,
    pub(crate) edge: bool,
    /// Mask in hexadecimal, or `fixedN` for a fixed counter.
    pub(crate) counters: String,
    /// `a` if the event must be counted alone, `t` if it also counts the sibling thread, else `-`.
    pub(crate) flag: char,
    /// Extra registers, separated by a comma, of which the event needs one; 0 if none.
    pub(crate) msr: String,
    /// Value of the extra register.
    pub(crate) value: u64,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { name, code, umask, cmask, inv, edge, counters, flag, msr, value } = self;
        let (inv, edge) = (u8::from(*inv), u8::from(*edge));
        writeln!(
            f,
            "{name}\t{code}\t{umask:x}\t{cmask:x}\t{inv}\t{edge}\t{counters}\t{flag}\t{msr}\t{value:x}"
        )
    }
}
