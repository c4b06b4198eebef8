//! Two gears: until a guest starts a counter or opens a region, nothing runs but the intercepts;
//! then every block and access is counted, for good.
//!
//! The change throws every translation away and takes some ten milliseconds, so it happens once:
//! guests stop and start counters all the time.

use std::{
    ffi::c_void,
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{exec, exit, ffi, translate};

static PLUGIN: AtomicU64 = AtomicU64::new(0);
static HIGH: AtomicBool = AtomicBool::new(false);

/// Whether QEMU counts instructions.
static COUNTED: AtomicBool = AtomicBool::new(false);
/// The port by which a PC's clock is set.
const CLOCK_PORT: u16 = 0x71;
/// When it was last written to.
static CLOCK_SET: Mutex<Option<Instant>> = Mutex::new(None);
/// For so long QEMU remembers that a guest has set the clock, as it tells that to management at most
/// once a second, and somewhat longer.
const CLOCK_REMEMBERED: Duration = Duration::from_millis(1100);

/// Whether every block and access is counted.
pub(crate) fn is_high() -> bool {
    // Relaxed: QEMU stops all vCPUs between the change and the first translation under it.
    HIGH.load(Ordering::Relaxed)
}

/// Starts in the low gear, or where everything is to be counted, in the high one; `counted` says whether
/// QEMU counts instructions.
pub(crate) fn start(plugin: ffi::PluginId, counted: bool) {
    PLUGIN.store(plugin, Ordering::Relaxed);
    COUNTED.store(counted, Ordering::Relaxed);
    let high = exit::options().is_some_and(|options| options.from_boot);
    HIGH.store(high, Ordering::Relaxed);
    register();
}

/// The guest is about to write to a port.
pub(crate) fn note_port(port: u16) {
    if port != CLOCK_PORT || !COUNTED.load(Ordering::Relaxed) {
        return;
    }
    *CLOCK_SET.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// Waits until QEMU has forgotten that the guest has set the clock, as firmware does just before it
/// starts a kernel. QEMU forgets it by a timer of the host's time; where it counts instructions, such a
/// timer that is near ends a block in its middle, at another place in each run, and the model of time,
/// whose unit is the block, would show that by some cycles.
fn wait_for_clock() {
    let set = CLOCK_SET.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(set) = set {
        thread::sleep(CLOCK_REMEMBERED.saturating_sub(set.elapsed()));
    }
}

/// Changes to the high gear, before the vCPU's next block.
pub(crate) fn up() {
    if !HIGH.swap(true, Ordering::Relaxed) {
        wait_for_clock();
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
