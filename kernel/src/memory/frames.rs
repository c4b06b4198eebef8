//! The allocator of physical memory, in frames of 4 KiB.
//!
//! A frame has the colour of the page that it is for: the bits of its number by which caches choose
//! a set. So what shares sets with what depends on pages' addresses alone, and not on how large the
//! kernel and the ramdisk are, or on the order of allocations
//! (docs/decisions/0096-colours-of-frames.md).
//!
//! Of each colour the lowest frame is allocated first, so that page tables are below 4 GiB, where a
//! starting processor can reach them. Free frames form linked lists whose links are in the frames
//! themselves. One lock guards the allocator; the overflow path allocates nothing.

use bootloader_api::info::MemoryRegion;
use spin::{Mutex, Once};
use x86_64::{
    PhysAddr, VirtAddr,
    structures::paging::{PhysFrame, Size4KiB},
};

use super::{records, usable::Usable};

/// Bytes of a frame.
pub const FRAME_BYTES: u64 = 4096;
/// Bytes of a large page.
pub const LARGE_BYTES: u64 = 2 << 20;
/// Memory that programs cannot claim: a reserve for the kernel and for page tables.
const RESERVE_BYTES: u64 = 32 << 20;
/// Colours: frames of the same colour are a multiple of [`LARGE_BYTES`] apart, which is what the
/// sets of the largest last-level cache span.
const COLOURS: usize = (LARGE_BYTES / FRAME_BYTES) as usize;
/// Stands for the next frame of a colour of which all have been allocated.
const NONE_NEW: u64 = u64::MAX;

static PHYSICAL_OFFSET: Once<u64> = Once::new();
static FRAMES: Mutex<Option<Frames>> = Mutex::new(None);

/// No frame is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

struct Frames {
    usable: Usable,
    /// By colour: the first free frame of its list, or 0.
    free: [u64; COLOURS],
    /// By colour: no frame from this address on was ever allocated.
    next: [u64; COLOURS],
    /// The page whose colour the next frame has that is for none.
    turn: u64,
    in_use: u64,
    /// Frames on the lists, and those never allocated.
    left: u64,
    /// Bytes of those that are claimed ([`Claim`]).
    claimed: u64,
    /// Frames that could be allocated at boot.
    all: u64,
}

/// Takes over the usable regions; `physical_offset` is where all physical memory is mapped.
pub fn init(regions: &[MemoryRegion], physical_offset: u64) {
    PHYSICAL_OFFSET.call_once(|| physical_offset);
    let usable = Usable::of(regions);
    let all = usable.bytes() / FRAME_BYTES;
    *FRAMES.lock() = Some(Frames {
        usable,
        free: [0; COLOURS],
        next: [0; COLOURS],
        turn: 0,
        in_use: 0,
        left: all,
        claimed: 0,
        all,
    });
}

/// The kernel's virtual address of a physical address.
pub fn kernel_view(address: PhysAddr) -> VirtAddr {
    let offset = PHYSICAL_OFFSET.get().expect("frames::init runs first");
    VirtAddr::new(offset + address.as_u64())
}

/// Where the kernel's view of physical memory ends.
static VIEW_END: Once<u64> = Once::new();

/// Where the kernel's view of physical memory ends; 0 before that is known.
pub(super) fn view_end() -> u64 {
    VIEW_END.get().copied().unwrap_or_default()
}

/// Sets where the kernel's view of physical memory ends. At boot, once.
pub(super) fn set_view_end(end: u64) {
    VIEW_END.call_once(|| end);
}

/// The kernel's view of some bytes of physical memory or of a device, if it has all of them.
pub fn viewed(address: u64, bytes: u64) -> Option<VirtAddr> {
    let end = address.checked_add(bytes)?;
    VIEW_END.get().filter(|view_end| end <= **view_end)?;
    Some(kernel_view(PhysAddr::new(address)))
}

/// Allocates a frame of zeros, of the colour of the page at an address.
///
/// # Errors
/// No usable memory is left.
pub fn allocate(page: u64) -> Result<PhysFrame, OutOfMemory> {
    allocate_claimed(page, 0)
}

/// Allocates a frame of zeros for no page in particular: the colours take turns.
///
/// # Errors
/// No usable memory is left.
pub fn allocate_in_turn() -> Result<PhysFrame, OutOfMemory> {
    let page = FRAMES.lock().as_mut().map_or(0, |frames| {
        frames.turn += FRAME_BYTES;
        frames.turn
    });
    allocate(page)
}

