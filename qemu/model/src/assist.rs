//! One table that assists one structure: what a value predictor is to Gao and Sair, "Long-term
//! performance bottleneck analysis and prediction" (paper 004), section VIII. The model has no
//! values, so the table has other uses than theirs, of the same number of entries.

/// Entries of the table: the paper's 16K.
pub(crate) const ENTRIES: usize = 1 << 14;

/// The structure that the table assists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assist {
    /// The L1 data cache: strides of load instructions, whose next lines are prefetched.
    Data,
    /// The L1 instruction cache: the next line is prefetched at each new line of code. It needs no
    /// table.
    Code,
    /// Directions of conditional branches: counters by the last outcomes of the same branch, used
    /// where they were right and the predictor wrong before.
    Branch,
}

impl Assist {
    /// All.
    pub const ALL: [Assist; 3] = [Assist::Data, Assist::Code, Assist::Branch];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Assist::Data => "data",
            Assist::Code => "code",
            Assist::Branch => "branch",
        }
    }
}
