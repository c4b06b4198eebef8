//! Breakdown of cycles: the functions that `tally_breakdown.h` declares.

use alloc::vec::Vec;
use core::ffi::c_char;

use tally_rust::{CyclePart, Cycles, Error, SessionConfig, lock::Lock, session::ConfigWords, sys};

use crate::opening::Detail;

/// Open breakdown sessions of this program.
static OPEN: Lock<Vec<Cycles>> = Lock::new(Vec::new());

/// Bytes of a name, including the terminating zero byte.
const NAME_BYTES: usize = 40;

/// Part of the cycles, as `tally_breakdown.h` declares it.
#[repr(C)]
pub struct Part {
    name: [u8; NAME_BYTES],
    cycles: f64,
    half_width_95: f64,
    share: f64,
    cycles_per_instruction: f64,
    level: u32,
}

impl Part {
    fn of(part: &CyclePart) -> Part {
        let mut name = [0; NAME_BYTES];
        let text = part.name.as_bytes();
        let length = text.len().min(NAME_BYTES - 1);
        name[..length].copy_from_slice(&text[..length]);
        Part {
            name,
            cycles: part.cycles,
            half_width_95: part.half_width_95,
            share: part.share,
            cycles_per_instruction: part.cpi,
            level: part.level.into(),
        }
    }
}

/// Opens a session. See `tally_breakdown.h`.
///
/// # Safety
/// `config` is null or points to six words, `detail` points to `detail_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_breakdown_open(
    config: *const ConfigWords,
    detail: *mut c_char,
    detail_bytes: usize,
) -> i64 {
    let detail = Detail { text: detail, bytes: detail_bytes };
    // SAFETY: the caller guarantees it.
    unsafe { detail.clear() };
    // SAFETY: likewise.
    let words = unsafe { config.as_ref() };
    let config = words.map_or(Ok(SessionConfig::default()), |words| {
        SessionConfig::from_words(*words).map_err(|_| Error::BadArgument.into())
    });
    match config.and_then(Cycles::open) {
        Ok(cycles) => {
            let session = cycles.session().id() as i64;
            OPEN.lock().push(cycles);
            session
        }
        Err(refused) => {
            // SAFETY: the caller guarantees it.
            unsafe { detail.write(refused.detail.as_bytes()) };
            refused.error.to_return()
        }
    }
}

/// Reads the parts. See `tally_breakdown.h`.
///
/// # Safety
/// `parts` has room for `n` parts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_breakdown_read(session: i64, parts: *mut Part, n: usize) -> i64 {
    let open = OPEN.lock();
    let Some(cycles) = open.iter().find(|open| open.session().id() as i64 == session) else {
        return unknown();
    };
    let found = cycles.read().unwrap_or_default();
    for (index, part) in found.iter().take(n).enumerate() {
        // SAFETY: the caller guarantees it; the index is below `n`.
        unsafe { parts.add(index).write(Part::of(part)) };
    }
    found.len() as i64
}

/// Writes the kinds of cycles that the processor does not distinguish. See `tally_breakdown.h`.
///
/// # Safety
/// `text` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_breakdown_together(
    session: i64,
    text: *mut c_char,
    bytes: usize,
) -> i64 {
    let open = OPEN.lock();
    let Some(cycles) = open.iter().find(|open| open.session().id() as i64 == session) else {
        return unknown();
    };
    let together = cycles.not_told_apart();
    // SAFETY: the caller guarantees it.
    unsafe { Detail { text, bytes }.write(together.as_bytes()) };
    together.len() as i64
}

/// Closes a session. See `tally_breakdown.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_breakdown_close(session: i64) -> i64 {
    let mut open = OPEN.lock();
    match open.iter().position(|open| open.session().id() as i64 == session) {
        Some(index) => {
            open.swap_remove(index);
            0
        }
        None => unknown(),
    }
}

fn unknown() -> i64 {
    if sys::is_tally() { Error::NoSession.to_return() } else { Error::NotTally.to_return() }
}
