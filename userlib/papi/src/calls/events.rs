//! Codes, names and descriptions of events.

use alloc::vec::Vec;
use core::ffi::{c_char, c_int};

use crate::{
    answer::{Answer, Code, OK, give},
    layout::{EventInfo, MAX_TEXT},
    pointers::{Name, Place},
    state::{State, with},
};

#[unsafe(no_mangle)]
extern "C" fn PAPI_event_name_to_code(name: Name, code: Place<c_int>) -> c_int {
    give(with(|state| {
        let name = name.text()?;
        if code.is_null() {
            return Err(Code::Inval);
        }
        state.check_initialized()?;
        code.write(state.events.code(name)?).and(OK)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_event_code_to_name(code: c_int, name: Place<c_char>) -> c_int {
    give(with(|state| {
        if name.is_null() {
            return Err(Code::Inval);
        }
        let found = state.events.name(code)?.bytes().take(MAX_TEXT - 1).chain([0]);
        name.fill(found.map(|byte| byte as c_char).collect::<Vec<_>>());
        OK
    }))
}

fn query(state: &State, code: c_int) -> Answer {
    if state.is_disabled() {
        return Err(Code::CmpDisabled);
    }
    state.events.query(code).and(OK)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_query_event(code: c_int) -> c_int {
    give(with(|state| query(state, code)))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_query_named_event(name: Name) -> c_int {
    give(with(|state| {
        state.check_initialized()?;
        let code = state.events.code(name.text()?)?;
        query(state, code)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_event_info(code: c_int, info: Place<EventInfo>) -> c_int {
    give(with(|state| {
        if info.is_null() {
            return Err(Code::Inval);
        }
        info.write(state.events.info(code)?).and(OK)
    }))
}

fn after(code: Place<c_int>, modifier: c_int) -> c_int {
    give(with(|state| {
        let next = state.events.after(code.read()?, modifier)?;
        code.write(next).and(OK)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_enum_event(code: Place<c_int>, modifier: c_int) -> c_int {
    after(code, modifier)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_enum_cmp_event(code: Place<c_int>, modifier: c_int, component: c_int) -> c_int {
    if component != 0 || with(|state| state.is_disabled()) {
        return Code::NoCmp as c_int;
    }
    after(code, modifier)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_event_component(code: c_int) -> c_int {
    give(with(|state| state.events.name(code).map(|_| 0)).map_err(|_| Code::NoCmp))
}
