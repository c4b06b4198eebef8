//! One line of a table, as `tally_pmu::catalogue::Entry` reads it.

use std::fmt;

/// The comment that names the columns.
pub(crate) const COLUMNS: &str = "# name\tcode\tumask\tcmask\tinv\tedge\tcounters\tmsr\n";

/// One event.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) code: u16,
    pub(crate) umask: u8,
    pub(crate) cmask: u8,
    pub(crate) inv: bool,
    pub(crate) edge: bool,
    /// A mask in hexadecimal, or `fixedN` for a fixed counter.
    pub(crate) counters: String,
    /// The first extra register that the event needs, 0 if none.
    pub(crate) msr: u32,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { name, code, umask, cmask, inv, edge, counters, msr } = self;
        let (inv, edge) = (u8::from(*inv), u8::from(*edge));
        writeln!(f, "{name}\t{code:x}\t{umask:x}\t{cmask:x}\t{inv}\t{edge}\t{counters}\t{msr:x}")
    }
}
