//! A plugin that does nothing, for comparison. QEMU calls it for each translation; it reads the
//! block's instructions, as a plugin that intercepts some of them must, and registers no callback
//! in the translated code.
//!
//! A guest's slowdown under this plugin is the cost of QEMU's plugin interface itself.

use std::ffi::{c_char, c_int, c_void};

/// The version of the plugin interface, which QEMU checks.
#[unsafe(no_mangle)]
#[used]
pub static qemu_plugin_version: c_int = 7;

type TransCb = extern "C" fn(*mut c_void, *mut c_void);

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, cb: TransCb, userdata: *mut c_void);
    fn qemu_plugin_tb_n_insns(tb: *const c_void) -> usize;
    fn qemu_plugin_tb_get_insn(tb: *const c_void, index: usize) -> *mut c_void;
    fn qemu_plugin_insn_data(insn: *const c_void, dest: *mut c_void, len: usize) -> usize;
}

/// The entry by which QEMU loads the plugin.
///
/// # Safety
/// Only QEMU may call it, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    plugin: u64,
    _: *const c_void,
    _: c_int,
    _: *const *const c_char,
) -> c_int {
    // SAFETY: called from installation, where callbacks are registered.
    unsafe { qemu_plugin_register_vcpu_tb_trans_cb(plugin, on_translate, std::ptr::null_mut()) };
    0
}

extern "C" fn on_translate(tb: *mut c_void, _: *mut c_void) {
    // SAFETY: the handle is this callback's.
    let count = unsafe { qemu_plugin_tb_n_insns(tb) };
    for index in 0..count {
        let mut bytes = [0u8; 16];
        // SAFETY: the handle is this callback's, and the index below the count.
        let insn = unsafe { qemu_plugin_tb_get_insn(tb, index) };
        // SAFETY: the buffer has the length that is passed.
        unsafe { qemu_plugin_insn_data(insn, bytes.as_mut_ptr().cast(), bytes.len()) };
        std::hint::black_box(bytes);
    }
}
