//! The virtual PMU's truth by code address: the file of `--vpmu blocks=FILE`.

use std::{collections::BTreeMap, path::Path};

use tally_abi::{ExitStatus, trace::SampleRecord};
use tally_breakdown::Stack;

use crate::{Failure, Result, project};

/// The counts of blocks of code in ring 3 and below it.
#[derive(Debug)]
pub(crate) struct CodeTruth {
    events: Vec<String>,
    blocks: Vec<Block>,
}

/// A block of code.
#[derive(Debug)]
struct Block {
    address_space: u64,
    user: bool,
    address: u64,
    counts: Vec<u64>,
}

impl CodeTruth {
    /// Reads the file.
    ///
    /// # Errors
    /// The file cannot be read, or is no such file.
    pub(crate) fn read(path: &Path) -> Result<CodeTruth> {
        let bytes = project::read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        CodeTruth::parse(&text).ok_or_else(|| {
            let why = format!("{} is no file of --vpmu blocks=FILE", path.display());
            Failure::new(ExitStatus::BadTrace, why)
        })
    }

    /// Reads the text of such a file.
    pub(crate) fn parse(text: &str) -> Option<CodeTruth> {
        let mut lines = text.lines();
        let events = lines.next()?.strip_prefix("address_space,ring,address,")?;
        let events: Vec<String> = events.split(',').map(str::to_owned).collect();
        let block = |line: &str| {
            let mut words = line.split(',');
            let address_space = words.next()?.parse().ok()?;
            let user = words.next()? == "user";
            let address = words.next()?.parse().ok()?;
            let counts = words.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
            let is_whole = counts.len() == events.len();
            is_whole.then_some(Block { address_space, user, address, counts })
        };
        let blocks = lines.map(block).collect::<Option<_>>()?;
        Some(CodeTruth { events, blocks })
    }

    /// The counts of the stack's events in each piece of code in ring 3, for the program that
    /// contains the sample `of`.
    pub(super) fn by_code(
        &self,
        stack: &'static Stack,
        of: &SampleRecord,
        key: &dyn Fn(&SampleRecord) -> String,
    ) -> BTreeMap<String, BTreeMap<&'static str, f64>> {
        let place = |name| self.events.iter().position(|event| event == name);
        let places: Vec<(&'static str, Option<usize>)> =
            stack.of_cycles().into_iter().map(|name| (name, place(name))).collect();
        let mut found: BTreeMap<String, BTreeMap<&'static str, f64>> = BTreeMap::new();
        let own = |block: &&Block| block.user && block.address_space == of.address_space;
        for block in self.blocks.iter().filter(own) {
            let at = SampleRecord { address: block.address, user: true, ..*of };
            let code = found.entry(key(&at)).or_default();
            for (name, place) in &places {
                let count = place.map_or(0, |place| block.counts[place]);
                *code.entry(name).or_default() += count as f64;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_blocks_and_other_files_are_refused() {
        let text = "address_space,ring,address,A,B\n4096,user,4198400,7,8\n0,kernel,9,1,2\n";
        let truth = CodeTruth::parse(text).unwrap();
        assert_eq!((truth.events.len(), truth.blocks.len()), (2, 2));
        let Block { address_space, user, address, counts } = &truth.blocks[0];
        assert_eq!(
            (*address_space, *user, *address, &counts[..]),
            (4096, true, 0x401000, &[7, 8][..])
        );
        for bad in ["", "interval,vcpu\n", "address_space,ring,address,A\n1,user,2\n"] {
            assert!(CodeTruth::parse(bad).is_none(), "{bad}");
        }
    }
}
