//! The start information that QEMU passes to the guest: `struct hvm_start_info`, version 1.

use core::ffi::CStr;

/// `XEN_HVM_MEMMAP_TYPE_RAM`: memory that nothing else uses. The types are those of the BIOS call
/// E820H.
const RAM: u32 = 1;

/// `struct hvm_start_info`.
#[repr(C)]
#[derive(Debug)]
pub struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    module_count: u32,
    modules: u64,
    command_line: u64,
    rsdp: u64,
    memory_map: u64,
    memory_map_entries: u32,
    reserved: u32,
}

/// `struct hvm_memmap_table_entry`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryEntry {
    /// Physical address.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
    kind: u32,
    reserved: u32,
}

impl MemoryEntry {
    /// An entry of no bytes.
    pub const EMPTY: MemoryEntry = MemoryEntry { start: 0, len: 0, kind: 0, reserved: 0 };

    /// The type as in the BIOS call E820H.
    #[must_use]
    pub fn kind(&self) -> u32 {
        self.kind
    }

    /// Returns whether this is memory that nothing else uses.
    #[must_use]
    pub fn is_ram(&self) -> bool {
        self.kind == RAM
    }
}

impl StartInfo {
    /// The text of `-append`; empty if it is not UTF-8.
    #[must_use]
    pub fn command_line(&'static self) -> &'static str {
        if self.command_line == 0 {
            return "";
        }
        // SAFETY: the structure's definition: a zero-terminated string, or 0. The entry maps the
        // first 4 GiB, and nothing writes there while the guest reads its start information.
        let text = unsafe { CStr::from_ptr(self.command_line as *const _) };
        text.to_str().unwrap_or_default()
    }

    /// The physical address of ACPI's root system description pointer, if there is one.
    #[must_use]
    pub fn rsdp(&self) -> Option<u64> {
        (self.rsdp != 0).then_some(self.rsdp)
    }

    /// The machine's memory.
    #[must_use]
    pub fn memory_map(&'static self) -> &'static [MemoryEntry] {
        if self.memory_map == 0 {
            return &[];
        }
        let entries = self.memory_map as *const MemoryEntry;
        // SAFETY: the structure's definition: so many entries at this address, below 4 GiB.
        unsafe { core::slice::from_raw_parts(entries, self.memory_map_entries as usize) }
    }
}
