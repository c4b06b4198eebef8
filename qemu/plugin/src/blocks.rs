//! The truth by code address: every event in each block of code, inside regions and sessions, by
//! address space and ring. The option `blocks=FILE` enables it.
//!
//! A block's row contains all counts from the end of the block before it to its own end: its
//! instructions, the stalls that they waited for, its fetch, and the misprediction of its own
//! branch. So the rows of a region's ring add up to its counts in the truth file, except that each
//! row can lose a cycle to rounding.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tally_model::{Counts, Privilege};
use tally_vpmu::Profile;

use crate::{files, totals::events};

/// Key of a block: the page number of the address space's top-level table, the ring, the first
/// instruction's address.
pub(crate) type Key = (u64, Privilege, u64);

/// The blocks of one vCPU.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// Every signal at the end of the last block, by ring.
    since: Option<[Counts; 2]>,
    sums: BTreeMap<Key, Box<Counts>>,
}

/// The blocks of vCPUs that have ended.
static ALL: Mutex<BTreeMap<Key, Box<Counts>>> = Mutex::new(BTreeMap::new());

fn all() -> MutexGuard<'static, BTreeMap<Key, Box<Counts>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Blocks {
    /// Ends a block. Its counts are kept if the vCPU is `inside` a region.
    pub(crate) fn end_block(&mut self, key: Key, counts: &[Counts; 2], inside: bool) {
        let ring = key.1 as usize;
        let since = self.since.get_or_insert([Counts::ZERO, Counts::ZERO]);
        if inside {
            let sums = self.sums.entry(key).or_insert_with(|| Box::new(Counts::ZERO));
            sums.add_difference(&since[ring], &counts[ring]);
        }
        since[ring].clone_from(&counts[ring]);
    }

    /// Adds the vCPU's blocks to those of all: it counts no more.
    pub(crate) fn finish(self) {
        let mut all = all();
        for (key, counts) in self.sums {
            let sums = all.entry(key).or_insert_with(|| Box::new(Counts::ZERO));
            sums.add_difference(&Counts::ZERO, &counts);
        }
    }
}

/// Writes the file: a line of names, and one for each block.
pub(crate) fn write(path: &Path, profile: &Profile) -> Result<(), String> {
    let names = ["address_space", "ring", "address"].into_iter();
    let names: Vec<&str> = names.chain(events(profile).map(|event| event.name)).collect();
    let mut text = names.join(",") + "\n";
    for ((space, ring, address), counts) in all().iter() {
        let name = ring.name();
        // Writing to a string does not fail.
        let _ = write!(text, "{},{name},{address}", space << 12);
        let mut rings = [Counts::ZERO, Counts::ZERO];
        rings[*ring as usize].clone_from(counts);
        for event in events(profile) {
            let _ = write!(text, ",{}", event.in_ring(&rings, *ring, &profile.geometry));
        }
        text.push('\n');
    }
    files::write("blocks", path, &text)
}
