//! Every check, in the order in which they run.

use core::fmt::Write;

use crate::{
    edges, exactness, features, injections, kernel,
    machine::{self, Serial},
    report::CheckReport,
    rules,
};

/// Runs all checks. The boot code calls it in 64-bit mode with interrupts off.
pub extern "C" fn main() -> ! {
    kernel::set_up();
    let mut report = CheckReport::default();
    injections::run_first(&mut report);
    rules::run(&mut report);
    edges::run(&mut report);
    features::run(&mut report);
    injections::run(&mut report);
    exactness::run(&mut report);
    let _ = writeln!(Serial, "{report}");
    machine::exit(u32::from(!report.all_held()))
}
