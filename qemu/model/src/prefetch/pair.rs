//! The L2's prefetcher of neighbouring lines.
//!
//! Intel's manual: it "strives to complete every cache line fetched to the L2 cache with the pair
//! line that completes it to a 128-byte aligned chunk". AMD's guide: Up/Down "uses memory access
//! history to determine whether to fetch the next or previous line"; here by the direction of the
//! last two requests inside one page.

use super::page::share_page;

#[derive(Clone, Debug)]
pub(super) struct Pairs {
    both_ways: bool,
    last: u64,
    ascends: bool,
}

impl Pairs {
    pub(super) fn new(both_ways: bool) -> Pairs {
        Pairs { both_ways, last: 0, ascends: true }
    }

    /// Handles a request for `line`, which the L2 lacked if `misses`; returns the neighbouring line
    /// to fetch.
    pub(super) fn request(&mut self, line: u64, misses: bool) -> Option<u64> {
        if line != self.last && share_page(line, self.last) {
            self.ascends = line > self.last;
        }
        self.last = line;
        match (misses, self.both_ways) {
            (false, _) => None,
            (true, false) => Some(line ^ 1),
            (true, true) if self.ascends => Some(line + 1),
            (true, true) => line.checked_sub(1),
        }
    }
}
