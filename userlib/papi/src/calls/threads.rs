//! Threads, the data that they store, and locks for the program's own use.

use core::{
    ffi::{c_int, c_ulong, c_void},
    sync::atomic::{AtomicBool, Ordering},
};

use tally_rust::sys;

use crate::{
    answer::{Code, OK, give},
    machine,
    pointers::Place,
    state::{OWN_POINTERS, State, THREAD_ID, THREADS, thread_id, with},
};

/// Tag that requests the data of all threads.
const ALL: c_int = 0x10;
/// Locks for the program.
static LOCKS: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

#[unsafe(no_mangle)]
extern "C" fn PAPI_thread_init(function: *mut c_void) -> c_int {
    give(with(|state| {
        state.check_initialized()?;
        if function.is_null() {
            return Err(Code::Inval);
        }
        THREAD_ID.store(function, Ordering::Relaxed);
        state.level |= THREADS;
        // The main thread, under its new number.
        let id = thread_id().unwrap_or_default();
        state.thread().id = id;
        OK
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_thread_id() -> c_ulong {
    thread_id().unwrap_or(Code::Misc as i64 as c_ulong)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_register_thread() -> c_int {
    give(with(|state| {
        state.check_initialized()?;
        state.thread();
        OK
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_unregister_thread() -> c_int {
    give(with(|state| {
        let (thread, known) = (machine::thread(), state.threads.len());
        state.threads.retain(|of| of.thread != thread);
        if state.threads.len() == known { Err(Code::Misc) } else { OK }
    }))
}

/// Writes a number for each known thread, up to `number`, and then the number of threads.
fn list<T: Copy>(
    state: &State,
    to: Place<T>,
    number: Place<c_int>,
    of: impl Fn(&crate::state::Thread) -> T,
) -> Result<(), Code> {
    let room = number.read()?.max(0) as usize;
    let listed = if to.is_null() { state.threads.len() } else { state.threads.len().min(room) };
    to.fill(state.threads.iter().take(listed).map(of));
    number.write(listed as c_int)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_list_threads(ids: Place<c_ulong>, number: Place<c_int>) -> c_int {
    give(with(|state| {
        let room = number.read()?;
        if !ids.is_null() && room <= 0 {
            return Err(Code::Inval);
        }
        list(state, ids, number, |thread| thread.id).and(OK)
    }))
}

/// `PAPI_all_thr_spec_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct All {
    number: c_int,
    ids: Place<c_ulong>,
    pointers: Place<usize>,
}

fn check(tag: c_int) -> Result<usize, Code> {
    usize::try_from(tag).ok().filter(|tag| *tag < OWN_POINTERS).ok_or(Code::Inval)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_thr_specific(tag: c_int, to: *mut c_void) -> c_int {
    give(with(|state| {
        state.check_initialized()?;
        let at = check(tag & !ALL)?;
        if tag & ALL == 0 {
            return Place::from(to.cast()).write(state.thread().pointers[at]).and(OK);
        }
        let all = Place::from(to.cast::<All>()).read()?;
        // The structure's first field is the number.
        let number = Place::from(to.cast());
        list(state, all.pointers, number, |thread| thread.pointers[at])?;
        all.ids.fill(state.threads.iter().take(number.read()? as usize).map(|thread| thread.id));
        OK
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_set_thr_specific(tag: c_int, pointer: *mut c_void) -> c_int {
    give(with(|state| {
        state.check_initialized()?;
        state.thread().pointers[check(tag)?] = pointer.addr();
        OK
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_lock(number: c_int) -> c_int {
    let Some(lock) = usize::try_from(number).ok().and_then(|number| LOCKS.get(number)) else {
        return give(Err(Code::Inval));
    };
    // Acquire pairs with the Release in `PAPI_unlock`.
    while lock.swap(true, Ordering::Acquire) {
        // SAFETY: the call has no buffer. Threads take turns: the owner needs one.
        unsafe { sys::call(sys::SCHED_YIELD, [0; 6]) };
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_unlock(number: c_int) -> c_int {
    let Some(lock) = usize::try_from(number).ok().and_then(|number| LOCKS.get(number)) else {
        return give(Err(Code::Inval));
    };
    // Release pairs with the Acquire in `PAPI_lock`.
    lock.store(false, Ordering::Release);
    0
}
