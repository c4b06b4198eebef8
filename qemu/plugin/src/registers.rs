//! The guest's registers, through QEMU's interface.
//!
//! Every function here may be called only from the vCPU's own callback, registered with the flag
//! that the access needs.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_uint},
};

use crate::ffi;

/// The registers that the plugin reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Reg {
    Rax,
    Rbx,
    Rcx,
    Rdx,
    Rsi,
    Rdi,
    Rbp,
    Rsp,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
    Rip,
    Cs,
    Cr3,
    Cr4,
    Efer,
}

/// QEMU's names of the registers, in the same order.
const NAMES: [&str; 21] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "cs", "cr3", "cr4", "efer",
];

/// Register handles of a vCPU, and the buffer for values.
pub(crate) struct GuestRegisters {
    handles: [*mut ffi::RegisterHandle; NAMES.len()],
    buffer: *mut ffi::GByteArray,
}

impl GuestRegisters {
    /// The handles of the vCPU in whose callback this is called; `None` if QEMU lacks a register.
    pub(crate) fn of_current_vcpu() -> Option<GuestRegisters> {
        // SAFETY: called from the vCPU's initialization callback or a later one.
        let list = unsafe { ffi::qemu_plugin_get_registers() };
        if list.is_null() {
            return None;
        }
        // SAFETY: QEMU returns a GArray, which begins with data and length.
        let (data, len) = unsafe { ((*list).data, (*list).len) };
        // SAFETY: its elements are descriptors, and nothing frees or changes them.
        let list = unsafe {
            std::slice::from_raw_parts(data.cast::<ffi::RegisterDescriptor>(), len as usize)
        };
        let by_name: BTreeMap<_, _> = list
            .iter()
            .map(|descriptor| {
                // SAFETY: a register's name is a string that lives as long as QEMU.
                let name = unsafe { CStr::from_ptr(descriptor.name) };
                (name.to_string_lossy().into_owned(), descriptor.handle)
            })
            .collect();
        let mut handles = [std::ptr::null_mut(); NAMES.len()];
        for (handle, name) in handles.iter_mut().zip(NAMES) {
            *handle = *by_name.get(name)?;
        }
        // SAFETY: GLib is part of QEMU.
        let buffer = unsafe { ffi::g_byte_array_new() };
        Some(GuestRegisters { handles, buffer })
    }

    /// Reads a register.
    pub(crate) fn read(&mut self, register: Reg) -> u64 {
        // SAFETY: only this vCPU uses the buffer.
        unsafe { ffi::g_byte_array_set_size(self.buffer, 0) };
        // SAFETY: the handle is this vCPU's; every caller runs in a callback that may read.
        unsafe { ffi::qemu_plugin_read_register(self.handles[register as usize], self.buffer) };
        let mut value = [0; 8];
        let bytes = buffer_bytes(self.buffer);
        let len = bytes.len().min(8);
        value[..len].copy_from_slice(&bytes[..len]);
        u64::from_le_bytes(value)
    }

    /// Writes a 64-bit register.
    pub(crate) fn write(&mut self, register: Reg, value: u64) {
        fill_buffer(self.buffer, &value.to_le_bytes());
        // SAFETY: the handle is this vCPU's; every caller runs in a callback that may write.
        unsafe { ffi::qemu_plugin_write_register(self.handles[register as usize], self.buffer) };
    }

    /// Reads physical memory, devices included, as the current vCPU sees it.
    pub(crate) fn read_physical(&mut self, address: u64) -> Option<u32> {
        read_physical(self.buffer, address).map(u32::from_le_bytes)
    }

    /// Writes physical memory, devices included; returns whether that succeeded.
    pub(crate) fn write_physical(&mut self, address: u64, bytes: &[u8]) -> bool {
        fill_buffer(self.buffer, bytes);
        // SAFETY: called from a vCPU's callback.
        let result = unsafe { ffi::qemu_plugin_write_memory_hwaddr(address, self.buffer) };
        result == 0
    }

    /// Writes bytes at a virtual address; returns whether that succeeded.
    pub(crate) fn write_virtual(&mut self, address: u64, bytes: &[u8]) -> bool {
        fill_buffer(self.buffer, bytes);
        // SAFETY: called from a vCPU's callback.
        unsafe { ffi::qemu_plugin_write_memory_vaddr(address, self.buffer) }
    }

    /// Reads bytes at a virtual address.
    pub(crate) fn read_virtual<const BYTES: usize>(&mut self, address: u64) -> Option<[u8; BYTES]> {
        // SAFETY: only this vCPU uses the buffer.
        unsafe { ffi::g_byte_array_set_size(self.buffer, 0) };
        // SAFETY: called from a vCPU's callback.
        let found = unsafe { ffi::qemu_plugin_read_memory_vaddr(address, self.buffer, BYTES) };
        found.then_some(())?;
        buffer_bytes(self.buffer).get(..BYTES)?.try_into().ok()
    }
}

/// Reads physical memory, devices included, as the current vCPU sees it, through a buffer that only
/// the caller uses.
pub(crate) fn read_physical<const BYTES: usize>(
    buffer: *mut ffi::GByteArray,
    address: u64,
) -> Option<[u8; BYTES]> {
    // SAFETY: the buffer is GLib's, and only the caller's.
    unsafe { ffi::g_byte_array_set_size(buffer, 0) };
    // SAFETY: called from a vCPU's callback.
    let result = unsafe { ffi::qemu_plugin_read_memory_hwaddr(address, buffer, BYTES) };
    let bytes = buffer_bytes(buffer);
    (result == 0).then_some(())?;
    bytes.get(..BYTES)?.try_into().ok()
}

fn buffer_bytes<'a>(buffer: *mut ffi::GByteArray) -> &'a [u8] {
    // SAFETY: a GByteArray begins with data and length.
    let (data, len) = unsafe { ((*buffer).data, (*buffer).len) };
    if len == 0 {
        return &[];
    }
    // SAFETY: GLib keeps `len` bytes there, and only the vCPU that owns the buffer touches them.
    unsafe { std::slice::from_raw_parts(data, len as usize) }
}

fn fill_buffer(buffer: *mut ffi::GByteArray, bytes: &[u8]) {
    // SAFETY: the buffer belongs to the calling vCPU.
    unsafe { ffi::g_byte_array_set_size(buffer, bytes.len() as c_uint) };
    // SAFETY: a GByteArray begins with its data.
    let data = unsafe { (*buffer).data };
    // SAFETY: it has this many bytes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
}
