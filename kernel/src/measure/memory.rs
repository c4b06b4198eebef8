//! The transport of machines without a virtio port: pages stay in memory until the end, and are
//! then sent, compressed, over the second UART.

use alloc::vec::Vec;

use tally_abi::wire::{MAX_OUTPUT_BYTES, Message};
use x86_64::structures::paging::PhysFrame;

use super::transport::{Load, PAGE_WORDS, RecordPage, Transport};
use crate::{
    machine::serial,
    memory::frames::{self, FRAME_BYTES, User, kernel_view},
};

/// Maximum bytes of pages: an eighth of the smallest machine's memory.
const MAX_BYTES: u64 = 32 << 20;
/// Bytes that are compressed together: a screen may have room for only a part of the trace, in
/// whole blocks.
const BLOCK_BYTES: usize = 16 << 10;

const _: () = assert!(8 * PAGE_WORDS == FRAME_BYTES as usize);

/// Pages, with the number of bytes used in each; the last page may not be in use yet.
#[derive(Default)]
pub(super) struct MemoryTransport {
    pages: Vec<(PhysFrame, usize)>,
}

impl Transport for MemoryTransport {
    fn page(&mut self) -> Option<&mut RecordPage> {
        let is_full = self.pages.len() as u64 * FRAME_BYTES >= MAX_BYTES;
        // A claim leaves the kernel's reserve untouched, as for programs' memory.
        let claim = || frames::claim(FRAME_BYTES).filter(|_| !is_full);
        let next = self.pages.len() as u64 * FRAME_BYTES;
        self.empty_page(|| claim()?.allocate(next).ok())
    }

    fn last_page(&mut self) -> Option<&mut RecordPage> {
        self.empty_page(|| frames::allocate_in_turn(User::Kernel).ok())
    }

    fn send(&mut self, load: Load) {
        if let Some((_, bytes)) = self.pages.last_mut() {
            *bytes = load.bytes;
        }
    }

    fn wait_for_page(&mut self) -> bool {
        self.page().is_some()
    }

    fn wait_for_all(&mut self) -> bool {
        true
    }

    fn in_flight(&self, _: u16) -> u64 {
        0
    }

    /// Sends all pages, compressed block by block.
    fn finish(&mut self) {
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        for (frame, bytes) in self.pages.drain(..) {
            let page = kernel_view(frame.start_address()).as_ptr::<u8>();
            // SAFETY: see `empty_page`; `bytes` of the page are in use.
            block.extend_from_slice(unsafe { core::slice::from_raw_parts(page, bytes) });
            if block.len() + FRAME_BYTES as usize > BLOCK_BYTES {
                send_block(&block);
                block.clear();
            }
        }
        send_block(&block);
    }
}

impl MemoryTransport {
    /// The last page if it is empty, or a new one.
    fn empty_page(&mut self, new: impl FnOnce() -> Option<PhysFrame>) -> Option<&mut RecordPage> {
        if self.pages.last().is_none_or(|(_, bytes)| *bytes > 0) {
            self.pages.push((new()?, 0));
        }
        let (frame, _) = self.pages.last()?;
        let page = kernel_view(frame.start_address()).as_mut_ptr::<RecordPage>();
        // SAFETY: (1) the frame is this value's alone and is never freed; (2) it is as long as a
        // page, all of it words, zero at first; (3) the result borrows this value.
        Some(unsafe { &mut *page })
    }
}

fn send_block(block: &[u8]) {
    if block.is_empty() {
        return;
    }
    let compressed = lz4_flex::compress_prepend_size(block);
    let mut pieces = compressed.chunks(MAX_OUTPUT_BYTES).peekable();
    while let Some(bytes) = pieces.next() {
        serial::send(&Message::Trace { bytes, last: pieces.peek().is_none() });
    }
}
