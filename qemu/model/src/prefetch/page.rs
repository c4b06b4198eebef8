//! Pages of 4 KiB. A prefetch never leaves the page of its access.

/// Lines in a page.
pub(super) const PAGE_LINES: u64 = 64;

/// Returns whether two lines are in one page.
pub(super) fn share_page(one: u64, other: u64) -> bool {
    one / PAGE_LINES == other / PAGE_LINES
}
