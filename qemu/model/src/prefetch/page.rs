//! Pages of 4 KiB, which no prefetch leaves.

/// Lines in one.
pub(super) const PAGE_LINES: u64 = 64;

/// Returns whether two lines are in one page.
pub(super) fn share_page(one: u64, other: u64) -> bool {
    one / PAGE_LINES == other / PAGE_LINES
}
