//! Every check, in the order in which they run.

use core::fmt::Write;

use crate::{
    edges, exactness, features, kernel,
    machine::{self, Serial},
    planned,
    report::Report,
    rules,
};

/// The boot code enters it in 64-bit mode with interrupts off.
pub extern "C" fn main() -> ! {
    kernel::set_up();
    let mut report = Report::default();
    planned::run_first(&mut report);
    rules::run(&mut report);
    edges::run(&mut report);
    features::run(&mut report);
    planned::run(&mut report);
    exactness::run(&mut report);
    let _ = writeln!(Serial, "{report}");
    machine::exit(u32::from(!report.all_held()))
}
