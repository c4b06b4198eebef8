//! Transports, which send pages of trace records to the host.

pub(super) use crate::machine::port::PAGE_WORDS;
use crate::machine::port::Page;

/// A page of trace records.
pub(super) type RecordPage = Page;
/// Description of a page's contents.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) bytes: usize,
    /// The CPU whose records the page holds.
    pub(super) cpu: u16,
    pub(super) records: u64,
}

/// A transport of pages to the host.
pub(super) trait Transport: Send {
    /// Returns a page to fill; `None` if there is no room.
    fn page(&mut self) -> Option<&mut RecordPage>;

    /// Returns a page for the end of the trace: waits for room, or uses the reserve.
    fn last_page(&mut self) -> Option<&mut RecordPage>;

    /// Sends the page that [`Self::page`] or [`Self::last_page`] returned last.
    fn send(&mut self, load: Load);

    /// Waits until there is room, as long as the host reads. Returns whether there is room.
    fn wait_for_page(&mut self) -> bool;

    /// Waits until the host has all pages, as long as it reads. Returns whether it has them all.
    fn wait_for_all(&mut self) -> bool;

    /// Number of a CPU's sent records that the host does not have yet.
    fn in_flight(&self, cpu: u16) -> u64;

    /// Ends the trace: nothing is sent afterwards.
    fn finish(&mut self);
}
