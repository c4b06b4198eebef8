//! The names of regions.

use tally_abi::truth::RegionKind;

/// A region's name: its kind and the tag that the guest chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) kind: RegionKind,
    pub(crate) number: u32,
}
