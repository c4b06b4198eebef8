//! Pages sent to the host through a virtio port.
//!
//! The device owns a sent page until it returns it. If the host stops reading, no page returns. The
//! kernel waits for pages only on request, and only as long as some return.

use x86_64::structures::paging::PhysFrame;

use super::virtio::{PortNumber, QUEUE, VirtioPort};
use crate::memory::frames::{self, FRAME_BYTES, User, kernel_view};

/// Number of polls without a returned page after which the host is considered gone: a fraction of a
/// second.
const MAX_POLLS: u32 = 4_000_000;
/// Words of a page.
pub const PAGE_WORDS: usize = 512;
/// A page.
pub type Page = [u64; PAGE_WORDS];

/// Copies bytes to the start of a page, as many as fit.
pub fn fill(page: &mut Page, bytes: &[u8]) {
    for (word, bytes) in page.iter_mut().zip(bytes.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
}

/// A port, and a page for each of its buffers. Each sent page has a label chosen by the sender.
pub struct PagePort<L> {
    port: VirtioPort,
    pages: [Sent<L>; QUEUE],
    /// Index of the page that is being filled.
    filling: usize,
    /// Polls left; 0 when the host is considered gone.
    polls_left: u32,
}

/// A page; the device owns it while it has a token.
#[derive(Clone, Copy)]
struct Sent<L> {
    frame: PhysFrame,
    bytes: usize,
    label: L,
    /// The device's token for the page.
    token: Option<u16>,
}

impl<L> Sent<L> {
    fn bytes(&self) -> &'static [u8] {
        let start = kernel_view(self.frame.start_address()).as_ptr::<u8>();
        // SAFETY: the frame is never freed, and as long as a page; `PagePort::page` lends it
        // for writing only while the device does not own it.
        unsafe { core::slice::from_raw_parts(start, self.bytes.min(FRAME_BYTES as usize)) }
    }
}

impl<L: Copy + Default> PagePort<L> {
    /// Finds the port; `None` if this machine lacks it.
    pub fn find(number: PortNumber) -> Option<PagePort<L>> {
        let port = VirtioPort::find(number)?;
        let frame = frames::allocate_in_turn(User::Kernel).ok()?;
        let mut pages = [Sent { frame, bytes: 0, label: L::default(), token: None }; QUEUE];
        for page in &mut pages[1..] {
            page.frame = frames::allocate_in_turn(User::Kernel).ok()?;
        }
        Some(PagePort { port, pages, filling: 0, polls_left: MAX_POLLS })
    }

    /// Takes back the pages that the device has returned. Returns whether there were any.
    fn collect(&mut self) -> bool {
        let mut any = false;
        loop {
            let pages = &self.pages;
            let of = |token| pages.iter().find(|page| page.token == Some(token));
            let bytes = |token| of(token).map_or(&[][..], Sent::bytes);
            // SAFETY: a page keeps its token and length while the device owns it.
            let Some(token) = (unsafe { self.port.take_back(bytes) }) else { return any };
            any = true;
            if let Some(page) = self.pages.iter_mut().find(|page| page.token == Some(token)) {
                page.token = None;
            }
        }
    }

    /// Waits for a condition as long as pages return. Returns whether it holds.
    fn wait(&mut self, condition: impl Fn(&Self) -> bool) -> bool {
        loop {
            let any = self.collect();
            if condition(self) {
                return true;
            }
            self.polls_left = if any { MAX_POLLS } else { self.polls_left.saturating_sub(1) };
            if self.polls_left == 0 {
                return false;
            }
            core::hint::spin_loop();
        }
    }

    /// A page to fill, if the device does not own all pages.
    pub fn page(&mut self) -> Option<&mut Page> {
        self.collect();
        self.filling = self.pages.iter().position(|page| page.token.is_none())?;
        let start = kernel_view(self.pages[self.filling].frame.start_address());
        // SAFETY: (1) the frame is this value's, as long as a page and all of it words; (2) the
        // device does not own it; (3) the result borrows this value.
        Some(unsafe { &mut *start.as_mut_ptr::<Page>() })
    }

    /// Sends the first `bytes` bytes of the page that [`Self::page`] returned last.
    pub fn send(&mut self, bytes: usize, label: L) {
        let page = &mut self.pages[self.filling];
        (page.bytes, page.label) = (bytes, label);
        // SAFETY: the page is not written to before `collect` clears its token.
        page.token = unsafe { self.port.send(page.bytes()) };
    }

    /// Waits until there is a page to fill, as long as the host reads. Returns whether there is
    /// one.
    pub fn wait_for_page(&mut self) -> bool {
        self.wait(|this| this.pages.iter().any(|page| page.token.is_none()))
    }

    /// Waits until the host has all pages, as long as it reads. Returns whether it has them all.
    pub fn wait_for_all(&mut self) -> bool {
        self.wait(|this| this.pages.iter().all(|page| page.token.is_none()))
    }

    /// The labels of the sent pages that the host does not have yet.
    pub fn in_flight(&self) -> impl Iterator<Item = L> {
        self.pages.iter().filter(|page| page.token.is_some()).map(|page| page.label)
    }
}
