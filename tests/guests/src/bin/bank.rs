//! Reads the program's own logical counters in the bank, without system calls, and compares them
//! with the kernel's readings.
//!
//! `bank INSTRUCTIONS EVENTS`: the pinned event of instructions, and other events.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{format, vec::Vec};
use core::{
    arch::asm,
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
};

use tally::{
    LogicalCounter, Reading, Session, SessionConfig, Slice, Value, println, runtime::arguments,
    session::NO_BUDGET_PPM,
};
use tally_test_guests::Checks;

tally::main!(main);

/// Executes three instructions per iteration.
fn spin(iterations: u64) {
    // SAFETY: counts a register down.
    unsafe {
        asm!("2:", "nop", "sub {0}, 1", "jnz 2b", inout(reg) iterations => _, options(nomem, nostack));
    }
}

/// Executes loads, stores and branches in changing proportions.
fn work(memory: &mut [u64; 1024], iterations: u64) {
    let mut sum = iterations | 1;
    for iteration in 0..iterations {
        let slot = &mut memory[(sum >> 40) as usize % 1024];
        sum = sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ *slot;
        if sum & 3 == 0 {
            *slot = iteration;
        }
    }
    black_box(memory);
}

/// Instructions of a reading of `counter`: the median of many, because a group switch repeats the
/// reading that it interrupts.
fn cost(exact: LogicalCounter<'_>, counter: LogicalCounter<'_>) -> u64 {
    let mut costs = [0; 101];
    for cost in &mut costs {
        let start = exact.read();
        let middle = exact.read();
        let value = counter.read();
        let end = exact.read();
        // Both differences include a reading of the exact counter.
        *cost = (end - middle) - (middle - start);
        black_box(value);
    }
    costs.sort_unstable();
    costs[costs.len() / 2]
}

/// Least of several counts. The number of instructions between two readings is constant, except
/// that a reading interrupted by a group switch is repeated.
fn least_of(count: impl FnMut() -> u64) -> u64 {
    core::iter::repeat_with(count).take(7).min().expect("seven are taken")
}

/// Checks that differences over loops of known length are exact.
fn exact_differences(checks: &mut Checks, instructions: LogicalCounter<'_>) {
    let between = [1_000, 2_000, 1_000_000, 1_001_000].map(|iterations| {
        least_of(|| {
            let before = instructions.read();
            spin(iterations);
            instructions.read() - before
        })
    });
    checks.equal("instructions of 1,000 more iterations", between[1] - between[0], 3_000);
    checks.equal(
        "instructions of 1,000 more than a million iterations",
        between[3] - between[2],
        3_000,
    );
}

