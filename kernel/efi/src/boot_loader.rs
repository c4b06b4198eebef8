//! Boot loader: a UEFI application inside this one, so that the firmware loads, and checks the
//! signature of, one file.
//!
//! The firmware does not know of it: to the boot services the running image is the outer one, which
//! has the same device. `tally-image` has laid out the application as it is in memory. The file
//! consists of 64-bit little-endian words: the offset of the entry point; the number of
//! relocations; their offsets; then, to the end, the memory of an application at address 0.

use core::{mem, slice};

use r_efi::efi;

use crate::{firmware::Firmware, paging::PAGE_BYTES};

/// The entry point of a UEFI application.
pub type Entry = extern "efiapi" fn(efi::Handle, *mut efi::SystemTable) -> efi::Status;

/// Bytes of a word of the file.
const WORD_BYTES: usize = size_of::<u64>();

/// Loads the application in `file` into new memory. Returns its entry point.
///
/// # Errors
/// There is no memory; the text reports it.
///
/// # Panics
/// The file was not made by `tally-image`, or is damaged.
pub fn load(firmware: Firmware, file: &[u8]) -> Result<Entry, &'static str> {
    let (words, _) = file.as_chunks::<WORD_BYTES>();
    let word = |index: usize| u64::from_le_bytes(words[index]) as usize;
    let (entry, count) = (word(0), word(1));
    let application = &file[(2 + count) * WORD_BYTES..];
    let pages = application.len().div_ceil(PAGE_BYTES);
    let start = firmware
        .allocate(pages, u64::MAX)
        .map_err(|_| "tally: no memory for the boot loader\r\n")?;
    // SAFETY: these pages are new, and never freed.
    let memory = unsafe { slice::from_raw_parts_mut(start, application.len()) };
    memory.copy_from_slice(application);
    for index in 2..2 + count {
        let at = memory[word(index)..].first_chunk_mut().expect("a relocation is in the memory");
        *at = u64::from_le_bytes(*at).wrapping_add(start as u64).to_le_bytes();
    }
    // SAFETY: the entry point of a UEFI application, which is in its place now.
    Ok(unsafe { mem::transmute::<*mut u8, Entry>(&raw mut memory[entry]) })
}
