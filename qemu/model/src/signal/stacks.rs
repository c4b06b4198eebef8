//! The signals of CPI stacks: the components of each architecture of paper 001.

/// Defines the given signals, and after them those of CPI stacks.
macro_rules! with_stacks {
    ($($given:tt)*) => {
        signals! {
            $($given)*
            /// Cycles by paper 001's naive counters: the L1 instruction cache.
            NaiveL1i,
            /// Cycles by the naive counters: the L2 for code.
            NaiveL2i,
            /// Cycles by the naive counters: the instruction TLB.
            NaiveItlb,
            /// Cycles by the naive counters: mispredicted branches.
            NaiveBranch,
            /// Cycles by the naive counters: the L1 data cache.
            NaiveL1d,
            /// Cycles by the naive counters: the L2 for data.
            NaiveL2d,
            /// Cycles by the naive counters: the data TLB.
            NaiveDtlb,
            /// Cycles by paper 001's naive counters of completed instructions: the L1 instruction
            /// cache.
            NonSpecL1i,
            /// Cycles by the naive counters of completed instructions: the L2 for code.
            NonSpecL2i,
            /// Cycles by the naive counters of completed instructions: the instruction TLB.
            NonSpecItlb,
            /// Cycles by the naive counters of completed instructions: mispredicted branches.
            NonSpecBranch,
            /// Cycles by the naive counters of completed instructions: the L1 data cache.
            NonSpecL1d,
            /// Cycles by the naive counters of completed instructions: the L2 for data.
            NonSpecL2d,
            /// Cycles by the naive counters of completed instructions: the data TLB.
            NonSpecDtlb,
            /// Cycles by POWER5's counters: the L1 instruction cache.
            Power5L1i,
            /// Cycles by POWER5's counters: the L2 for code.
            Power5L2i,
            /// Cycles by POWER5's counters: the instruction TLB.
            Power5Itlb,
            /// Cycles by POWER5's counters: mispredicted branches.
            Power5Branch,
            /// Cycles by POWER5's counters: the L1 data cache.
            Power5L1d,
            /// Cycles by POWER5's counters: the L2 for data.
            Power5L2d,
            /// Cycles by POWER5's counters: the data TLB.
            Power5Dtlb,
            /// Cycles by POWER5's counters: long operations of units.
            Power5Units,
            /// Cycles by paper 001's frontend miss event table: the L1 instruction cache.
            FmtL1i,
            /// Cycles by the frontend miss event table: the L2 for code.
            FmtL2i,
            /// Cycles by the frontend miss event table: the instruction TLB.
            FmtItlb,
            /// Cycles by the frontend miss event table: mispredicted branches.
            FmtBranch,
            /// Cycles by the frontend miss event table: the L1 data cache.
            FmtL1d,
            /// Cycles by the frontend miss event table: the L2 for data.
            FmtL2d,
            /// Cycles by the frontend miss event table: the data TLB.
            FmtDtlb,
            /// Cycles by the frontend miss event table: long operations of units.
            FmtUnits,
            /// Cycles of `FmtUnits` before the resolution of a branch that was mispredicted.
            FmtBranchUnits,
            /// Cycles by paper 001's simplified table: the L1 instruction cache.
            SfmtL1i,
            /// Cycles by the simplified table: the L2 for code.
            SfmtL2i,
            /// Cycles by the simplified table: the instruction TLB.
            SfmtItlb,
        }
    };
}
