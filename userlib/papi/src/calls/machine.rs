//! Descriptions of the machine, the component and the program.

use alloc::boxed::Box;
use core::{
    ffi::c_int,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use crate::{
    answer::{Code, OK, give},
    layout::{ComponentInfo, HardwareInfo, LibraryInfo, MemoryInfo, ProgramInfo},
    machine,
    pointers::{Name, Place},
    state::with,
};

/// Descriptions that the last calls returned. They live until the program ends.
static PROGRAM: AtomicPtr<ProgramInfo> = AtomicPtr::new(ptr::null_mut());
static LIBRARIES: AtomicPtr<LibraryInfo> = AtomicPtr::new(ptr::null_mut());

/// Returns the description at `place`, which the first call makes.
fn once<T>(place: &AtomicPtr<T>, make: impl FnOnce() -> T) -> *const T {
    with(|state| {
        if state.check_initialized().is_err() {
            return ptr::null();
        }
        if place.load(Ordering::Relaxed).is_null() {
            place.store(Box::leak(Box::new(make())), Ordering::Relaxed);
        }
        place.load(Ordering::Relaxed).cast_const()
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn PAPI_get_hardware_info() -> *const HardwareInfo {
    with(|state| match state.check_initialized() {
        Ok(()) => ptr::from_ref(state.machine.hardware),
        Err(_) => ptr::null(),
    })
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn PAPI_get_executable_info() -> *const ProgramInfo {
    once(&PROGRAM, machine::program)
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn PAPI_get_shared_lib_info() -> *const LibraryInfo {
    once(&LIBRARIES, machine::libraries)
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_dmem_info(info: Place<MemoryInfo>) -> c_int {
    give(info.write(machine::memory()).and(OK))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_num_components() -> c_int {
    1
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn PAPI_get_component_info(component: c_int) -> *const ComponentInfo {
    if component != 0 {
        return ptr::null();
    }
    with(|state| state.component.pointer().cast_const())
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_component_index(name: Name) -> c_int {
    match name.text() {
        Ok(machine::COMPONENT) => 0,
        _ => Code::NoCmp as c_int,
    }
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_disable_component(component: c_int) -> c_int {
    give(with(|state| {
        if state.level != 0 {
            return Err(Code::NoInit);
        }
        if component != 0 {
            return Err(Code::NoCmp);
        }
        state.disable(Code::CmpDisabled, "disabled by PAPI_disable_component");
        OK
    }))
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_disable_component_by_name(name: Name) -> c_int {
    match PAPI_get_component_index(name) {
        0 => PAPI_disable_component(0),
        error => error,
    }
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_num_cmp_hwctrs(component: c_int) -> c_int {
    if component != 0 {
        return Code::Cmp as c_int;
    }
    with(|state| state.machine.counters())
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_num_hwctrs() -> c_int {
    PAPI_num_cmp_hwctrs(0)
}
