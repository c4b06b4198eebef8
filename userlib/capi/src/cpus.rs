//! Sessions on whole CPUs, and instances of sessions.

use core::ffi::c_char;

use tally_rust::{
    CpuSetWords, Handler, Scope, SessionConfig, sequences, session::ConfigWords, sys,
};

use crate::opening::open_by_number;

/// Opens a session on whole CPUs. See `tally.h`.
///
/// # Safety
/// See [`super::tally_open`]; `cpus` points to a set, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_open_cpus(
    cpus: *const CpuSetWords,
    events: *const c_char,
    config: *const ConfigWords,
    detail: *mut c_char,
    detail_bytes: usize,
) -> i64 {
    let apart = SessionConfig { scope: Scope::Cpus, ..SessionConfig::default() }.to_words();
    // SAFETY: the caller guarantees it.
    let mut words = unsafe { config.as_ref() }.copied().unwrap_or(apart);
    // Word 5 holds the flags.
    words[5] |= apart[5];
    // SAFETY: the caller guarantees it.
    unsafe { open_by_number(cpus as u64, events, &raw const words, detail, detail_bytes) }
}

/// Writes an instance with its readings. See `tally.h`.
///
/// # Safety
/// `instance` has room for its words, and `readings` for `n`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_instance(
    session: i64,
    index: usize,
    instance: *mut [u64; 8],
    readings: *mut [u64; 8],
    n: usize,
) -> i64 {
    let [to, buffer] = [instance, readings].map(|pointer| pointer as u64);
    let arguments = [session as u64, index as u64, to, buffer, n as u64, 0];
    // SAFETY: the caller guarantees it.
    unsafe { sys::tally_call(sys::SESSION_INSTANCE, arguments) }
}

/// Maps a CPU's logical counter bank. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_map_cpu(session: i64, index: usize) -> i64 {
    let arguments = [session as u64, index as u64, sequences::address(), 0, 0, 0];
    // SAFETY: the call maps new memory, which is unused.
    unsafe { sys::tally_call(sys::SESSION_MAP, arguments) }
}

/// Sets a threshold of a CPU. See `tally.h`.
///
/// # Safety
/// See [`super::tally_threshold`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_cpu_threshold(
    session: i64,
    index: usize,
    event: usize,
    count: u64,
    handler: Option<Handler>,
) -> i64 {
    let [entry, data] = handler.map_or([0, 0], tally_rust::handler_words);
    let arguments = [session as u64, event as u64, count, entry, data, index as u64];
    // SAFETY: the call has no buffer, and the caller guarantees the handler.
    unsafe { sys::tally_call(sys::SESSION_THRESHOLD, arguments) }
}
