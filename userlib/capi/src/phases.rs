//! Phases: the functions that `tally_phase.h` declares.

use tally_rust::{Handler, sys};

/// Tracks phases. See `tally_phase.h`.
///
/// # Safety
/// `config` points to four words; `handler` may be called anywhere in the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_track_phases(
    session: i64,
    config: *const [u64; 4],
    handler: Option<Handler>,
) -> i64 {
    let [entry, data] = handler.map_or([0, 0], tally_rust::handler_words);
    let arguments = [session as u64, config as u64, entry, data, 0, 0];
    // SAFETY: the caller guarantees it.
    unsafe { sys::tally_call(sys::SESSION_PHASES, arguments) }
}

/// Writes the last interval. See `tally_phase.h`.
///
/// # Safety
/// `phase` is valid for writing eight words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_phase(session: i64, phase: *mut [u64; 8]) -> i64 {
    // SAFETY: the caller guarantees it.
    unsafe { sys::tally_call(sys::SESSION_PHASE, [session as u64, phase as u64, 0, 0, 0, 0]) }
}
