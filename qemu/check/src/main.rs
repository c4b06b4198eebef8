//! A guest that checks the virtual PMU: prints one line per check on the serial port, `ok` or
//! `FAIL`; the exit status is 0 if all checks hold.

#![no_std]
#![no_main]

mod apic;
mod arch_pebs;
mod debug_store;
mod edges;
mod exactness;
mod features;
mod flags;
mod ibs;
mod injections;
mod kernel;
mod large_pages;
mod lbr;
mod lone_loads;
mod machine;
mod pebs;
mod pebs_6;
mod prefetch;
mod report;
mod rule;
mod rules;
mod suite;
mod unit;
mod vendor;
mod version_6;

use core::fmt::Write;

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(machine::Serial, "PANIC {info}");
    machine::exit(2)
}
