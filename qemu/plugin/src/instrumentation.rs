//! Instrumentation of the guest: until the guest starts a counter or opens a region, only the
//! intercepted instructions; from then on, for good, every block and memory access.
//!
//! The change discards every translation and takes some ten milliseconds, so it happens only once:
//! guests stop and start counters all the time.

use std::{
    ffi::c_void,
    ptr,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{ffi, options};

static PLUGIN: AtomicU64 = AtomicU64::new(0);
/// The function that registers every callback with QEMU, as a reset drops them.
static REGISTER: OnceLock<fn(ffi::PluginId)> = OnceLock::new();
/// Whether full instrumentation was requested, and whether translations have it.
static ASKED: AtomicBool = AtomicBool::new(false);
static FULL: AtomicBool = AtomicBool::new(false);

/// Whether QEMU runs with `-icount`.
static ICOUNT: AtomicBool = AtomicBool::new(false);
/// The port by which a guest sets the clock (RTC) of a PC.
const RTC_PORT: u16 = 0x71;
/// Time of the guest's last write to this port.
static RTC_WRITTEN: Mutex<Option<Instant>> = Mutex::new(None);
/// Time for which one of QEMU's timers stays armed after the guest set the clock, with a margin:
/// QEMU reports that to its management at most once a second.
const RTC_TIMER: Duration = Duration::from_millis(1100);

/// Returns whether every block and access is instrumented.
pub(crate) fn is_full() -> bool {
    // Relaxed: the value changes only while QEMU has stopped all vCPUs.
    FULL.load(Ordering::Relaxed)
}

/// Starts instrumentation, in full if the options request it. `icount` is whether QEMU counts
/// instructions; `register` registers the plugin's callbacks, now and after each reset.
pub(crate) fn start(plugin: ffi::PluginId, icount: bool, register: fn(ffi::PluginId)) {
    PLUGIN.store(plugin, Ordering::Relaxed);
    ICOUNT.store(icount, Ordering::Relaxed);
    let full = options::get().is_some_and(|options| options.from_boot);
    ASKED.store(full, Ordering::Relaxed);
    FULL.store(full, Ordering::Relaxed);
    let register = REGISTER.get_or_init(|| register);
    register(plugin);
}

/// Notes that the guest is about to write to an I/O port.
pub(crate) fn note_port_write(port: u16) {
    if port != RTC_PORT || !ICOUNT.load(Ordering::Relaxed) {
        return;
    }
    *RTC_WRITTEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// Waits until QEMU's timer for the real-time clock has expired, if the guest has set the clock;
/// firmware does so just before it starts a kernel. The timer runs in the host's time. With
/// `-icount`, an expiring timer ends a block in its middle, at a different place in each run. The
/// timing model works block by block, so its cycles would differ.
fn wait_for_rtc_timer() {
    let written = RTC_WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(written) = written {
        thread::sleep(RTC_TIMER.saturating_sub(written.elapsed()));
    }
}

/// Instruments every block and access, from the vCPU's next block on.
pub(crate) fn enable_full() {
    if !ASKED.swap(true, Ordering::Relaxed) {
        wait_for_rtc_timer();
        let plugin = PLUGIN.load(Ordering::Relaxed);
        // SAFETY: called from a vCPU's callback, long after installation.
        unsafe { ffi::qemu_plugin_reset(plugin, on_reset, ptr::null_mut()) };
    }
}

/// Called when QEMU has stopped all vCPUs and discards their translations. Translations must not be
/// full before this point: another vCPU could run them between partial ones, and their intercepted
/// instructions would be attributed to its pending block.
extern "C" fn on_reset(_: *mut c_void) {
    FULL.store(true, Ordering::Relaxed);
    if let Some(register) = REGISTER.get() {
        register(PLUGIN.load(Ordering::Relaxed));
    }
}