/// Allocates a frame of zeros for a page. `bytes` of it were claimed: none, or the whole frame.
fn allocate_claimed(page: u64, bytes: u64) -> Result<PhysFrame, OutOfMemory> {
    let mut guard = FRAMES.lock();
    let frames = guard.as_mut().expect("frames::init runs first");
    let address = frames.take(colour_of(page)).ok_or(OutOfMemory)?;
    frames.in_use += 1;
    frames.left -= 1;
    frames.claimed -= bytes;
    drop(guard);
    let start = kernel_view(address).as_mut_ptr::<u8>();
    // SAFETY: (1) the frame is usable memory, mapped writable at `start` for its whole length;
    // (2) nothing else uses it, as it was just taken from the allocator.
    unsafe { start.write_bytes(0, FRAME_BYTES as usize) };
    Ok(PhysFrame::containing_address(address))
}

/// The colour of a page. The higher bits of its number count too: programs align much to powers of
/// two, such as the stacks of their threads, and all of that would share a few sets.
fn colour_of(page: u64) -> usize {
    let number = page / FRAME_BYTES;
    (number ^ number >> 9 ^ number >> 18 ^ number >> 27) as usize % COLOURS
}

/// Allocates `bytes` that lie in one piece, from a multiple of [`LARGE_BYTES`] on. Their content
/// means nothing. Never freed.
///
/// # Errors
/// No usable memory of that size is left that was never allocated.
pub fn allocate_block(bytes: u64) -> Result<PhysAddr, OutOfMemory> {
    let mut guard = FRAMES.lock();
    let frames = guard.as_mut().expect("frames::init runs first");
    let block = frames.take_block(bytes).ok_or(OutOfMemory)?;
    let taken = bytes.div_ceil(FRAME_BYTES);
    frames.in_use += taken;
    frames.left -= taken;
    Ok(block)
}

/// Frees a frame.
///
/// # Safety
/// The frame came from [`allocate`] or a [`Claim`], and nothing refers to it any more.
pub unsafe fn free(frame: PhysFrame<Size4KiB>) {
    records::free(frame);
    let mut guard = FRAMES.lock();
    let frames = guard.as_mut().expect("frames::init runs first");
    // SAFETY: by this function's contract.
    unsafe { frames.push(frame.start_address()) };
    frames.in_use -= 1;
    frames.left += 1;
}

/// Frees a frame that the boot loader used.
///
/// # Safety
/// The frame is memory, and nothing refers to it any more.
pub unsafe fn reclaim(frame: PhysFrame<Size4KiB>) {
    add_in_use();
    // SAFETY: by this function's contract; the frame counts as allocated now.
    unsafe { free(frame) };
}

/// Counts one of the boot loader's frames, which stays in use, as allocated.
pub fn add_in_use() {
    if let Some(frames) = FRAMES.lock().as_mut() {
        frames.in_use += 1;
    }
}

/// Returns whether `bytes` are left. A caller that allocates many frames one by one checks this
/// first, so that an allocation that fails does not use up the last memory.
pub fn has_room(bytes: u64) -> bool {
    FRAMES.lock().as_ref().is_some_and(|frames| bytes.div_ceil(FRAME_BYTES) <= frames.left)
}

/// Returns whether `bytes` are left for a program, besides [`RESERVE_BYTES`] and what is claimed.
pub fn has_room_for_program(bytes: u64) -> bool {
    FRAMES.lock().as_ref().is_some_and(|frames| frames.has_room_for_program(bytes))
}

/// Bytes set aside for a program, to be allocated frame by frame or by the kernel's heap. Dropping
/// it releases what was not allocated.
#[derive(Debug)]
pub struct Claim(u64);

impl Claim {
    /// Allocates a frame of zeros from the claim, as [`allocate`].
    ///
    /// # Errors
    /// The claim is used up.
    pub fn allocate(&mut self, page: u64) -> Result<PhysFrame, OutOfMemory> {
        let rest = self.0.checked_sub(FRAME_BYTES).ok_or(OutOfMemory)?;
        let frame = allocate_claimed(page, FRAME_BYTES)?;
        self.0 = rest;
        Ok(frame)
    }
}

