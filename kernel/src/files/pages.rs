//! A file's content, in frames that belong to the file alone.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use x86_64::structures::paging::PhysFrame;

use crate::memory::frames::{self, FRAME_BYTES, OutOfMemory, kernel_view};

/// The most frames of all files together: a program's memory is freed when it ends, a file's is
/// not.
const MAX_FRAMES: u64 = (128 << 20) / FRAME_BYTES;

/// Frames of all files. Relaxed order is enough: nothing but the number depends on it.
static IN_FILES: AtomicU64 = AtomicU64::new(0);

/// A file's content. Dropping it frees its frames.
#[derive(Default)]
pub struct Pages {
    frames: Vec<PhysFrame>,
    len: u64,
}

impl Pages {
    /// Its length, in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The bytes from `at` on that are in one frame; none at the end.
    pub fn piece(&self, at: u64) -> &[u8] {
        let Some(frame) = self.frames.get((at / FRAME_BYTES) as usize) else { return &[] };
        let offset = at % FRAME_BYTES;
        let bytes = self.len.saturating_sub(at).min(FRAME_BYTES - offset);
        let start = kernel_view(frame.start_address() + offset).as_ptr();
        // SAFETY: the frame belongs to this file alone and is mapped for the kernel; the bytes are
        // in it, and change only through `&mut self`.
        unsafe { core::slice::from_raw_parts(start, bytes as usize) }
    }

    /// Writes bytes at `at`, as far as there are frames for them. Returns how many. The bytes
    /// between the end and `at` become zeros.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> usize {
        if at > self.len && self.set_len(at).is_err() {
            return 0;
        }
        let mut rest = bytes;
        let mut at = at;
        while !rest.is_empty() && self.reach(at + 1).is_ok() {
            let offset = at % FRAME_BYTES;
            let (now, later) = rest.split_at(rest.len().min((FRAME_BYTES - offset) as usize));
            let frame = self.frames[(at / FRAME_BYTES) as usize];
            let to: *mut u8 = kernel_view(frame.start_address() + offset).as_mut_ptr();
            // SAFETY: the frame belongs to this file alone and the bytes fit into the rest of it;
            // `now` belongs to the caller or the ramdisk.
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
    /// No frames are left, and the content is unchanged.
    pub fn set_len(&mut self, len: u64) -> Result<(), OutOfMemory> {
        if len < self.len {
            let keep = len.div_ceil(FRAME_BYTES) as usize;
            self.frames.drain(keep..).for_each(release_frame);
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
        let missing = len.div_ceil(FRAME_BYTES).saturating_sub(self.frames.len() as u64);
        // Relaxed order: a hint; `add` makes the decision.
        let in_files = IN_FILES.load(Ordering::Relaxed);
        in_files.saturating_add(missing) <= MAX_FRAMES
            && frames::has_room_for_program(missing * FRAME_BYTES)
    }

    /// Allocates frames for up to `len` bytes.
    fn reach(&mut self, len: u64) -> Result<(), OutOfMemory> {
        let missing = len.div_ceil(FRAME_BYTES).saturating_sub(self.frames.len() as u64);
        if missing == 0 {
            return Ok(());
        }
        // All or nothing: a write that fails must not use up the frames that are left.
        let mut claim = frames::claim(missing * FRAME_BYTES).ok_or(OutOfMemory)?;
        self.frames.try_reserve(missing as usize).map_err(|_| OutOfMemory)?;
        if !add(missing) {
            return Err(OutOfMemory);
        }
        for taken in 0..missing {
            let frame = claim.allocate().inspect_err(|_| {
                IN_FILES.fetch_sub(missing - taken, Ordering::Relaxed);
            })?;
            self.frames.push(frame);
        }
        Ok(())
    }

    /// Zeroes the last frame from `len` on, for when the file grows again.
    fn clear_from(&mut self, len: u64) {
        let offset = len % FRAME_BYTES;
        if offset != 0
            && let Some(frame) = self.frames.last()
        {
            let start: *mut u8 = kernel_view(frame.start_address() + offset).as_mut_ptr();
            // SAFETY: the bytes are the rest of a frame that belongs to this file alone.
            unsafe { start.write_bytes(0, (FRAME_BYTES - offset) as usize) };
        }
    }
}

/// Adds frames to those of all files, up to [`MAX_FRAMES`]. Returns whether they were added.
fn add(frames: u64) -> bool {
    let fits = |held: u64| held.checked_add(frames).filter(|all| *all <= MAX_FRAMES);
    IN_FILES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
}

fn release_frame(frame: PhysFrame) {
    IN_FILES.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: the frame came from a claim, and nothing refers to it once it is out of the list.
    unsafe { frames::free(frame) };
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.frames.drain(..).for_each(release_frame);
    }
}