/// Checks that a reading takes 15 instructions, and a move of its value one.
fn cheap_readings(checks: &mut Checks, counters: &[LogicalCounter<'_>]) {
    let costs: Vec<u64> = counters[1..].iter().map(|counter| cost(counters[0], *counter)).collect();
    println!("bank: readings and a move of the value cost {costs:?} instructions");
    let cheap = costs.iter().all(|cost| *cost <= 15 + 1);
    checks.equal(&format!("readings cost {costs:?} instructions"), cheap, true);
}

fn growing_readings(checks: &mut Checks, counters: &[LogicalCounter<'_>]) {
    let mut memory = [0; 1024];
    let mut last: Vec<u64> = counters.iter().map(|_| 0).collect();
    let mut backwards = 0;
    for iterations in 0..2_000 {
        work(&mut memory, iterations);
        for (counter, last) in counters.iter().zip(&mut last) {
            let now = counter.read();
            backwards += u32::from(now < *last);
            *last = now;
        }
    }
    checks.equal("readings that run backwards", backwards, 0);
    checks.equal("counters that stay at 0", last.iter().filter(|last| **last == 0).count(), 0);
}

/// Compares a counter of a stopped session with the kernel's reading.
fn agreement(checks: &mut Checks, event: usize, counter: LogicalCounter<'_>, reading: &Reading) {
    let (count, details) = (counter.read(), counter.details());
    match reading.value {
        Value::Exact { count: truth } => checks.equal("an exact count in the bank", count, truth),
        Value::Estimated { estimate, half_width_95, .. } => {
            // The bank rounds down, the kernel to the nearest. A value of the bank is never below
            // an earlier one; its half width grows by the difference.
            let half_width = details.half_width_95.unwrap_or(0.0);
            let close = count + 1 >= estimate && count as f64 - estimate as f64 <= half_width + 1.0;
            checks.equal(&format!("event {event}: {count} and {estimate}"), close, true);
            // The stop cut a slice short: the kernel counts it as a whole slice that other groups
            // have not seen, the bank by its cycles. Only the bank's half width includes the amount
            // by which the value was raised, to within one event, because both are rounded.
            let own = half_width - count.saturating_sub(estimate) as f64;
            let near = (0.99 * half_width_95 - 1.0..1.5 * half_width_95 + 1.0).contains(&own);
            checks.equal(&format!("event {event}: {own} and {half_width_95}"), near, true);
            checks.equal("its slices", details.slices, reading.slices);
            let order = details.start_tsc < details.end_tsc && details.share < 1.0;
            checks.equal("the order of its last slice, and a share below 1", order, true);
        }
        Value::NotMeasured { reason } => panic!("event {event}: {reason:?}"),
    }
}

/// Count at which the threshold of a preloaded counter fired.
static FIRED_AT: AtomicU64 = AtomicU64::new(0);

extern "C" fn note(_event: usize, count: u64) {
    FIRED_AT.store(count, Ordering::Relaxed);
}

/// Resets and preloads the counter of instructions while it counts, and sets a threshold on the
/// shown value.
fn preloaded(checks: &mut Checks, session: &Session, instructions: LogicalCounter<'_>) {
    let mut shown = instructions.reset();
    let since = [1_000, 2_000].map(|iterations| {
        least_of(|| {
            shown.reset();
            spin(iterations);
            shown.read()
        })
    });
    checks.equal("instructions of 1,000 more since a reset", since[1] - since[0], 3_000);
    checks.equal("few more instructions than the loop's", since[0] - 3_000 < 100, true);
    checks.equal("an exact value", shown.details().half_width_95, Some(0.0));
    // The shown value wraps to 0 after 100,000 instructions.
    shown.preload(0_u64.wrapping_sub(100_000));
    let at = shown.count_at(0);
    // SAFETY: the handler uses only an atomic.
    let set = unsafe { session.set_threshold_handler(0, at, note) };
    checks.equal("a threshold at 0", set, Ok(()));
    spin(100_000);
    let now = shown.read();
    checks.equal("a value that began below 0", (200_000..300_000).contains(&now), true);
    let late = FIRED_AT.load(Ordering::Relaxed).wrapping_sub(at);
    checks.equal("its threshold fired at 0", late < 20, true);
}

/// Preloads a stopped counter, exact or estimated.
fn preloaded_at_rest(checks: &mut Checks, counter: LogicalCounter<'_>) {
    let (mut shown, whole) = (counter.preload(7), counter.details());
    checks.equal("a preloaded value", (shown.read(), shown.details().value), (7, 7));
    checks.equal("its count", shown.count_at(7), whole.value);
    checks.equal(
        "a half width of both",
        shown.details().half_width_95,
        whole.half_width_95.map(|it| 2.0 * it),
    );
    shown.reset();
    checks.equal("a reset value", shown.read(), 0);
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let exact = words.next().expect("usage: bank INSTRUCTIONS EVENTS");
    let events = words.next().expect("usage: bank INSTRUCTIONS EVENTS");
    let list = format!("{exact},{events}");
    let slice = Slice::Cycles(20_000);
    let config = SessionConfig { slice, budget_ppm: NO_BUDGET_PPM, ..SessionConfig::default() };
    let session = Session::open(&list, config).expect("the events exist");
    let mut checks = Checks::default();
    let bank = session.map().expect("it was not started");
    let counters: Vec<_> = (0..session.events())
        .map(|event| bank.counter(event).expect("the list has the event"))
        .collect();
    checks.equal("a counter before the start", counters[0].read(), 0);
    session.start().expect("it was not started");
    exact_differences(&mut checks, counters[0]);
    cheap_readings(&mut checks, &counters);
    growing_readings(&mut checks, &counters);
    preloaded(&mut checks, &session, counters[0]);
    session.stop().expect("it was started");
    let readings = session.read().expect("the session is open");
    for (event, (counter, reading)) in counters.iter().zip(&readings).enumerate() {
        agreement(&mut checks, event, *counter, reading);
        preloaded_at_rest(&mut checks, *counter);
    }
    println!("bank: done");
    checks.status()
}
