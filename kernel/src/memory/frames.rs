//! The allocator of physical memory, in frames of 4 KiB.
//!
//! There are three pools at fixed addresses: for what depends on the size of kernel and ramdisk,
//! beside these; for the rest of the kernel; and for programs. A frame has the colour of the page
//! that it is for: the bits of its number by which caches choose a set. So the frames of kernel and
//! programs, and what shares sets of caches with what, do not depend on how large the kernel and
//! the ramdisk are (docs/decisions/0096-colours-of-frames.md). A pool without a frame of a colour
//! gets another's, and then the next colour's.
//!
//! Of each colour the lowest frame is allocated first, so that page tables are below 4 GiB, where a
//! starting processor can reach them. One lock guards the allocator; the overflow path allocates
//! nothing.

use bootloader_api::info::MemoryRegion;
use spin::{Mutex, Once};
use x86_64::{
    PhysAddr, VirtAddr,
    structures::paging::{PhysFrame, Size4KiB},
};

pub use super::frame::{FRAME_BYTES, LARGE_BYTES, kernel_view};
use super::{
    frame,
    pool::{self, Pool},
    records,
};

/// Memory that programs cannot claim: a reserve for the kernel and for page tables.
const RESERVE_BYTES: u64 = 32 << 20;
/// Where the pools of the kernel and of the programs begin. Larger files of the machine take their
/// room, and the pools get frames from each other.
const KERNEL_START: u64 = 64 << 20;
const PROGRAMS_START: u64 = KERNEL_START + (16 << 20);

static FRAMES: Mutex<Frames> = Mutex::new(Frames {
    pools: [
        Pool::new(0..KERNEL_START),
        Pool::new(KERNEL_START..PROGRAMS_START),
        Pool::new(PROGRAMS_START..u64::MAX),
    ],
    in_use: 0,
    left: 0,
    claimed: 0,
    all: 0,
});

/// What uses a frame, and which pool it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// The kernel, for what depends on the size of its image or of the ramdisk.
    Image,
    /// The kernel.
    Kernel,
    /// A program: its pages, the tables for them, and pages of files.
    Program,
}

/// No frame is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

