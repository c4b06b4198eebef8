//! Parts: the functions that `tally_part.h` declares.

use alloc::vec::Vec;

use tally_rust::{Error, Part, lock::Lock, sys};

/// Parts of this program; a part's number is its index plus 1.
static PARTS: Lock<Vec<Option<Part<'static>>>> = Lock::new(Vec::new());

/// Calls `work` with the part that has this number.
fn with(part: i64, work: impl FnOnce(&mut Part<'static>) -> Result<i64, Error>) -> i64 {
    let index = usize::try_from(part.wrapping_sub(1)).ok();
    let mut parts = PARTS.lock();
    let found = index.and_then(|index| parts.get_mut(index)).and_then(Option::as_mut);
    match found {
        Some(part) => work(part).unwrap_or_else(Error::to_return),
        None => unknown(),
    }
}

fn unknown() -> i64 {
    if sys::is_tally() { Error::BadArgument.to_return() } else { Error::NotTally.to_return() }
}

/// Starts counting the calling thread. See `tally_part.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_part(session: i64) -> i64 {
    let part = match Part::of(session as u64) {
        Ok(part) => part,
        Err(error) => return error.to_return(),
    };
    let mut parts = PARTS.lock();
    let index = parts.iter().position(Option::is_none).unwrap_or(parts.len());
    if index == parts.len() {
        parts.push(None);
    }
    parts[index] = Some(part);
    index as i64 + 1
}

/// Restarts a part's counts from 0. See `tally_part.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_part_reset(part: i64) -> i64 {
    with(part, |part| part.reset().map(|()| 0))
}

/// Ends a stretch and adds it. See `tally_part.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_part_accumulate(part: i64) -> i64 {
    with(part, |part| part.accumulate().map(|()| 0))
}

/// Ends a stretch without adding it. See `tally_part.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_part_skip(part: i64) -> i64 {
    with(part, |part| part.skip().map(|()| 0))
}

/// Reads a part. See `tally_part.h`.
///
/// # Safety
/// `readings` has room for `n` readings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_part_read(part: i64, readings: *mut [u64; 8], n: usize) -> i64 {
    with(part, |part| {
        let found = part.read()?;
        for (index, reading) in found.iter().take(n).enumerate() {
            // SAFETY: the caller guarantees it; the index is below `n`.
            unsafe { readings.add(index).write(reading.to_words()) };
        }
        Ok(found.len() as i64)
    })
}

/// Ends a part. See `tally_part.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_part_close(part: i64) -> i64 {
    let index = usize::try_from(part.wrapping_sub(1)).ok();
    let mut parts = PARTS.lock();
    match index.and_then(|index| parts.get_mut(index)).and_then(Option::take) {
        Some(_) => 0,
        None => unknown(),
    }
}
