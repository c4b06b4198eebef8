//! Time since the kernel was entered, by the time-stamp counter.

use core::arch::x86_64::_rdtsc;

use spin::Once;

/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;

static START: Once<u64> = Once::new();
static DATE_NS: Once<u64> = Once::new();
static SPEED: Once<Speed> = Once::new();

/// The counter's speed: it ticks `ticks` times in `nanoseconds`.
struct Speed {
    ticks: u64,
    nanoseconds: u64,
}

/// Sets the time to 0. At boot, once.
pub fn start() {
    START.call_once(tsc);
}

/// The time-stamp counter.
#[inline(always)]
pub fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has RDTSC; it has no effect on memory.
    unsafe { _rdtsc() }
}

/// Ticks of the counter during `wait`; `None` if the wait fails.
pub fn measure(wait: impl FnOnce() -> Option<()>) -> Option<u64> {
    let start = tsc();
    wait()?;
    Some(tsc().wrapping_sub(start).max(1))
}

/// Sets the counter's speed: it ticks `ticks` times in `nanoseconds`. Once.
pub fn set_speed(ticks: u64, nanoseconds: u64) {
    SPEED.call_once(|| Speed { ticks, nanoseconds });
}

/// The counter's frequency in Hz; 0 until it is known.
pub fn tsc_hz() -> u64 {
    let Some(Speed { ticks, nanoseconds }) = SPEED.get() else { return 0 };
    (u128::from(*ticks) * u128::from(SECOND_NS) / u128::from(*nanoseconds)) as u64
}

/// Waits. The counter's speed is known.
pub fn wait_us(microseconds: u64) {
    let end = now_ns() + microseconds * 1000;
    while now_ns() < end {
        core::hint::spin_loop();
    }
}

/// Nanoseconds since [`start`]; 0 until the counter's speed is known.
pub fn now_ns() -> u64 {
    START.get().map_or(0, |start| to_ns(tsc().wrapping_sub(*start)))
}

/// Converts ticks of the counter to nanoseconds; 0 until its speed is known.
pub fn to_ns(ticks: u64) -> u64 {
    let Some(speed) = SPEED.get() else { return 0 };
    (u128::from(ticks) * u128::from(speed.nanoseconds) / u128::from(speed.ticks)) as u64
}

/// Numbers that the time is computed from: the counter's value at time 0, its ticks in a number of
/// nanoseconds, that number, and [`date_at_start_ns`]. Nothing changes them while programs run.
pub fn parameters() -> [u64; 4] {
    let [ticks, nanoseconds] = SPEED.get().map_or([1, 0], |speed| [speed.ticks, speed.nanoseconds]);
    [START.get().copied().unwrap_or(0), ticks, nanoseconds, date_at_start_ns()]
}

/// Sets the date at which the machine started, in seconds since 1970. Once.
pub fn set_date(seconds: u64) {
    DATE_NS.call_once(|| seconds.saturating_mul(SECOND_NS));
}

/// The date, in nanoseconds since 1970.
pub fn date_ns() -> u64 {
    date_at_start_ns().saturating_add(now_ns())
}

/// The date at which the machine started, in nanoseconds since 1970.
pub fn date_at_start_ns() -> u64 {
    DATE_NS.get().copied().unwrap_or(0)
}

/// A time as the words of a `struct timespec`: seconds, and nanoseconds below a second.
pub fn to_timespec(nanoseconds: u64) -> [u64; 2] {
    [nanoseconds / SECOND_NS, nanoseconds % SECOND_NS]
}
