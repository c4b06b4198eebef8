//! The guest's address translation and physical memory, through QEMU's interface.

use tally_model::{CODE_LINE_BYTES, PageSize};

use crate::{ffi, paging::PageTables, registers};

thread_local! {
    /// Buffer for reads, one per vCPU: each vCPU has its own thread.
    // SAFETY: GLib is part of QEMU.
    static BUFFER: *mut ffi::GByteArray = unsafe { ffi::g_byte_array_new() };
}

/// Returns the physical address of a virtual one in the current address space, or the virtual
/// address itself if it is not mapped.
///
/// To be called from a vCPU's callback or from the translation callback.
pub(crate) fn physical(address: u64) -> u64 {
    let mut found = address;
    // SAFETY: the caller's promise: this is vCPU context.
    unsafe { ffi::qemu_plugin_translate_vaddr(address, &mut found) };
    found
}

/// Reads physical memory, devices included, as the current vCPU sees it.
///
/// To be called from a vCPU's callback.
pub(crate) fn read_physical(address: u64) -> Option<u32> {
    let bytes = BUFFER.with(|buffer| registers::read_physical(*buffer, address));
    bytes.map(u32::from_le_bytes)
}

/// Reads a line of physical memory. To be called from a vCPU's callback.
pub(crate) fn read_line(address: u64) -> Option<[u8; CODE_LINE_BYTES]> {
    BUFFER.with(|buffer| registers::read_physical(*buffer, address))
}

/// The size of the page at an address, by the page tables of [`PageTables::word`].
///
/// To be called from a vCPU's callback.
pub(crate) fn page_size(tables: u64, address: u64) -> PageSize {
    let bits = PageTables::of_word(tables).size_bits(address, read_physical);
    PageSize::of_bits(bits).unwrap_or_default()
}
