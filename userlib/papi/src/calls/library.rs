//! Initialization and end of the library, errors, and unsupported calls.

use core::{
    ffi::{c_char, c_int, c_ulong},
    ptr,
    sync::atomic::Ordering,
};

use tally_rust::eprintln;

use crate::{
    answer::{Code, LAST, LEVEL, OK, QUIET, STOP, give, text},
    pointers::Name,
    state::with,
};

/// Version of PAPI's interface: 7.0.0.0; programs compare the first two numbers.
pub(super) const VERSION: c_int = 7 << 24;

#[unsafe(no_mangle)]
extern "C" fn PAPI_library_init(version: c_int) -> c_int {
    give(match version {
        VERSION => with(|state| state.initialize()).map(|()| VERSION),
        _ => Err(Code::Inval),
    })
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_is_initialized() -> c_int {
    with(|state| state.level)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_shutdown() {
    with(|state| state.shut_down());
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_strerror(code: c_int) -> *mut c_char {
    text(code).map_or(ptr::null_mut(), |text| text.as_ptr().cast_mut())
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_perror(message: Name) {
    let Some(text) = text(LAST.load(Ordering::Relaxed)) else { return };
    let text = text.to_str().unwrap_or_default();
    match message.text() {
        Ok(message) if !message.is_empty() => eprintln!("{message}: {text}"),
        _ => eprintln!("{text}"),
    }
}

/// Sets the reaction to errors.
pub(super) fn set_level(level: c_int) -> Result<(), Code> {
    if !(QUIET..=STOP).contains(&level) {
        return Err(Code::Inval);
    }
    LEVEL.store(level, Ordering::Relaxed);
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_set_debug(level: c_int) -> c_int {
    give(set_level(level).and(OK))
}

/// Answers a call on a set that the component does not support.
fn unsupported(set: c_int) -> c_int {
    give(with(|state| state.assigned_set(set).map(drop)).and(Err(Code::Cmp)))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_attach(set: c_int, _thread: c_ulong) -> c_int {
    unsupported(set)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_detach(set: c_int) -> c_int {
    unsupported(set)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_write(set: c_int, _values: *const i64) -> c_int {
    unsupported(set)
}
