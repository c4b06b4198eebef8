//! A file's content in frames that belong only to the file.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use x86_64::structures::paging::PhysFrame;

use crate::memory::{
    frames::{self, FRAME_BYTES, OutOfMemory, kernel_view},
    space::SpaceError,
};

/// Maximum number of frames of all files together, half of the memory at boot: a program's memory
/// is freed when it ends, a file's is not.
fn max_frames() -> u64 {
    frames::max_for_program() / 3 * 2 / FRAME_BYTES
}

/// Number of frames of all files. Relaxed order is enough: nothing but the number depends on it.
static IN_FILES: AtomicU64 = AtomicU64::new(0);

/// A file's content. Dropping it frees its frames.
#[derive(Default)]
pub struct Pages {
    /// Content of the ramdisk, as far as the file still has it.
    base: &'static [u8],
    /// By page: the file's own frame, or `None` if the page is in `base`.
    frames: Vec<Option<PhysFrame>>,
    len: u64,
    /// Number of mappings of the file, which may contain any of its frames.
    mappings: u64,
    /// Frames beyond the file's new end that mappings may still contain.
    retired: Vec<PhysFrame>,
}

impl Pages {
    /// The content of a ramdisk file. A page is copied at its first write.
    ///
    /// # Errors
    /// No memory is left for the list of pages.
    pub fn of_ramdisk(base: &'static [u8]) -> Result<Pages, OutOfMemory> {
        let len = base.len() as u64;
        let mut frames = Vec::new();
        let pages = len.div_ceil(FRAME_BYTES) as usize;
        frames.try_reserve(pages).map_err(|_| OutOfMemory)?;
        frames.resize(pages, None);
        Ok(Pages { base, frames, len, mappings: 0, retired: Vec::new() })
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The bytes from `at` on that are in one page; none at the end.
    pub fn piece(&self, at: u64) -> &[u8] {
        let (page, offset) = ((at / FRAME_BYTES) as usize, at % FRAME_BYTES);
        let bytes = self.len.saturating_sub(at).min(FRAME_BYTES - offset);
        match self.frames.get(page) {
            None => &[],
            Some(None) => self.base.get(at as usize..(at + bytes) as usize).unwrap_or_default(),
            Some(Some(frame)) => {
                let start = kernel_view(frame.start_address() + offset).as_ptr();
                // SAFETY: the frame belongs to this file alone and is mapped for the kernel; the
                // bytes are in it. The kernel changes them only through `&mut self`; what a program
                // writes that has the page mapped, the kernel copies or not.
                unsafe { core::slice::from_raw_parts(start, bytes as usize) }
            }
        }
    }

    /// Writes bytes at `at`, as many as there are frames for. Returns how many. The bytes between
    /// the old end and `at` become zeros.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> usize {
        if at > self.len && self.set_len(at).is_err() {
            return 0;
        }
        let mut rest = bytes;
        let mut at = at;
        while !rest.is_empty()
            && let Ok(frame) = self.reach(at + 1).and_then(|()| self.own(at / FRAME_BYTES))
        {
            let offset = at % FRAME_BYTES;
            let (now, later) = rest.split_at(rest.len().min((FRAME_BYTES - offset) as usize));
            let to: *mut u8 = kernel_view(frame.start_address() + offset).as_mut_ptr();
            // SAFETY: the frame belongs to this file alone and the bytes fit into the rest of it;
            // `now` belongs to the caller.
            unsafe { to.copy_from_nonoverlapping(now.as_ptr(), now.len()) };
            at += now.len() as u64;
            self.len = self.len.max(at);
            rest = later;
        }
        bytes.len() - rest.len()
    }

    /// Truncates the content to `len` bytes, or extends it with zeros.
    ///
    /// # Errors
    /// No frames are left; the content is unchanged.
    pub fn set_len(&mut self, len: u64) -> Result<(), OutOfMemory> {
        if len < self.len {
            let keep = len.div_ceil(FRAME_BYTES) as usize;
            let removed = self.frames.drain(keep..).flatten();
            match self.mappings {
                0 => removed.for_each(give_back),
                _ => self.retired.extend(removed),
            }
            self.base = self.base.get(..len as usize).unwrap_or(self.base);
            self.clear_from(len);
            self.len = len;
            return Ok(());
        }
        self.reach(len)?;
        self.len = len;
        Ok(())
    }

