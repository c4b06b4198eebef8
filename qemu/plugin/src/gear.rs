//! Two gears: until a guest starts a counter or opens a region, nothing runs but the intercepts;
//! then every block and access is counted, for good.
//!
//! The change throws every translation away and takes some ten milliseconds, so it happens once:
//! guests stop and start counters all the time.

use std::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::{exec, exit, ffi, translate};

static PLUGIN: AtomicU64 = AtomicU64::new(0);
static HIGH: AtomicBool = AtomicBool::new(false);

/// Whether every block and access is counted.
pub(crate) fn is_high() -> bool {
    // Relaxed: QEMU stops all vCPUs between the change and the first translation under it.
    HIGH.load(Ordering::Relaxed)
}

/// Starts in the low gear, or where everything is to be counted, in the high one.
pub(crate) fn start(plugin: ffi::PluginId) {
    PLUGIN.store(plugin, Ordering::Relaxed);
    let high = exit::options().is_some_and(|options| options.from_boot);
    HIGH.store(high, Ordering::Relaxed);
    register();
}

/// Changes to the high gear, before the vCPU's next block.
pub(crate) fn up() {
    if !HIGH.swap(true, Ordering::Relaxed) {
        let plugin = PLUGIN.load(Ordering::Relaxed);
        // SAFETY: called from a vCPU's callback, long after installation.
        unsafe { ffi::qemu_plugin_reset(plugin, on_reset, ptr::null_mut()) };
    }
}

extern "C" fn on_reset(_: *mut c_void) {
    register();
}

fn register() {
    let plugin = PLUGIN.load(Ordering::Relaxed);
    let none = ptr::null_mut();
    // SAFETY: called at installation or from the reset's callback, where callbacks are registered.
    unsafe { ffi::qemu_plugin_register_vcpu_init_cb(plugin, exit::on_vcpu_init, none) };
    // SAFETY: likewise.
    unsafe { ffi::qemu_plugin_register_vcpu_tb_trans_cb(plugin, translate::on_translate, none) };
    // SAFETY: likewise.
    unsafe {
        ffi::qemu_plugin_register_vcpu_discon_cb(
            plugin,
            ffi::DISCON_INTERRUPT_OR_EXCEPTION,
            exec::on_discontinuity,
            none,
        );
    }
    // SAFETY: likewise.
    unsafe { ffi::qemu_plugin_register_flush_cb(plugin, translate::on_flush, none) };
    // SAFETY: likewise.
    unsafe { ffi::qemu_plugin_register_atexit_cb(plugin, exit::on_exit, none) };
}
