//! High-level interface: named regions, which are those of `tally_region.h`. Their counts are
//! printed to standard error at the end.

use alloc::string::String;
use core::ffi::c_int;

use tally_abi::Error;
use tally_rust::{eprintln, io::Output, regions};

use crate::{
    answer::{Answer, Code, OK, give},
    machine,
    pointers::Name,
    state::{Entered, HIGH_LEVEL, State, with},
};

/// Environment variable that names the events.
const VARIABLE: &str = "PAPI_EVENTS";

/// Prints regions when a C library ends the program, unless the program has stopped them.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

extern "C" fn at_end() {
    with(|state| {
        // An error means that there are no regions.
        let _ = stop(state);
    });
}

/// Opens the session on the events of the environment variable, or on the default events.
fn open(state: &mut State) -> Result<(), Code> {
    if state.level & HIGH_LEVEL != 0 {
        return Ok(());
    }
    if state.level == 0 {
        state.initialize()?;
    }
    let named = machine::variable(VARIABLE);
    let events = named.as_deref().filter(|events| !events.trim().is_empty());
    regions::open(events.unwrap_or(regions::EVENTS)).map_err(|why| {
        eprintln!("libpapi: {VARIABLE}: {why}");
        Code::of(why.error)
    })?;
    state.level |= HIGH_LEVEL;
    Ok(())
}

fn stop(state: &mut State) -> Answer {
    if state.level & HIGH_LEVEL == 0 {
        return Err(Code::Inval);
    }
    regions::print(Output::Err);
    regions::close();
    state.entered.clear();
    state.level &= !HIGH_LEVEL;
    OK
}

/// Returns the index of the region that the calling thread entered last, if it has this name.
fn entered(state: &State, name: &str) -> Option<usize> {
    let thread = machine::thread();
    let last = state.entered.iter().rposition(|entered| entered.thread == thread)?;
    Some(last).filter(|last| state.entered[*last].name == name)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_hl_region_begin(name: Name) -> c_int {
    give(with(|state| {
        let name = name.text()?;
        open(state)?;
        state.entered.push(Entered { thread: machine::thread(), name: String::from(name) });
        regions::start(name).map_err(|why| {
            state.entered.pop();
            Code::of(why.error)
        })?;
        OK
    }))
}

/// Returns no values: each region has one count, which includes readings in its middle.
#[unsafe(no_mangle)]
extern "C" fn PAPI_hl_read(name: Name) -> c_int {
    give(with(|state| entered(state, name.text()?).map(|_| 0).ok_or(Code::Inval)))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_hl_region_end(name: Name) -> c_int {
    give(with(|state| {
        let name = name.text()?;
        let stopped = regions::stop(name);
        let last = entered(state, name).ok_or(Code::Inval)?;
        state.entered.remove(last);
        stopped.map_err(|error| match error {
            Error::WrongState => Code::Inval,
            other => Code::of(other),
        })?;
        OK
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_hl_stop() -> c_int {
    give(with(stop))
}
