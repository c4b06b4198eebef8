//! Thresholds of event sets, and histograms of addresses.

use alloc::boxed::Box;
use core::ffi::{c_int, c_uint, c_void};

use crate::{
    answer::{Answer, Code, OK, give},
    histogram::{
        BUCKET_16, BUCKET_32, BUCKET_64, BUCKETS, DOUBLE_SCALE, Histograms, KNOWN, MAX_SCALE,
    },
    layout::{Histogram, OverflowHandler},
    overflow::is_readable,
    pointers::Place,
    set::{Set, Watched},
    state::{State, with},
};

/// Flags of `PAPI_overflow`: by PAPI's timer, which is not used; by the hardware's interrupt.
const FORCE_SOFTWARE: c_int = 0x40;
const BY_HARDWARE: c_int = 0x80;

/// Checks that an event of the assigned set can have a threshold; a derived event has no counter
/// that could overflow. Returns the set.
fn check(state: &mut State, set: c_int, code: c_int, threshold: c_int) -> Result<&mut Set, Code> {
    let is_derived = state.events.name(code).is_ok_and(|name| state.events.derived(name).is_some());
    let set = state.assigned_set(set)?;
    set.check_stopped()?;
    let event = set.position(code).ok_or(Code::NoEvnt)?;
    if threshold < 0 || is_derived {
        return Err(Code::Inval);
    }
    if threshold > 0 && !is_readable(event) {
        return Err(Code::Cnflct);
    }
    Ok(set)
}

/// Sets the threshold of an event, or removes it if it is 0.
fn watch(
    set: &mut Set,
    code: c_int,
    threshold: c_int,
    flags: c_int,
    histograms: Option<Box<Histograms>>,
) -> Answer {
    let at = set.watched.iter().position(|watched| watched.code == code);
    if threshold == 0 {
        set.watched.remove(at.ok_or(Code::Inval)?);
    } else {
        let is_other = |flag: c_int| (set.flags ^ flags) & flag != 0;
        if !set.watched.is_empty() && is_other(FORCE_SOFTWARE) {
            return Err(Code::Cnflct);
        }
        let watched = Watched { code, threshold: threshold as u64, histograms };
        match at {
            Some(at) => set.watched[at] = watched,
            None => set.watched.push(watched),
        }
        set.flags = flags | BY_HARDWARE;
    }
    if set.watched.is_empty() {
        (set.flags, set.handler) = (0, None);
    }
    OK
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_overflow(
    number: c_int,
    code: c_int,
    threshold: c_int,
    flags: c_int,
    handler: Option<OverflowHandler>,
) -> c_int {
    give(with(|state| {
        let set = check(state, number, code, threshold)?;
        if set.watched.is_empty() && (handler.is_none() || threshold == 0) {
            return Err(Code::Inval);
        }
        if threshold > 0 {
            set.handler = handler;
        }
        watch(set, code, threshold, flags, None)
    }))
}

/// Bits of an overflow vector are the positions of events.
#[unsafe(no_mangle)]
extern "C" fn PAPI_get_overflow_event_index(
    number: c_int,
    vector: i64,
    places: Place<c_int>,
    room: Place<c_int>,
) -> c_int {
    give(with(|state| {
        let wanted = room.read()?;
        if vector == 0 || places.is_null() || wanted < 1 {
            return Err(Code::Inval);
        }
        let events = state.set(number)?.events.len();
        if events == 0 {
            return Err(Code::Inval);
        }
        let mut found = 0;
        let set_bits = (0..events.min(64)).filter(|event| vector >> event & 1 == 1);
        for event in set_bits.take(wanted as usize) {
            places.write_at(found, event as c_int)?;
            found += 1;
        }
        room.write(found as c_int).and(OK)
    }))
}

fn has_good_scale(histogram: &Histogram) -> bool {
    histogram.scale == DOUBLE_SCALE || (2..=MAX_SCALE).contains(&histogram.scale)
}

/// Checks flags. Returns them with a bucket size.
fn check_flags(flags: c_int) -> Result<c_int, Code> {
    if flags & !KNOWN != 0 {
        return Err(Code::Inval);
    }
    match flags & BUCKETS {
        0 => Ok(flags | BUCKET_16),
        BUCKET_16 | BUCKET_32 | BUCKET_64 => Ok(flags),
        _ => Err(Code::Inval),
    }
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_sprofil(
    histograms: Place<Histogram>,
    count: c_int,
    number: c_int,
    code: c_int,
    threshold: c_int,
    flags: c_int,
) -> c_int {
    give(with(|state| {
        let set = check(state, number, code, threshold)?;
        let count = if histograms.is_null() { 0 } else { count.max(0) as usize };
        for index in 0..count {
            if !has_good_scale(&histograms.read_at(index)?) {
                return Err(Code::Inval);
            }
        }
        let first = histograms.pointer().cast_const();
        let of = Box::new(Histograms { first, count, flags: check_flags(flags)? });
        watch(set, code, threshold, flags & FORCE_SOFTWARE, Some(of))
    }))
}

/// Allocates a single histogram that lives until the program ends, because the program may release
/// it by any of several calls.
#[unsafe(no_mangle)]
extern "C" fn PAPI_profil(
    base: *mut c_void,
    size: c_uint,
    offset: *mut c_void,
    scale: c_uint,
    set: c_int,
    code: c_int,
    threshold: c_int,
    flags: c_int,
) -> c_int {
    let one = Histogram { base, size, offset, scale };
    if threshold <= 0 || !has_good_scale(&one) {
        let none = Place::from(core::ptr::null_mut());
        let threshold = if threshold > 0 { -1 } else { threshold };
        return PAPI_sprofil(none, 0, set, code, threshold, flags);
    }
    // The state's lock also keeps handlers out of the heap.
    let one: *mut Histogram = with(|_| Box::leak(Box::new(one)));
    PAPI_sprofil(Place::from(one), 1, set, code, threshold, flags)
}
