//! The trace's records of a sample's branches.

use serde::{Deserialize, Serialize};

use crate::{
    Malformed,
    branches::{BRANCH_WORDS, Branch},
    record::{Field, FieldType, Form, RecordType, place, record},
};

/// Words of branches in a record: few, so that records fit the pages of the ring.
pub const BRANCH_RECORD_WORDS: usize = 8 * BRANCH_WORDS;

record! {
    /// A part of the branches that were taken last before a sample, the last one first. Parts
    /// follow one another, and the sample.
    BranchesRecord = 15 "branches", stamp tsc "TSC when the part was written.",
    list words[BRANCH_RECORD_WORDS] of valid
        "Three words for each branch: its address, its target, and information. Bit 0: mispredicted; \
         bit 1: predicted rightly; bits 19:4: core cycles since the branch before it; bits 23:20: its \
         type by perf's number. 0 is not known." {
        /// The session.
        session: u32,
        /// The CPU.
        cpu: u16,
        /// Branches of the sample that are in parts before this one.
        first: u8,
        /// The time stamp of the sample.
        sample_tsc: u64,
    }
}

impl BranchesRecord {
    /// The branches of the part.
    pub fn branches(&self) -> impl Iterator<Item = Branch> + '_ {
        let words = &self.words[..usize::from(self.valid).min(BRANCH_RECORD_WORDS)];
        words.chunks_exact(BRANCH_WORDS).map(|words| Branch {
            from: words[0],
            to: words[1],
            info: words[2],
        })
    }
}