/// Claims `bytes` for a program; none if there is no room.
pub fn claim(bytes: u64) -> Option<Claim> {
    let mut guard = FRAMES.lock();
    let frames = guard.as_mut().filter(|frames| frames.has_room_for_program(bytes))?;
    frames.claimed += bytes;
    Some(Claim(bytes))
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(frames) = FRAMES.lock().as_mut() {
            frames.claimed -= self.0;
        }
    }
}

/// The most bytes of one program: three quarters of the memory at boot, so that one program cannot
/// claim all memory.
pub fn max_for_program() -> u64 {
    FRAMES.lock().as_ref().map_or(0, |frames| frames.all / 4 * 3 * FRAME_BYTES)
}

/// How much memory there is, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// What could be allocated at boot.
    pub all: u64,
    /// What is left for programs.
    pub free: u64,
}

/// How much memory there is.
pub fn usage() -> Usage {
    let usage = |frames: &Frames| Usage {
        all: frames.all * FRAME_BYTES,
        free: (frames.left * FRAME_BYTES).saturating_sub(RESERVE_BYTES + frames.claimed),
    };
    FRAMES.lock().as_ref().map_or(Usage { all: 0, free: 0 }, usage)
}

/// Bytes in allocated frames.
pub fn in_use_bytes() -> u64 {
    FRAMES.lock().as_ref().map_or(0, |frames| frames.in_use * FRAME_BYTES)
}

/// A usable frame below 1 MiB, for the trampoline of starting processors.
pub fn low_frame() -> Option<PhysFrame> {
    let low = FRAMES.lock().as_ref()?.usable.low_frame()?;
    Some(PhysFrame::containing_address(PhysAddr::new(low)))
}

impl Frames {
    fn has_room_for_program(&self, bytes: u64) -> bool {
        let all = bytes.checked_add(RESERVE_BYTES).and_then(|all| all.checked_add(self.claimed));
        all.is_some_and(|all| all.div_ceil(FRAME_BYTES) <= self.left)
    }

    /// Takes a frame of a colour, or of the next colour of which one is left.
    fn take(&mut self, colour: usize) -> Option<PhysAddr> {
        let from = (colour..COLOURS).chain(0..colour);
        from.into_iter().find_map(|colour| self.take_listed(colour).or_else(|| self.take_new(colour)))
    }

    /// Takes the first frame of a colour's list.
    fn take_listed(&mut self, colour: usize) -> Option<PhysAddr> {
        let free = &mut self.free[colour];
        let address = (*free != 0).then(|| PhysAddr::new(*free))?;
        // SAFETY: a frame on a free list holds the next link in its first word.
        *free = unsafe { kernel_view(address).as_ptr::<u64>().read() };
        Some(address)
    }

    /// Takes the lowest frame of a colour that was never allocated.
    fn take_new(&mut self, colour: usize) -> Option<PhysAddr> {
        let next = &mut self.next[colour];
        if *next == NONE_NEW {
            return None;
        }
        let of_colour = |address: u64| {
            let ahead = (COLOURS + colour).wrapping_sub((address / FRAME_BYTES) as usize) % COLOURS;
            address + ahead as u64 * FRAME_BYTES
        };
        let found = self.usable.find(*next, FRAME_BYTES, of_colour);
        *next = found.map_or(NONE_NEW, |address| address + FRAME_BYTES);
        found.map(PhysAddr::new)
    }

    /// Takes the lowest block of `bytes` above every frame that was ever allocated.
    fn take_block(&mut self, bytes: u64) -> Option<PhysAddr> {
        let above = self.next.iter().copied().max().filter(|next| *next != NONE_NEW)?;
        let start = self.usable.find(above, bytes, |at| at.next_multiple_of(LARGE_BYTES))?;
        self.usable.remove(start..start + bytes.next_multiple_of(FRAME_BYTES));
        Some(PhysAddr::new(start))
    }

    /// Adds a frame to the list of its colour.
    ///
    /// # Safety
    /// Nothing refers to the frame, and it is memory.
    unsafe fn push(&mut self, frame: PhysAddr) {
        let first = &mut self.free[(frame.as_u64() / FRAME_BYTES) as usize % COLOURS];
        let link = kernel_view(frame).as_mut_ptr::<u64>();
        // SAFETY: nothing refers to the frame, so its first word is free for the link.
        unsafe { link.write(*first) };
        *first = frame.as_u64();
    }
}
