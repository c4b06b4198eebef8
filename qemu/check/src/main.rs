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
mod rules;
mod vendor;

use core::fmt::Write;

/// Entered from [`boot`] in 64-bit mode with interrupts off.
extern "C" fn main() -> ! {
    kernel::set_up();
    let mut report = report::Report::default();
    planned::run_first(&mut report);
    rules::run(&mut report);
    edges::run(&mut report);
    features::run(&mut report);
    planned::run(&mut report);
    exactness::run(&mut report);
    let _ = writeln!(machine::Serial, "{report}");
    machine::exit(u32::from(!report.all_held()))
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(machine::Serial, "PANIC {info}");
    machine::exit(2)
}
