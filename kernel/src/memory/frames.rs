//! The allocator of physical memory, in frames of 4 KiB.
//!
//! Frames come from the regions that the firmware reports as usable, lowest first, so that page
//! tables are below 4 GiB, where a starting processor can reach them. Free frames form a linked
//! list whose links are in the frames themselves. One lock guards the allocator; the overflow path
//! allocates nothing.

use bootloader_api::info::{MemoryRegion, MemoryRegionKind};
use spin::{Mutex, Once};
use x86_64::{
    PhysAddr, VirtAddr,
    structures::paging::{PhysFrame, Size4KiB},
};

use super::records;

/// Bytes of a frame.
pub const FRAME_BYTES: u64 = 4096;
/// Bytes of a large page.
pub const LARGE_BYTES: u64 = 2 << 20;
/// Memory that programs cannot claim: a reserve for the kernel and for page tables.
const RESERVE_BYTES: u64 = 32 << 20;
/// Memory below this address is not allocated: a starting processor's trampoline and the firmware's
/// tables are there.
const LOW_BYTES: u64 = 1 << 20;

static PHYSICAL_OFFSET: Once<u64> = Once::new();
static FRAMES: Mutex<Option<Frames>> = Mutex::new(None);

/// No frame is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

struct Frames {
    regions: &'static [MemoryRegion],
    /// Index into `regions` of the region that new frames come from.
    region: usize,
    /// The next address of that region that was never allocated.
    next: u64,
    /// The first free frame of the list.
    free: Option<PhysAddr>,
    in_use: u64,
    /// Frames on the list, and those never allocated.
    left: u64,
    /// Bytes of those that are claimed ([`Claim`]).
    claimed: u64,
    /// Frames that could be allocated at boot.
    all: u64,
}

/// Takes over the usable regions; `physical_offset` is where all physical memory is mapped.
pub fn init(regions: &'static [MemoryRegion], physical_offset: u64) {
    PHYSICAL_OFFSET.call_once(|| physical_offset);
    let all = regions.iter().map(Frames::of_region).sum();
    *FRAMES.lock() = Some(Frames {
        regions,
        region: 0,
        next: 0,
        free: None,
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

/// Allocates a frame of zeros.
///
/// # Errors
/// No usable memory is left.
pub fn allocate() -> Result<PhysFrame, OutOfMemory> {
    allocate_claimed(0)
}

/// Allocates a frame of zeros. `bytes` of it were claimed: none, or the whole frame.
fn allocate_claimed(bytes: u64) -> Result<PhysFrame, OutOfMemory> {
    let mut guard = FRAMES.lock();
    let frames = guard.as_mut().expect("frames::init runs first");
    let address = frames.take().ok_or(OutOfMemory)?;
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
    /// Allocates a frame of zeros from the claim.
    ///
    /// # Errors
    /// The claim is used up.
    pub fn allocate(&mut self) -> Result<PhysFrame, OutOfMemory> {
        let rest = self.0.checked_sub(FRAME_BYTES).ok_or(OutOfMemory)?;
        let frame = allocate_claimed(FRAME_BYTES)?;
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
    let guard = FRAMES.lock();
    let regions = guard.as_ref()?.regions;
    // Not the first page: address 0 is the null pointer.
    let fits = |r: &&MemoryRegion| {
        r.kind == MemoryRegionKind::Usable && r.start.max(FRAME_BYTES) + FRAME_BYTES <= r.end
    };
    let region = regions.iter().filter(fits).find(|r| r.start < LOW_BYTES - FRAME_BYTES)?;
    let start = region.start.max(FRAME_BYTES).next_multiple_of(FRAME_BYTES);
    Some(PhysFrame::containing_address(PhysAddr::new(start)))
}

impl Frames {
    /// The number of frames of a region that [`Self::take`] can take.
    fn of_region(region: &MemoryRegion) -> u64 {
        let start = region.start.max(LOW_BYTES).next_multiple_of(FRAME_BYTES);
        match region.kind {
            MemoryRegionKind::Usable => region.end.saturating_sub(start) / FRAME_BYTES,
            _ => 0,
        }
    }

    fn has_room_for_program(&self, bytes: u64) -> bool {
        let all = bytes.checked_add(RESERVE_BYTES).and_then(|all| all.checked_add(self.claimed));
        all.is_some_and(|all| all.div_ceil(FRAME_BYTES) <= self.left)
    }

    fn take(&mut self) -> Option<PhysAddr> {
        if let Some(address) = self.free {
            // SAFETY: a frame on the free list holds the next link in its first word.
            let link = unsafe { kernel_view(address).as_ptr::<u64>().read() };
            self.free = (link != 0).then(|| PhysAddr::new(link));
            return Some(address);
        }
        self.take_new()
    }

    /// Takes a frame that was never allocated.
    fn take_new(&mut self) -> Option<PhysAddr> {
        while let Some(region) = self.regions.get(self.region) {
            let start = region.start.max(LOW_BYTES).max(self.next).next_multiple_of(FRAME_BYTES);
            if region.kind == MemoryRegionKind::Usable && start + FRAME_BYTES <= region.end {
                self.next = start + FRAME_BYTES;
                return Some(PhysAddr::new(start));
            }
            self.region += 1;
            self.next = 0;
        }
        None
    }

    /// Takes the first block of `bytes` that was never allocated. The frames before it are free.
    fn take_block(&mut self, bytes: u64) -> Option<PhysAddr> {
        let end = |region: &MemoryRegion| region.end;
        loop {
            let start = self.take_new()?;
            if start.is_aligned(LARGE_BYTES)
                && self.regions.get(self.region).map(end)? - start.as_u64() >= bytes
            {
                self.next = start.as_u64() + bytes;
                return Some(start);
            }
            // SAFETY: the frame was just taken.
            unsafe { self.push(start) };
        }
    }

    /// Adds a frame to the list.
    ///
    /// # Safety
    /// Nothing refers to the frame, and it is memory.
    unsafe fn push(&mut self, frame: PhysAddr) {
        let link = kernel_view(frame).as_mut_ptr::<u64>();
        // SAFETY: nothing refers to the frame, so its first word is free for the link.
        unsafe { link.write(self.free.map_or(0, PhysAddr::as_u64)) };
        self.free = Some(frame);
    }
}
