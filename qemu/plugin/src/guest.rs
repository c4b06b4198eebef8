//! The guest's address translation, through QEMU's interface.

use crate::ffi;

/// Returns the physical address of a virtual one in the current address space, or the virtual
/// address itself where it is not mapped.
///
/// To be called from a vCPU's callback or from the translation callback.
pub(crate) fn physical(address: u64) -> u64 {
    let mut found = address;
    // SAFETY: the caller's promise: this is vCPU context.
    unsafe { ffi::qemu_plugin_translate_vaddr(address, &mut found) };
    found
}
