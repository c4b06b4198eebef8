//! The branches of samples, assembled from their records.

use std::collections::BTreeMap;

use tally_abi::{branches::Branch, trace::SampleRecord};

use crate::trace_file::Records;

/// The branches before samples, the last one first, by CPU and time stamp of the sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SampledBranches(BTreeMap<(u16, u64), Vec<Branch>>);

impl SampledBranches {
    /// Puts the parts together. Those behind a part that was lost are dropped.
    pub(crate) fn of(records: &Records) -> SampledBranches {
        let mut all: BTreeMap<_, Vec<Branch>> = BTreeMap::new();
        for part in &records.branches {
            let of_sample = all.entry((part.cpu, part.sample_tsc)).or_default();
            if of_sample.len() == usize::from(part.first) {
                of_sample.extend(part.branches());
            }
        }
        SampledBranches(all)
    }

    /// The branches before a sample, the last one first; none if its calls were recorded.
    pub(crate) fn of_sample(&self, sample: &SampleRecord) -> &[Branch] {
        let all = self.recorded(sample);
        if all.first().is_some_and(Branch::is_open) { &[] } else { all }
    }

    /// The calls that had not returned at a sample, the innermost one first, if they were recorded.
    pub(crate) fn calls_of_sample(&self, sample: &SampleRecord) -> &[Branch] {
        let all = self.recorded(sample);
        if all.first().is_some_and(Branch::is_open) { all } else { &[] }
    }

    /// Returns whether calls were recorded.
    pub(crate) fn has_calls(&self) -> bool {
        self.0.values().flatten().any(Branch::is_open)
    }

    fn recorded(&self, sample: &SampleRecord) -> &[Branch] {
        self.0.get(&(sample.cpu, sample.tsc)).map_or(&[], Vec::as_slice)
    }

    /// Returns whether branches other than calls that have not returned were recorded.
    pub(crate) fn has_branches(&self) -> bool {
        self.0.values().flatten().any(|branch| !branch.is_open())
    }
}

#[cfg(test)]
mod tests {
    use tally_abi::trace::{BRANCH_RECORD_WORDS, BranchesRecord};

    use super::*;

    fn part(first: u8, branches: &[u64]) -> BranchesRecord {
        let mut words = [0; BRANCH_RECORD_WORDS];
        let all = branches.iter().flat_map(|from| [*from, from + 1, 2]);
        words.iter_mut().zip(all).for_each(|(word, value)| *word = value);
        let valid = 3 * branches.len() as u8;
        BranchesRecord { tsc: 9, session: 1, cpu: 2, first, sample_tsc: 9, valid, words }
    }

    #[test]
    fn branches_end_where_a_part_was_lost() {
        let branches = vec![part(0, &[5, 6]), part(2, &[7]), part(4, &[8])];
        let all = SampledBranches::of(&Records { branches, ..Records::default() });
        let froms: Vec<u64> = all.0.values().flatten().map(|branch| branch.from).collect();
        assert_eq!(froms, [5, 6, 7]);
        assert!(all.has_branches() && !all.has_calls());
    }
}
