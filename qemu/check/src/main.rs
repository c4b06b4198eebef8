//! A guest that walks the virtual PMU's rules: one line a check on the serial port, `ok` or `FAIL`,
//! and an exit status that says whether all held.

#![no_std]
#![no_main]

mod apic;
mod boot;
mod edges;
mod exactness;
mod features;
mod flags;
mod kernel;
mod machine;
mod planned;
mod report;
mod rule;
mod rules;
mod suite;
mod vendor;

use core::fmt::Write;

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(machine::Serial, "PANIC {info}");
    machine::exit(2)
}
