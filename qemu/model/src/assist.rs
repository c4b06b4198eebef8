//! The assist: a table that assists one structure, in the role that a value predictor has in Gao
//! and Sair, "Long-term performance bottleneck analysis and prediction" (paper 004), section VIII.
//! The model has no values to predict, so the table, of the paper's number of entries, serves other
//! structures.

/// Entries of the table: the paper's 16K.
pub(crate) const ENTRIES: usize = 1 << 14;

/// The structure that the table assists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assist {
    /// The L1 data cache: strides of load instructions, whose next lines are prefetched.
    Data,
    /// The L1 instruction cache: the next line is prefetched when fetch enters a line. No table is
    /// needed.
    Code,
    /// Directions of conditional branches: counters selected by the last outcomes of the same
    /// branch, used where they were right and the predictor was wrong before.
    Branch,
}

impl Assist {
    /// All assists.
    pub const ALL: [Assist; 3] = [Assist::Data, Assist::Code, Assist::Branch];

    /// The assist's name in the options.
    pub const fn name(self) -> &'static str {
        match self {
            Assist::Data => "data",
            Assist::Code => "code",
            Assist::Branch => "branch",
        }
    }
}
