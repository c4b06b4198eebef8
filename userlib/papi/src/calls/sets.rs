//! Event sets: their creation and contents.

use core::ffi::c_int;

use crate::{
    answer::{Answer, Code, OK, give},
    pointers::{Name, Place},
    set::Set,
    state::{State, with},
};

/// Number that stands for no set.
const NULL: c_int = -1;

#[unsafe(no_mangle)]
extern "C" fn PAPI_create_eventset(number: Place<c_int>) -> c_int {
    give(with(|state| {
        state.check_initialized()?;
        if number.read()? != NULL {
            return Err(Code::Inval);
        }
        let set = Some(Set::new(state.domain));
        let at = state.sets.iter().position(Option::is_none).unwrap_or(state.sets.len());
        if at == state.sets.len() {
            state.sets.push(None);
        }
        state.sets[at] = set;
        number.write(at as c_int)?;
        OK
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_destroy_eventset(number: Place<c_int>) -> c_int {
    give(with(|state| {
        let set = state.set(number.read()?)?;
        set.check_stopped()?;
        if !set.events.is_empty() {
            return Err(Code::Inval);
        }
        state.sets[number.read()? as usize] = None;
        number.write(NULL)?;
        OK
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_cleanup_eventset(set: c_int) -> c_int {
    give(with(|state| state.set(set)?.clear()).and(OK))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_assign_eventset_component(set: c_int, component: c_int) -> c_int {
    give(with(|state| {
        let set = state.set(set)?;
        if component != 0 {
            return Err(Code::NoCmp);
        }
        if set.has_component {
            return Err(Code::Inval);
        }
        set.has_component = true;
        OK
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_eventset_component(set: c_int) -> c_int {
    give(with(|state| state.assigned_set(set).map(|_| 0)))
}

fn add(state: &mut State, set: c_int, code: c_int) -> Answer {
    state.set(set)?;
    if !crate::events::is_code(code) {
        return Err(Code::Inval);
    }
    if state.is_disabled() {
        return Err(Code::CmpDisabled);
    }
    state.set(set)?.check_stopped()?;
    state.events.check(code)?;
    state.set(set)?.add(code).and(OK)
}

fn remove(state: &mut State, set: c_int, code: c_int) -> Answer {
    let set = state.set(set)?;
    if !crate::events::is_code(code) {
        return Err(Code::Inval);
    }
    set.remove(code).and(OK)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_add_event(set: c_int, code: c_int) -> c_int {
    give(with(|state| add(state, set, code)))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_add_named_event(set: c_int, name: Name) -> c_int {
    give(with(|state| {
        let code = state.events.code(name.text()?)?;
        add(state, set, code)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_remove_event(set: c_int, code: c_int) -> c_int {
    give(with(|state| remove(state, set, code)))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_remove_named_event(set: c_int, name: Name) -> c_int {
    give(with(|state| {
        let code = state.events.code(name.text()?)?;
        remove(state, set, code)
    }))
}

/// Applies an operation to several events. Returns the number of successes if not all succeeded, or
/// the error of the first.
fn each(
    set: c_int,
    codes: Place<c_int>,
    number: c_int,
    work: impl Fn(&mut State, c_int, c_int) -> Answer,
) -> c_int {
    give(with(|state| {
        if codes.is_null() || number <= 0 {
            return Err(Code::Inval);
        }
        for index in 0..number {
            match work(state, set, codes.read_at(index as usize)?) {
                Ok(_) => {}
                Err(code) if index == 0 => return Err(code),
                Err(_) => return Ok(index),
            }
        }
        OK
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_add_events(set: c_int, codes: Place<c_int>, number: c_int) -> c_int {
    each(set, codes, number, add)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_remove_events(set: c_int, codes: Place<c_int>, number: c_int) -> c_int {
    each(set, codes, number, remove)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_list_events(set: c_int, codes: Place<c_int>, number: Place<c_int>) -> c_int {
    give(with(|state| {
        let room = number.read()?;
        if room < 0 || codes.is_null() && room > 0 {
            return Err(Code::Inval);
        }
        let events = &state.set(set)?.events;
        let listed = if room == 0 { events.len() } else { events.len().min(room as usize) };
        if room > 0 {
            codes.fill(events[..listed].iter().copied());
        }
        number.write(listed as c_int)?;
        OK
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_num_events(set: c_int) -> c_int {
    give(with(|state| Ok(state.set(set)?.events.len() as c_int)))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_state(set: c_int, bits: Place<c_int>) -> c_int {
    give(with(|state| {
        if bits.is_null() {
            return Err(Code::Inval);
        }
        bits.write(state.set(set)?.state()).and(OK)
    }))
}
