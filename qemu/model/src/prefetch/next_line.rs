//! The L1's prefetcher of next lines.
//!
//! Intel's manual: "triggered by an ascending access to very recently loaded data", it fetches the
//! next line. Here that is a load at a higher address than one of the last few, in the same line or
//! in the next. AMD's L1 Stream has descending sequences too.

/// Number of loads that count as recent. The manual has no number.
const RECENT: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct NextLine {
    both_ways: bool,
    /// Physical addresses of recent loads.
    recent: [u64; RECENT],
    oldest: usize,
}

impl NextLine {
    pub(super) fn new(both_ways: bool) -> NextLine {
        NextLine { both_ways, recent: [u64::MAX; RECENT], oldest: 0 }
    }

    /// Handles a load from `address`; returns the line to fetch.
    pub(super) fn load(&mut self, address: u64) -> Option<u64> {
        let line = address >> 6;
        let is_near = |before: &&mut u64| (**before >> 6).abs_diff(line) <= 1;
        let Some(before) = self.recent.iter_mut().find(is_near) else {
            self.recent[self.oldest] = address;
            self.oldest = (self.oldest + 1) % RECENT;
            return None;
        };
        let before = std::mem::replace(before, address);
        if address > before {
            Some(line + 1)
        } else if address < before && self.both_ways {
            line.checked_sub(1)
        } else {
            None
        }
    }
}
