//! Named regions: the functions that `tally_region.h` declares.

use core::ffi::{CStr, c_char, c_int};

use tally_rust::{Error, OpenError, io::Output, regions};

use crate::opening::Detail;

/// Words of `struct tally_region`.
type RegionWords = [u64; 4];

/// # Safety
/// `name` is a string.
unsafe fn text<'a>(name: *const c_char) -> Result<&'a str, Error> {
    // SAFETY: the caller guarantees it.
    unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Error::BadArgument)
}

fn result(done: Result<(), Error>) -> i64 {
    done.map_or_else(Error::to_return, |()| 0)
}

/// Opens the session of regions. See `tally_region.h`.
///
/// # Safety
/// `events` is a string or null, `detail` points to `detail_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_regions_open(
    events: *const c_char,
    detail: *mut c_char,
    detail_bytes: usize,
) -> i64 {
    // SAFETY: the caller guarantees it.
    let events = if events.is_null() { Ok(regions::EVENTS) } else { unsafe { text(events) } };
    let opened = events.map_err(OpenError::from).and_then(regions::open);
    let Err(OpenError { error, detail: why }) = opened else { return 0 };
    let detail = Detail { text: detail, bytes: detail_bytes };
    // SAFETY: the caller guarantees it.
    unsafe { detail.write(why.as_bytes()) };
    error.to_return()
}

/// Enters a region. See `tally_region.h`.
///
/// # Safety
/// `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_region_start(name: *const c_char) -> i64 {
    // SAFETY: the caller guarantees it.
    let name = unsafe { text(name) };
    result(name.and_then(|name| regions::start(name).map_err(|refused| refused.error)))
}

/// Leaves a region. See `tally_region.h`.
///
/// # Safety
/// See [`tally_region_start`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_region_stop(name: *const c_char) -> i64 {
    // SAFETY: the caller guarantees it.
    let name = unsafe { text(name) };
    result(name.and_then(regions::stop))
}

/// Reads a region. See `tally_region.h`.
///
/// # Safety
/// `name` is a string, `region` points to four words, `readings` has room for `n` readings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_region_read(
    name: *const c_char,
    thread: i64,
    region: *mut RegionWords,
    readings: *mut [u64; 8],
    n: usize,
) -> i64 {
    let thread = u64::try_from(thread).ok().filter(|thread| *thread != 0);
    // SAFETY: the caller guarantees it.
    let found = unsafe { text(name) }.map(|name| regions::read(name, thread));
    let Ok(Some(found)) = found else {
        let error = if tally_rust::sys::is_tally() { Error::BadArgument } else { Error::NotTally };
        return error.to_return();
    };
    let events = found.events.len();
    // SAFETY: the caller guarantees it.
    unsafe { region.write([found.calls, found.time_ns, found.cycles, events as u64]) };
    for (index, (_, reading)) in found.events.iter().take(n).enumerate() {
        // SAFETY: as above; the index is below `n`.
        unsafe { readings.add(index).write(reading.to_words()) };
    }
    events as i64
}

/// Prints all regions. See `tally_region.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_regions_print(output: c_int) -> i64 {
    let output = match output {
        1 => Output::Out,
        2 => Output::Err,
        _ => return Error::BadArgument.to_return(),
    };
    regions::print(output);
    if tally_rust::sys::is_tally() { 0 } else { Error::NotTally.to_return() }
}

/// Ends the session of regions. See `tally_region.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_regions_close() -> i64 {
    if !tally_rust::sys::is_tally() {
        return Error::NotTally.to_return();
    }
    regions::close();
    0
}

/// Writes the counts of the calling thread. See `tally.h`.
///
/// # Safety
/// `words` has room for `n` words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_thread(session: i64, words: *mut u64, n: usize) -> i64 {
    let arguments = [session as u64, words as u64, n as u64, 0, 0, 0];
    // SAFETY: the caller guarantees it.
    unsafe { tally_rust::sys::tally_call(tally_rust::sys::SESSION_THREAD, arguments) }
}
