//! Clocks of the machine since boot, and of the calling thread.

use core::ffi::c_int;

use crate::{machine, state::with};

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_real_cyc() -> i64 {
    machine::real_cycles()
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_real_nsec() -> i64 {
    machine::real_ns()
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_real_usec() -> i64 {
    machine::real_ns() / 1000
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_virt_cyc() -> i64 {
    let mhz: c_int = with(|state| state.machine.hardware.clock_mhz);
    machine::thread_ns() * i64::from(mhz) / 1000
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_virt_nsec() -> i64 {
    machine::thread_ns()
}

#[unsafe(no_mangle)]
extern "C" fn PAPI_get_virt_usec() -> i64 {
    machine::thread_ns() / 1000
}
