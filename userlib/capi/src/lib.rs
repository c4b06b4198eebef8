//! C library: the functions that `tally.h` declares.
//!
//! The structures have the layout of the system-call interface, so most functions are one call. The
//! C program `tests/guests/c/capi.c` tests the header against this file.
//!
//! The archive requires nothing from the program that it is linked with: it has its own heap, uses
//! the caller's stack, and defines no global symbols other than the functions of `tally.h`
//! (`xtask/src/build/archive.rs`).

#![no_std]

extern crate alloc;

mod breakdown;
mod cpus;
mod opening;
mod parts;
mod phases;
mod regions;

use core::ffi::{CStr, c_char, c_int};

use tally_rust::{
    Error, Handler, heap, sequences,
    session::{ConfigWords, StatsWords},
    sys,
    sys::errno::EINTR,
};

use opening::{Detail, open_by_number};

#[global_allocator]
static HEAP: heap::Heap = heap::new();

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    sys::exit_on_panic(info)
}

/// Opens a session. See `tally.h`.
///
/// # Safety
/// `events` is a string, `config` is null or points to six words, `detail` points to
/// `detail_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_open(
    events: *const c_char,
    config: *const ConfigWords,
    detail: *mut c_char,
    detail_bytes: usize,
) -> i64 {
    // SAFETY: the caller guarantees it.
    unsafe { tally_open_on(0, events, config, detail, detail_bytes) }
}

/// Opens a session on another program. See `tally.h`.
///
/// # Safety
/// See [`tally_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_open_on(
    program: i64,
    events: *const c_char,
    config: *const ConfigWords,
    detail: *mut c_char,
    detail_bytes: usize,
) -> i64 {
    // SAFETY: the caller guarantees it.
    unsafe { open_by_number(program as u64, events, config, detail, detail_bytes) }
}

/// Starts or resumes counting. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_start(session: i64) -> i64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::tally_call(sys::SESSION_START, [session as u64, 0, 0, 0, 0, 0]) }
}

/// Stops counting. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_stop(session: i64) -> i64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::tally_call(sys::SESSION_STOP, [session as u64, 0, 0, 0, 0, 0]) }
}

/// Reads values. See `tally.h`.
///
/// # Safety
/// `readings` has room for `n` readings of eight words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_read(session: i64, readings: *mut [u64; 8], n: usize) -> i64 {
    // SAFETY: the caller guarantees it.
    unsafe {
        sys::tally_call(sys::SESSION_READ, [session as u64, readings as u64, n as u64, 0, 0, 0])
    }
}

/// Reads the engine's statistics. See `tally.h`.
///
/// # Safety
/// `stats` has room for its words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_stats(session: i64, stats: *mut StatsWords) -> i64 {
    // SAFETY: the caller guarantees it.
    unsafe { sys::tally_call(sys::SESSION_STATS, [session as u64, stats as u64, 0, 0, 0, 0]) }
}

/// Maps a session's logical counter bank. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_map(session: i64) -> i64 {
    cpus::tally_map_cpu(session, 0)
}

/// Returns whether an address is not a bank, but an error of [`tally_map`], or null.
fn is_no_bank(bank: *const u64) -> bool {
    bank as i64 <= 0
}

/// Stops a bank's counters. See `tally.h`.
///
/// # Safety
/// `bank` is a result of [`tally_map`] for an open session, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_bank_stop(bank: *const u64) {
    if !is_no_bank(bank) {
        // SAFETY: the caller guarantees it.
        unsafe { sequences::stop(bank) }
    }
}

/// Starts a bank's counters. See `tally.h`.
///
/// # Safety
/// See [`tally_bank_stop`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_bank_start(_session: i64, bank: *const u64) -> i64 {
    match bank as i64 {
        0 => Error::BadPointer.to_return(),
        error @ ..0 => error,
        // SAFETY: the caller guarantees it.
        _ => unsafe { sequences::start(bank) },
    }
}

/// Sets a threshold. See `tally.h`.
///
/// # Safety
/// `handler` may be called anywhere in the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_threshold(
    session: i64,
    event: usize,
    count: u64,
    handler: Option<Handler>,
) -> i64 {
    // SAFETY: the caller guarantees it.
    unsafe { cpus::tally_cpu_threshold(session, 0, event, count, handler) }
}

