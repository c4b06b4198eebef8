//! Options of the library and of event sets.

use core::ffi::{c_int, c_void};

use super::{
    library,
    machine::{
        PAPI_get_component_info, PAPI_get_executable_info, PAPI_get_hardware_info,
        PAPI_get_shared_lib_info,
    },
};
use crate::{
    answer::{Answer, Code, LEVEL, OK, give},
    layout::OptionWords,
    machine::{KERNEL, THREAD, USER},
    pointers::Place,
    state::{State, with},
};
use core::sync::atomic::Ordering;

const DETACH: c_int = 1;
const DEBUG: c_int = 2;
const MULTIPLEX: c_int = 3;
const DEFAULT_DOMAIN: c_int = 4;
const DOMAIN: c_int = 5;
const DEFAULT_GRANULARITY: c_int = 6;
const GRANULARITY: c_int = 7;
const MULTIPLEX_NS: c_int = 8;
const MULTIPLEX_COUNTERS: c_int = 11;
const CLOCK_RATE: c_int = 14;
const COUNTERS: c_int = 15;
const HARDWARE: c_int = 16;
const PROGRAM: c_int = 17;
const CPUS: c_int = 18;
const ATTACH: c_int = 19;
const LIBRARIES: c_int = 20;
const VERSION: c_int = 21;
const COMPONENT: c_int = 22;
const DATA_ADDRESS: c_int = 23;
const CODE_ADDRESS: c_int = 24;
const TIMER: c_int = 25;
const TIMER_NS: c_int = 26;
const CPU_ATTACH: c_int = 27;
const INHERIT: c_int = 28;
const USER_EVENTS: c_int = 29;

/// All domains of PAPI.
const ALL_DOMAINS: c_int = 15;
const MAX_GRANULARITY: c_int = 16;

type Words = Place<OptionWords>;

/// Returns the domain that `domain` selects here.
fn domain(domain: c_int, out_of_range: Code, unsupported: Code) -> Result<c_int, Code> {
    match domain {
        ALL_DOMAINS => Ok(USER | KERNEL),
        1..ALL_DOMAINS if domain & !(USER | KERNEL) == 0 => Ok(domain),
        1..ALL_DOMAINS => Err(unsupported),
        _ => Err(out_of_range),
    }
}

fn granularity(granularity: c_int) -> Result<(), Code> {
    if (THREAD..=MAX_GRANULARITY).contains(&granularity) && granularity == THREAD {
        Ok(())
    } else {
        Err(Code::Inval)
    }
}

/// Checks the component that a default applies to.
fn check_component(component: c_int) -> Result<(), Code> {
    if component == 0 { Ok(()) } else { Err(Code::NoCmp) }
}

/// Sets an option of a set.
fn set_of_set(state: &mut State, option: c_int, words: OptionWords) -> Answer {
    let [number, second, ..] = words;
    let set =
        state.assigned_set(if matches!(option, DOMAIN | GRANULARITY) { second } else { number })?;
    match option {
        MULTIPLEX => {
            set.check_stopped()?;
            if set.is_multiplexed || second < 0 {
                return Err(Code::Inval);
            }
            set.is_multiplexed = true;
        }
        DOMAIN => {
            let domain = domain(words[2], Code::InvalDom, Code::InvalDom)?;
            set.check_stopped()?;
            set.domain = domain;
        }
        GRANULARITY => granularity(words[2])?,
        _ => return Err(Code::Cmp),
    }
    OK
}

/// Sets an option of PAPI's timers for multiplexing in software. These options have no effect.
fn set_timer(state: &mut State, option: c_int, words: Words) -> Answer {
    let mut given = words.read()?;
    let ns = match option {
        MULTIPLEX_NS => given[1],
        _ => given[2],
    };
    if ns < 0 {
        return Err(Code::Inval);
    }
    if option == TIMER {
        (state.timer[1], state.timer[2]) = (given[1], given[0]);
    }
    if ns > 0 {
        state.timer[0] = ns;
    }
    given[if option == MULTIPLEX_NS { 1 } else { 2 }] = state.timer[0];
    words.write(given).and(OK)
}

