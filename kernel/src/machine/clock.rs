//! Time since the machine began to be measured, by the time-stamp counter.

use core::arch::x86_64::_rdtsc;

use spin::Once;

static CLOCK: Once<Clock> = Once::new();

struct Clock {
    start: u64,
    ticks: u64,
    nanoseconds: u64,
}

fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has RDTSC; it has no effect on memory.
    unsafe { _rdtsc() }
}

/// Does `wait`, which takes so many nanoseconds, and learns the speed of the counter from it. Once.
pub fn measure<T>(nanoseconds: u64, wait: impl FnOnce() -> T) -> T {
    let start = tsc();
    let answer = wait();
    let ticks = tsc().wrapping_sub(start).max(1);
    CLOCK.call_once(|| Clock { start, ticks, nanoseconds });
    answer
}

/// Nanoseconds since then.
pub fn now_ns() -> u64 {
    let Some(clock) = CLOCK.get() else { return 0 };
    let passed = u128::from(tsc().wrapping_sub(clock.start));
    (passed * u128::from(clock.nanoseconds) / u128::from(clock.ticks)) as u64
}
