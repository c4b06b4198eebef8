//! The signals of CPI stacks: the components of each architecture of paper 001.

/// Defines the signals that are given, and those of CPI stacks behind them.
macro_rules! with_stacks {
    ($($given:tt)*) => {
        signals! {
            $($given)*
            /// Cycles by paper 001's naive counters: the L1 instruction cache.
            NaiveL1i,
            /// Likewise, the L2 for code.
            NaiveL2i,
            /// Likewise, the instruction TLB.
            NaiveItlb,
            /// Likewise, mispredicted branches.
            NaiveBranch,
            /// Likewise, the L1 data cache.
            NaiveL1d,
            /// Likewise, the L2 for data.
            NaiveL2d,
            /// Likewise, the data TLB.
            NaiveDtlb,
            /// Cycles by its naive counters of completed instructions: the L1 instruction cache.
            NonSpecL1i,
            /// Likewise, the L2 for code.
            NonSpecL2i,
            /// Likewise, the instruction TLB.
            NonSpecItlb,
            /// Likewise, mispredicted branches.
            NonSpecBranch,
            /// Likewise, the L1 data cache.
            NonSpecL1d,
            /// Likewise, the L2 for data.
            NonSpecL2d,
            /// Likewise, the data TLB.
            NonSpecDtlb,
            /// Cycles by POWER5's counters: the L1 instruction cache.
            Power5L1i,
            /// Likewise, the L2 for code.
            Power5L2i,
            /// Likewise, the instruction TLB.
            Power5Itlb,
            /// Likewise, mispredicted branches.
            Power5Branch,
            /// Likewise, the L1 data cache.
            Power5L1d,
            /// Likewise, the L2 for data.
            Power5L2d,
            /// Likewise, the data TLB.
            Power5Dtlb,
            /// Likewise, long operations of units.
            Power5Units,
            /// Cycles by its frontend miss event table: the L1 instruction cache.
            FmtL1i,
            /// Likewise, the L2 for code.
            FmtL2i,
            /// Likewise, the instruction TLB.
            FmtItlb,
            /// Likewise, mispredicted branches.
            FmtBranch,
            /// Likewise, the L1 data cache.
            FmtL1d,
            /// Likewise, the L2 for data.
            FmtL2d,
            /// Likewise, the data TLB.
            FmtDtlb,
            /// Likewise, long operations of units.
            FmtUnits,
            /// Of these the cycles before the resolution of a branch that was mispredicted.
            FmtBranchUnits,
            /// Cycles by its simplified table: the L1 instruction cache.
            SfmtL1i,
            /// Likewise, the L2 for code.
            SfmtL2i,
            /// Likewise, the instruction TLB.
            SfmtItlb,
        }
    };
}