    /// Returns whether there are frames for a length of `len` bytes.
    pub fn has_room(&self, len: u64) -> bool {
        let missing = self.missing(len);
        // Relaxed order: the value is an estimate; `add` decides.
        let in_files = IN_FILES.load(Ordering::Relaxed);
        in_files.saturating_add(missing) <= max_frames()
            && frames::has_room_for_program(missing * FRAME_BYTES)
    }

    /// Number of pages that a length of `len` bytes adds.
    fn missing(&self, len: u64) -> u64 {
        len.div_ceil(FRAME_BYTES).saturating_sub(self.frames.len() as u64)
    }

    /// Allocates frames for up to `len` bytes.
    fn reach(&mut self, len: u64) -> Result<(), OutOfMemory> {
        let end = self.base.len() as u64;
        if len > end && !end.is_multiple_of(FRAME_BYTES) {
            // The page of the ramdisk's last bytes is continued with zeros.
            self.own(end / FRAME_BYTES)?;
        }
        let missing = self.missing(len);
        if missing == 0 {
            return Ok(());
        }
        self.frames.try_reserve(missing as usize).map_err(|_| OutOfMemory)?;
        allocate(self.frames.len() as u64, missing, |frame| self.frames.push(Some(frame)))
    }

    /// The file's own frame of an existing page; copies the ramdisk's page first if necessary.
    fn own(&mut self, page: u64) -> Result<PhysFrame, OutOfMemory> {
        let slot = self.frames.get_mut(page as usize).ok_or(OutOfMemory)?;
        if let Some(frame) = *slot {
            return Ok(frame);
        }
        allocate(page, 1, |frame| *slot = Some(frame))?;
        let frame = slot.ok_or(OutOfMemory)?;
        let bytes = self.base.get((page * FRAME_BYTES) as usize..).unwrap_or_default();
        let count = bytes.len().min(FRAME_BYTES as usize);
        let to: *mut u8 = kernel_view(frame.start_address()).as_mut_ptr();
        // SAFETY: the frame is new and `count` bytes fit into it; the ramdisk is elsewhere.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), count) };
        Ok(frame)
    }

    /// The file's frame of page `index`, for a mapping.
    ///
    /// # Errors
    /// The page is beyond the end, or no frames are left.
    pub fn share(&mut self, index: u64) -> Result<PhysFrame, SpaceError> {
        if index >= self.len.div_ceil(FRAME_BYTES) {
            return Err(SpaceError::BehindFile);
        }
        Ok(self.own(index)?)
    }

    /// Counts a new mapping.
    pub fn add_mapping(&mut self) {
        self.mappings += 1;
    }

    /// Counts an ended mapping. After the last one, the file's retired frames are freed.
    pub fn end_mapping(&mut self) {
        self.mappings -= 1;
        if self.mappings == 0 {
            self.retired.drain(..).for_each(give_back);
        }
    }

    /// Zeroes the last page from `len` on, in case the file grows again. A page of the ramdisk has
    /// no bytes beyond `len`.
    fn clear_from(&mut self, len: u64) {
        let offset = len % FRAME_BYTES;
        if offset != 0
            && let Some(Some(frame)) = self.frames.last()
        {
            let start: *mut u8 = kernel_view(frame.start_address() + offset).as_mut_ptr();
            // SAFETY: the bytes are the rest of a frame that belongs to this file alone.
            unsafe { start.write_bytes(0, (FRAME_BYTES - offset) as usize) };
        }
    }
}

/// Allocates frames of zeros for a file's pages from `first` on, and passes each to `place`. All or
/// nothing: a write that fails must not use up the remaining frames.
fn allocate(first: u64, count: u64, mut place: impl FnMut(PhysFrame)) -> Result<(), OutOfMemory> {
    let mut claim = frames::claim(count * FRAME_BYTES).ok_or(OutOfMemory)?;
    if !add(count) {
        return Err(OutOfMemory);
    }
    for taken in 0..count {
        place(claim.allocate((first + taken) * FRAME_BYTES).inspect_err(|_| {
            IN_FILES.fetch_sub(count - taken, Ordering::Relaxed);
        })?);
    }
    Ok(())
}

/// Adds frames to those of all files, up to [`max_frames`]. Returns whether they were added.
fn add(frames: u64) -> bool {
    let most = max_frames();
    let fits = |held: u64| held.checked_add(frames).filter(|all| *all <= most);
    IN_FILES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
}

fn give_back(frame: PhysFrame) {
    IN_FILES.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: the frame came from a claim, and nothing refers to it once it is out of the list.
    unsafe { frames::free(frame) };
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.frames.drain(..).flatten().chain(self.retired.drain(..)).for_each(give_back);
    }
}
