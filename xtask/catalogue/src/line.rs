//! One line of a table, as `tally_pmu::catalogue::Entry` reads it.

use std::fmt;

/// The comment that names the columns.
pub(crate) const COLUMNS: &str =
    "# name\tcode\tumask\tcmask\tinv\tedge\tcounters\tflag\tmsr\tvalue\n";

/// One event.
pub(crate) struct Line {
    pub(crate) name: String,
    /// A code, or two, with a comma: one for each of two extra registers.
    pub(crate) code: String,
    pub(crate) umask: u8,
    pub(crate) cmask: u8,
    pub(crate) inv: bool,
    pub(crate) edge: bool,
    /// A mask in hexadecimal, or `fixedN` for a fixed counter.
    pub(crate) counters: String,
    /// `a` if the event is counted alone, `t` if it counts the other thread's too, else `-`.
    pub(crate) flag: char,
    /// The extra registers of which the event needs one, with a comma; 0 if none.
    pub(crate) msr: String,
    /// What it needs in there.
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
