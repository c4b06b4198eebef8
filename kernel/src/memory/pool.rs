//! The frames of one pool, by colour.

use core::ops::Range;

use bootloader_api::info::MemoryRegion;
use x86_64::PhysAddr;

use super::{
    frame::{FRAME_BYTES, LARGE_BYTES, kernel_view},
    usable::Usable,
};

/// Colours: frames of the same colour are a multiple of [`LARGE_BYTES`] apart, which is what the
/// sets of the largest last-level cache span.
const COLOURS: usize = (LARGE_BYTES / FRAME_BYTES) as usize;
/// Stands for the next frame of a colour of which all have been allocated.
const NONE_NEW: u64 = u64::MAX;

/// The colour of a page. The higher bits of its number count too: programs align much to powers of
/// two, such as the stacks of their threads, and all of that would share a few sets.
pub(super) fn colour_of(page: u64) -> usize {
    let number = page / FRAME_BYTES;
    (number ^ number >> 9 ^ number >> 18 ^ number >> 27) as usize % COLOURS
}

/// The colours, from one on.
pub(super) fn colours_from(colour: usize) -> impl Iterator<Item = usize> {
    (colour..COLOURS).chain(0..colour)
}

/// The frames of a range of addresses.
pub(super) struct Pool {
    addresses: Range<u64>,
    usable: Usable,
    /// By colour: the first free frame of its list, or 0. The links are in the frames themselves.
    free: [u64; COLOURS],
    /// By colour: no frame from this address on was ever allocated.
    next: [u64; COLOURS],
    /// The page whose colour the next frame has that is for no page in particular.
    turn: u64,
}

impl Pool {
    /// An empty one, for frames of a range of addresses.
    pub(super) const fn new(addresses: Range<u64>) -> Pool {
        let usable = Usable::NONE;
        Pool { addresses, usable, free: [0; COLOURS], next: [0; COLOURS], turn: 0 }
    }

    /// Adds what the firmware reports as usable of its range. Returns the frames of it.
    pub(super) fn add_all(&mut self, regions: &[MemoryRegion]) -> u64 {
        self.usable.add_all(regions, &self.addresses);
        self.usable.bytes() / FRAME_BYTES
    }

    /// A usable frame below 1 MiB.
    pub(super) fn low_frame(&self) -> Option<u64> {
        self.usable.low_frame()
    }

    /// Returns whether a frame is in the pool's range.
    pub(super) fn contains(&self, frame: PhysAddr) -> bool {
        self.addresses.contains(&frame.as_u64())
    }

    /// A page whose colour's turn it is.
    pub(super) fn take_turn(&mut self) -> u64 {
        self.turn += FRAME_BYTES;
        self.turn
    }

    /// Takes a frame of a colour: one that was freed, or else the lowest one.
    pub(super) fn take(&mut self, colour: usize) -> Option<PhysAddr> {
        let free = self.free[colour];
        if free == 0 {
            return self.take_new(colour);
        }
        let address = PhysAddr::new(free);
        // SAFETY: a frame on a free list holds the next link in its first word.
        self.free[colour] = unsafe { kernel_view(address).as_ptr::<u64>().read() };
        Some(address)
    }

    /// Takes the lowest frame of a colour that was never allocated.
    fn take_new(&mut self, colour: usize) -> Option<PhysAddr> {
        let next = &mut self.next[colour];
        if *next == NONE_NEW {
            return None;
        }
        let of_colour = |address: u64| {
            let ahead = (COLOURS + colour - (address / FRAME_BYTES) as usize % COLOURS) % COLOURS;
            address + ahead as u64 * FRAME_BYTES
        };
        let found = self.usable.find(*next, FRAME_BYTES, of_colour);
        *next = found.map_or(NONE_NEW, |address| address + FRAME_BYTES);
        found.map(PhysAddr::new)
    }

    /// Takes the lowest block of `bytes` above every frame that was ever allocated.
    pub(super) fn take_block(&mut self, bytes: u64) -> Option<PhysAddr> {
        let above = self.next.iter().copied().max().filter(|next| *next != NONE_NEW)?;
        let start = self.usable.find(above, bytes, |at| at.next_multiple_of(LARGE_BYTES))?;
        self.usable.remove(start..start + bytes.next_multiple_of(FRAME_BYTES));
        Some(PhysAddr::new(start))
    }

    /// Adds a frame to the list of its colour.
    ///
    /// # Safety
    /// Nothing refers to the frame, and it is memory.
    pub(super) unsafe fn push(&mut self, frame: PhysAddr) {
        let first = &mut self.free[(frame.as_u64() / FRAME_BYTES) as usize % COLOURS];
        let link = kernel_view(frame).as_mut_ptr::<u64>();
        // SAFETY: nothing refers to the frame, so its first word is free for the link.
        unsafe { link.write(*first) };
        *first = frame.as_u64();
    }
}
