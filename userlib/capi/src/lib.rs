//! The C library: the functions that `tally.h` declares.
//!
//! The structures have the layout of the system-call interface, so most functions are one call. The
//! C program `tests/guests/c/capi.c` tests the header against this file.

#![no_std]

use core::ffi::{CStr, c_char, c_int};

use tally_rust::{
    Error, Handler,
    session::{ConfigWords, Opened},
    sys,
    sys::errno::EINTR,
};

/// Opens a session. See `tally.h`.
///
/// # Safety
/// `events` is a string, `config` points to five words, `detail` to `detail_bytes` bytes.
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
/// As [`tally_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_open_on(
    program: i64,
    events: *const c_char,
    config: *const ConfigWords,
    detail: *mut c_char,
    detail_bytes: usize,
) -> i64 {
    // SAFETY: the caller guarantees it.
    let bytes = unsafe { CStr::from_ptr(events) }.count_bytes();
    let arguments = [
        events as u64,
        bytes as u64,
        config as u64,
        detail as u64,
        detail_bytes as u64,
        program as u64,
    ];
    // SAFETY: the caller guarantees it.
    let result = unsafe { sys::call(sys::SESSION_OPEN, arguments) };
    u64::try_from(result).map_or(result, |word| Opened::from_word(word).session.into())
}

/// Starts or resumes counting. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_start(session: i64) -> i64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::call(sys::SESSION_START, [session as u64, 0, 0, 0, 0, 0]) }
}

/// Stops counting. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_stop(session: i64) -> i64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::call(sys::SESSION_STOP, [session as u64, 0, 0, 0, 0, 0]) }
}

/// Reads values. See `tally.h`.
///
/// # Safety
/// `readings` has room for `n` readings of eight words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_read(session: i64, readings: *mut [u64; 8], n: usize) -> i64 {
    // SAFETY: the caller guarantees it.
    unsafe { sys::call(sys::SESSION_READ, [session as u64, readings as u64, n as u64, 0, 0, 0]) }
}

/// Reads the engine's statistics. See `tally.h`.
///
/// # Safety
/// `stats` has room for thirteen words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_stats(session: i64, stats: *mut [u64; 13]) -> i64 {
    // SAFETY: the caller guarantees it.
    unsafe { sys::call(sys::SESSION_STATS, [session as u64, stats as u64, 0, 0, 0, 0]) }
}

/// Maps a session's logical counter bank. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_map(session: i64) -> i64 {
    // SAFETY: the call maps new memory, which is unused.
    unsafe { sys::call(sys::SESSION_MAP, [session as u64, 0, 0, 0, 0, 0]) }
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
    let [entry, data] = handler.map_or([0, 0], tally_rust::handler_words);
    // SAFETY: the call has no buffer, and the caller guarantees the handler.
    unsafe {
        sys::call(sys::SESSION_THRESHOLD, [session as u64, event as u64, count, entry, data, 0])
    }
}

/// Closes a session. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_close(session: i64) -> i64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::call(sys::SESSION_CLOSE, [session as u64, 0, 0, 0, 0, 0]) }
}

/// An error's message. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_strerror(error: i64) -> *const c_char {
    macro_rules! sentences {
        ($($error:ident: $text:literal,)*) => {
            match Error::from_return(error) {
                $(Some(Error::$error) => $text.as_ptr(),)*
                None => c"not an error of Tally's".as_ptr(),
            }
        };
    }
    sentences! {
        UnknownEvent: c"this processor's catalogue has no such event",
        TooManyEvents: c"more events than a plan can hold",
        SliceOutOfRange: c"the slice is out of range",
        NoPmu: c"this machine shows no performance counters",
        EventNotSupported: c"no counter of this machine can count the event",
        NoEvents: c"the list of events is empty",
        BadArgument: c"an argument is not of the form that the call takes",
        BadPointer: c"a buffer does not lie in the program's own memory",
        NoSession: c"there is no such session",
        WrongState: c"the session is already started or stopped",
        Busy: c"this address space has an open session already",
        NoMemory: c"the machine has no memory left for it",
        NoProgram: c"there is no such program, or it is not the caller's",
        NotPermitted: c"the kernel's command line does not permit it",
        NotAProgram: c"the file is not a static program that can run here",
        TooManyThresholds: c"eight thresholds on events counted all the time are the most at once",
        TooManySessions: c"eight sessions on other programs are the most of one",
        TooManyPrograms: c"32 programs that were not waited for are the most of one",
    }
}

/// Samples an event. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_sample(session: i64, event: usize, period: u64) -> i64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::call(sys::SESSION_SAMPLE, [session as u64, event as u64, period, 0, 0, 0]) }
}

/// Reads the addresses of samples. See `tally.h`.
///
/// # Safety
/// `addresses` has room for `n` pairs of words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tally_samples(session: i64, addresses: *mut [u64; 2], n: usize) -> i64 {
    let arguments = [session as u64, addresses as u64, n as u64, 0, 0, 0];
    // SAFETY: the caller guarantees it.
    unsafe { sys::call(sys::SESSION_SAMPLES, arguments) }
}

/// Opens direct mode. See `tally.h`.
///
/// # Safety
/// `events` is a string, `indices` has room for a word for each event of it, `detail` for
/// `detail_bytes`.
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
    // SAFETY: the caller guarantees it.
    unsafe { sys::call(sys::DIRECT_OPEN, arguments) }
}

/// Closes direct mode. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_direct_close() -> i64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::call(sys::DIRECT_CLOSE, [0; 6]) }
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
    // SAFETY: the caller guarantees it.
    unsafe { sys::call(sys::PROGRAM_LOAD, arguments) }
}

/// Starts a program. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_program_run(program: i64) -> i64 {
    // SAFETY: the call has no buffer.
    unsafe { sys::call(sys::PROGRAM_RUN, [program as u64, 0, 0, 0, 0, 0]) }
}

/// Waits for a program's end. See `tally.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tally_program_wait(program: i64) -> i64 {
    loop {
        // SAFETY: the call has no buffer.
        match unsafe { sys::call(sys::PROGRAM_WAIT, [program as u64, 0, 0, 0, 0, 0]) } {
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