struct Frames {
    /// By [`User`].
    pools: [Pool; 3],
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
    frame::set_view(physical_offset);
    let mut frames = FRAMES.lock();
    frames.all = frames.pools.iter_mut().map(|pool| pool.add_all(regions)).sum();
    frames.left = frames.all;
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
pub fn allocate(user: User, page: u64) -> Result<PhysFrame, OutOfMemory> {
    allocate_claimed(user, |_| page, 0)
}

/// Allocates a frame of zeros for no page in particular: the colours take turns.
///
/// # Errors
/// No usable memory is left.
pub fn allocate_in_turn(user: User) -> Result<PhysFrame, OutOfMemory> {
    allocate_claimed(user, Pool::take_turn, 0)
}

/// Allocates a frame of zeros for a page. `bytes` of it were claimed: none, or the whole frame.
fn allocate_claimed(
    user: User,
    page: impl FnOnce(&mut Pool) -> u64,
    bytes: u64,
) -> Result<PhysFrame, OutOfMemory> {
    let mut frames = FRAMES.lock();
    let page = page(&mut frames.pools[user as usize]);
    let address = frames.take(user, pool::colour_of(page)).ok_or(OutOfMemory)?;
    frames.in_use += 1;
    frames.left -= 1;
    frames.claimed -= bytes;
    drop(frames);
    let start = kernel_view(address).as_mut_ptr::<u8>();
    // SAFETY: (1) the frame is usable memory, mapped writable at `start` for its whole length;
    // (2) nothing else uses it, as it was just taken from the allocator.
    unsafe { start.write_bytes(0, FRAME_BYTES as usize) };
    Ok(PhysFrame::containing_address(address))
}

/// Allocates `bytes` that lie in one piece, from a multiple of [`LARGE_BYTES`] on. Their content
/// means nothing. Never freed.
///
/// # Errors
/// No usable memory of that size is left that was never allocated.
pub fn allocate_block(user: User, bytes: u64) -> Result<PhysAddr, OutOfMemory> {
    let mut frames = FRAMES.lock();
    let block = frames.take_block(user, bytes).ok_or(OutOfMemory)?;
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
    let mut frames = FRAMES.lock();
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
    FRAMES.lock().in_use += 1;
}

/// Returns whether `bytes` are left. A caller that allocates many frames one by one checks this
/// first, so that an allocation that fails does not use up the last memory.
pub fn has_room(bytes: u64) -> bool {
    bytes.div_ceil(FRAME_BYTES) <= FRAMES.lock().left
}

/// Returns whether `bytes` are left for a program, besides [`RESERVE_BYTES`] and what is claimed.
pub fn has_room_for_program(bytes: u64) -> bool {
    FRAMES.lock().has_room_for_program(bytes)
}

/// Bytes set aside for a program, to be allocated frame by frame or by the kernel's heap. Dropping
/// it releases what was not allocated.
#[derive(Debug)]
pub struct Claim(u64);

impl Claim {
    /// Allocates a frame of zeros for a program's page from the claim, as [`allocate`].
    ///
    /// # Errors
    /// The claim is used up.
    pub fn allocate(&mut self, page: u64) -> Result<PhysFrame, OutOfMemory> {
        let rest = self.0.checked_sub(FRAME_BYTES).ok_or(OutOfMemory)?;
        let frame = allocate_claimed(User::Program, |_| page, FRAME_BYTES)?;
        self.0 = rest;
        Ok(frame)
    }
}

/// Claims `bytes` for a program; none if there is no room.
pub fn claim(bytes: u64) -> Option<Claim> {
    let mut frames = FRAMES.lock();
    frames.has_room_for_program(bytes).then(|| {
        frames.claimed += bytes;
        Claim(bytes)
    })
}

impl Drop for Claim {
    fn drop(&mut self) {
        FRAMES.lock().claimed -= self.0;
    }
}

/// The most bytes of one program: three quarters of the memory at boot, so that one program cannot
/// claim all memory.
pub fn max_for_program() -> u64 {
    FRAMES.lock().all / 4 * 3 * FRAME_BYTES
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
    let frames = FRAMES.lock();
    Usage {
        all: frames.all * FRAME_BYTES,
        free: (frames.left * FRAME_BYTES).saturating_sub(RESERVE_BYTES + frames.claimed),
    }
}

/// Bytes in allocated frames.
pub fn in_use_bytes() -> u64 {
    FRAMES.lock().in_use * FRAME_BYTES
}

/// A usable frame below 1 MiB, for the trampoline of starting processors.
pub fn low_frame() -> Option<PhysFrame> {
    let low = FRAMES.lock().pools.iter().find_map(Pool::low_frame)?;
    Some(PhysFrame::containing_address(PhysAddr::new(low)))
}

impl Frames {
    fn has_room_for_program(&self, bytes: u64) -> bool {
        let all = bytes.checked_add(RESERVE_BYTES).and_then(|all| all.checked_add(self.claimed));
        all.is_some_and(|all| all.div_ceil(FRAME_BYTES) <= self.left)
    }

    /// The pools in the order in which they are asked.
    fn pools_for(user: User) -> impl Iterator<Item = usize> {
        [user as usize, 0, 1, 2].into_iter()
    }

    /// Takes a frame of a colour, or of the next colour of which one is left.
    fn take(&mut self, user: User, colour: usize) -> Option<PhysAddr> {
        pool::colours_from(colour).find_map(|colour| {
            Frames::pools_for(user).find_map(|pool| self.pools[pool].take(colour))
        })
    }

    /// Takes a block of `bytes` that was never allocated.
    fn take_block(&mut self, user: User, bytes: u64) -> Option<PhysAddr> {
        Frames::pools_for(user).find_map(|pool| self.pools[pool].take_block(bytes))
    }

    /// Adds a frame to the list of its colour.
    ///
    /// # Safety
    /// Nothing refers to the frame, and it is memory.
    unsafe fn push(&mut self, frame: PhysAddr) {
        if let Some(pool) = self.pools.iter_mut().find(|pool| pool.contains(frame)) {
            // SAFETY: by this function's contract.
            unsafe { pool.push(frame) };
        }
    }
}
