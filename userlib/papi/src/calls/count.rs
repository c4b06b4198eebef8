//! Counting with event sets.

use core::ffi::c_int;

use tally_abi::reading::ReadingWords;

use crate::{
    answer::{Answer, Code, OK, give},
    machine,
    pointers::Place,
    state::{State, with},
};

/// Starts a set.
pub(super) fn start(state: &mut State, number: c_int) -> Answer {
    let set = state.assigned_set(number)?;
    if set.is_running() || state.sets.iter().flatten().any(|set| set.is_running_here()) {
        return Err(Code::IsRun);
    }
    let at = number as usize;
    // The set is taken out of the state, so that it can use the sessions of other sets.
    let mut set = state.sets[at].take().ok_or(Code::NoEvst)?;
    let started = if set.events.is_empty() {
        Err(Code::Inval)
    } else {
        set.start(number, &state.events, &mut state.pool)
    };
    state.sets[at] = Some(set);
    started.and(OK)
}

/// Stops a set. Returns its values.
pub(super) fn stop(state: &mut State, number: c_int) -> Result<alloc::vec::Vec<i64>, Code> {
    state.assigned_set(number)?;
    let set = state.sets[number as usize].as_mut().ok_or(Code::NoEvst)?;
    set.stop(&mut state.pool)?;
    set.values_now()
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_start(set: c_int) -> c_int {
    give(with(|state| start(state, set)))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_stop(set: c_int, values: Place<i64>) -> c_int {
    give(with(|state| {
        values.fill(stop(state, set)?);
        OK
    }))
}

/// Reads a set's values.
fn read(state: &mut State, set: c_int, values: Place<i64>) -> Answer {
    let set = state.assigned_set(set)?;
    if values.is_null() {
        return Err(Code::Inval);
    }
    values.fill(set.values_now()?);
    OK
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_read(set: c_int, values: Place<i64>) -> c_int {
    give(with(|state| read(state, set, values)))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_read_ts(set: c_int, values: Place<i64>, cycles: Place<i64>) -> c_int {
    give(with(|state| {
        read(state, set, values)?;
        cycles.write(machine::real_cycles()).and(OK)
    }))
}

/// Adds nothing, and returns `PAPI_ECLOST`, if one of the events has not been counted at all.
#[unsafe(no_mangle)]
extern "C" fn PAPI_accum(set: c_int, values: Place<i64>) -> c_int {
    give(with(|state| {
        let set = state.assigned_set(set)?;
        if values.is_null() {
            return Err(Code::Inval);
        }
        let counts = set.values_now()?;
        if counts.iter().any(|count| *count < 0) {
            return Err(Code::CLost);
        }
        for (index, count) in counts.into_iter().enumerate() {
            values.write_at(index, values.read_at(index)?.wrapping_add(count))?;
        }
        set.reset().and(OK)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_reset(set: c_int) -> c_int {
    give(with(|state| state.assigned_set(set)?.reset()).and(OK))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_tally_readings(set: c_int, to: Place<ReadingWords>, room: c_int) -> c_int {
    give(with(|state| {
        let readings = state.assigned_set(set)?.readings_now()?;
        let room = usize::try_from(room).map_err(|_| Code::Inval)?;
        to.fill(readings.iter().take(room).map(|reading| reading.to_words()));
        Ok(readings.len() as c_int)
    }))
}