fn set(state: &mut State, option: c_int, words: Words) -> Answer {
    if option != DEBUG {
        state.check_initialized()?;
    }
    let given = words.read()?;
    match option {
        DEBUG => library::set_level(given[0])?,
        DEFAULT_DOMAIN => {
            check_component(given[0])?;
            state.domain = domain(given[2], Code::Inval, Code::NoSupp)?;
            let domain = state.domain;
            state.component.change(|info| info.default_domain = domain);
        }
        DEFAULT_GRANULARITY => {
            check_component(given[0])?;
            granularity(given[2])?;
        }
        MULTIPLEX_NS | TIMER | TIMER_NS => return set_timer(state, option, words),
        MULTIPLEX | DOMAIN | GRANULARITY | DETACH | ATTACH | CPU_ATTACH | INHERIT
        | DATA_ADDRESS | CODE_ADDRESS => return set_of_set(state, option, given),
        USER_EVENTS => return Err(Code::NoSupp),
        _ => return Err(Code::Inval),
    }
    OK
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_set_opt(option: c_int, words: Words) -> c_int {
    give(with(|state| set(state, option, words)))
}

/// Reads an option of a set.
fn get_of_set(state: &mut State, option: c_int, words: Words) -> Answer {
    let mut given = words.read()?;
    let place = if matches!(option, DOMAIN | GRANULARITY) { 1 } else { 0 };
    let timer = state.timer[0];
    let set = state.set(given[place])?;
    let mut answer = OK;
    match option {
        DOMAIN => given[2] = set.domain,
        GRANULARITY => given[2] = THREAD,
        MULTIPLEX => {
            (given[1], given[2]) = (timer, 0);
            answer = Ok(set.is_multiplexed.into());
        }
        // Sets inherit nothing, and no set is attached.
        INHERIT => given[1] = 0,
        DETACH => answer = Ok(1),
        _ => {}
    }
    words.write(given).and(answer)
}

/// Writes a pointer to the first words.
fn give_pointer<T>(words: Words, pointer: *const T) -> Answer {
    let mut given = words.read()?;
    let address = pointer.expose_provenance() as u64;
    (given[0], given[1]) = (address as c_int, (address >> 32) as c_int);
    words.write(given).and(OK)
}

fn get(state: &mut State, option: c_int, words: Words) -> Answer {
    if !matches!(option, DEBUG | VERSION) {
        state.check_initialized()?;
    }
    match option {
        DEBUG => {
            let [_, second, ..] = words.read()?;
            words.write([LEVEL.load(Ordering::Relaxed), second, 0, 0])?;
        }
        MULTIPLEX_NS => {
            let [number, _, flags, last] = words.read()?;
            words.write([number, state.timer[0], flags, last])?;
        }
        TIMER | TIMER_NS => {
            let [ns, signal, timer] = state.timer;
            words.write([timer, signal, ns, 0])?;
        }
        MULTIPLEX | DOMAIN | GRANULARITY | DETACH | ATTACH | CPU_ATTACH | INHERIT => {
            return get_of_set(state, option, words);
        }
        CLOCK_RATE => return Ok(state.machine.hardware.cpu_max_mhz),
        CPUS => return Ok(state.machine.hardware.totalcpus),
        VERSION => return Ok(library::VERSION),
        COUNTERS => return Ok(state.machine.counters()),
        MULTIPLEX_COUNTERS => return Ok(tally_rust::session::MAX_EVENTS as c_int),
        DEFAULT_DOMAIN => return Ok(state.domain),
        DEFAULT_GRANULARITY => return Ok(THREAD),
        _ => return Err(Code::Inval),
    }
    OK
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_opt(option: c_int, words: Words) -> c_int {
    let pointer: *const c_void = match option {
        HARDWARE => PAPI_get_hardware_info().cast(),
        PROGRAM => PAPI_get_executable_info().cast(),
        LIBRARIES => PAPI_get_shared_lib_info().cast(),
        COMPONENT => PAPI_get_component_info(0).cast(),
        _ => return give(with(|state| get(state, option, words))),
    };
    give(with(|state| state.check_initialized()).and_then(|()| give_pointer(words, pointer)))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_cmp_opt(option: c_int, words: Words, component: c_int) -> c_int {
    match (component, option) {
        (0, MULTIPLEX_COUNTERS | COUNTERS | DEFAULT_DOMAIN | DEFAULT_GRANULARITY) => {
            PAPI_get_opt(option, words)
        }
        (0, LIBRARIES | COMPONENT) => PAPI_get_opt(option, words),
        (0, _) => give(Err(Code::Inval)),
        _ => Code::Cmp as c_int,
    }
}

/// Needs no preparation: sessions always multiplex.
#[unsafe(no_mangle)]
extern "C" fn PAPI_multiplex_init() -> c_int {
    give(with(|state| state.check_initialized()).and(OK))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_set_multiplex(number: c_int) -> c_int {
    give(with(|state| set_of_set(state, MULTIPLEX, [number, 0, 0, 0])))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_multiplex(number: c_int) -> c_int {
    with(|state| state.set(number).map_or(0, |set| set.is_multiplexed.into()))
}

/// Sets a default for new sets.
fn set_default(option: c_int, value: c_int, component: c_int) -> c_int {
    let mut words = [component, 0, value, 0];
    PAPI_set_opt(option, Place::from(&raw mut words))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_set_domain(domain: c_int) -> c_int {
    set_default(DEFAULT_DOMAIN, domain, 0)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_set_cmp_domain(domain: c_int, component: c_int) -> c_int {
    set_default(DEFAULT_DOMAIN, domain, component)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_set_granularity(granularity: c_int) -> c_int {
    set_default(DEFAULT_GRANULARITY, granularity, 0)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_set_cmp_granularity(granularity: c_int, component: c_int) -> c_int {
    set_default(DEFAULT_GRANULARITY, granularity, component)
}