/// Closes a session. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_close(session: i64) -> i64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::tally_call(sys::SESSION_CLOSE, [session as u64, 0, 0, 0, 0, 0]) }
}

/// Samples an event. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_sample(session: i64, event: usize, period: u64) -> i64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::tally_call(sys::SESSION_SAMPLE, [session as u64, event as u64, period, 0, 0, 0]) }
}

/// Samples an event, with the stack. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_sample_with_stack(
    session: i64,
    event: usize,
    period: u64,
    stack_bytes: u64,
) -> i64 {
    let arguments = [session as u64, event as u64, period, stack_bytes, 0, 0];
    // SAFETY: the call has no buffer.
    unsafe { sys::tally_call(sys::SESSION_SAMPLE, arguments) }
}

/// Reads the counts of the counter unit. See `tally.h`.
///
/// # Safety
/// `counts` has room for `n` words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_unit_counts(session: i64, counts: *mut u64, n: usize) -> i64 {
    let arguments = [session as u64, counts as u64, n as u64, 0, 0, 0];
    // SAFETY: the caller guarantees it.
    unsafe { sys::tally_call(sys::SESSION_UNIT, arguments) }
}

/// Reads the addresses of samples. See `tally.h`.
///
/// # Safety
/// `addresses` has room for `n` pairs of words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_samples(session: i64, addresses: *mut [u64; 2], n: usize) -> i64 {
    let arguments = [session as u64, addresses as u64, n as u64, 0, 0, 0];
    // SAFETY: the caller guarantees it.
    unsafe { sys::tally_call(sys::SESSION_SAMPLES, arguments) }
}

/// Opens direct mode. See `tally.h`.
///
/// # Safety
/// `events` is a string, `indices` has room for one word for each of its events, `detail` for
/// `detail_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_direct_open(
    events: *const c_char,
    mode: u64,
    indices: *mut u64,
    detail: *mut c_char,
    detail_bytes: usize,
) -> i64 {
    // SAFETY: the caller guarantees it.
    let bytes = unsafe { CStr::from_ptr(events) }.count_bytes();
    let arguments =
        [events as u64, bytes as u64, mode, indices as u64, detail as u64, detail_bytes as u64];
    let detail = Detail { text: detail, bytes: detail_bytes };
    // SAFETY: the caller guarantees it.
    unsafe {
        detail.clear();
        detail.explain(sys::tally_call(sys::DIRECT_OPEN, arguments))
    }
}

/// Closes direct mode. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_direct_close() -> i64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::tally_call(sys::DIRECT_CLOSE, [0; 6]) }
}

/// Loads a program. See `tally.h`.
///
/// # Safety
/// `words` has `bytes` bytes, `detail` room for `detail_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_program_load(
    words: *const c_char,
    bytes: usize,
    detail: *mut c_char,
    detail_bytes: usize,
) -> i64 {
    let arguments = [words as u64, bytes as u64, detail as u64, detail_bytes as u64, 0, 0];
    let detail = Detail { text: detail, bytes: detail_bytes };
    // SAFETY: the caller guarantees it.
    unsafe {
        detail.clear();
        detail.explain(sys::tally_call(sys::PROGRAM_LOAD, arguments))
    }
}

/// Starts a program. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_program_run(program: i64) -> i64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::tally_call(sys::PROGRAM_RUN, [program as u64, 0, 0, 0, 0, 0]) }
}

/// Waits for a program's end. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_program_wait(program: i64) -> i64 {
    loop {
        // SAFETY: the call has no buffer.
        match unsafe { sys::tally_call(sys::PROGRAM_WAIT, [program as u64, 0, 0, 0, 0, 0]) } {
            interrupted if interrupted == -EINTR => {}
            answer => break answer,
        }
    }
}

/// Writes text. See `tally.h`.
///
/// # Safety
/// `text` has `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_write(output: c_int, text: *const c_char, bytes: usize) -> i64 {
    // SAFETY: the caller guarantees it.
    unsafe { sys::call(sys::WRITE, [output as u64, text as u64, bytes as u64, 0, 0, 0]) }
}
