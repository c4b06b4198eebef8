//! PAPI's classic calls on Tally: the functions that `papi.h` declares, in `libpapi.a`.
//!
//! An event set has a Tally session, which sets with the same events share, and counts its own
//! thread and time as a part of it ([`tally_rust::Part`]). Values are the part's estimates;
//! `PAPI_tally_readings` returns their errors. Codes, states and the life cycle of a set are those
//! of PAPI 7.0 (docs/decisions/archive/0031-papi.md).
//!
//! Like `libtally.a`, the archive requires nothing from the program that it is linked with, and
//! defines no global symbols other than the functions of `papi.h`. A C program passes valid
//! pointers, or null where PAPI permits it; the module `pointers` dereferences them.

#![no_std]

extern crate alloc;

mod answer;
mod calls;
mod events;
mod histogram;
mod layout;
mod machine;
mod overflow;
mod pointers;
mod pool;
mod presets;
mod set;
mod state;

use tally_rust::{heap, sys};

#[global_allocator]
static HEAP: heap::Heap = heap::new();

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    sys::exit_on_panic(info)
}
