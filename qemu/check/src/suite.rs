//! All checks, in the order in which they run.

use core::fmt::Write;

use tally_pvh::StartInfo;

use crate::{
    arch_pebs, edges, exactness, features, ibs, injections, kernel, large_pages, lbr,
    machine::{self, Serial},
    pebs, prefetch,
    report::CheckReport,
    rules, unit,
};

/// Runs all checks.
// SAFETY: no other function of this program has the name.
#[unsafe(no_mangle)]
extern "C" fn pvh_main(_info: &'static StartInfo) -> ! {
    kernel::set_up();
    let mut report = CheckReport::default();
    prefetch::turn_off();
    injections::run_first(&mut report);
    rules::run(&mut report);
    edges::run(&mut report);
    features::run(&mut report);
    injections::run(&mut report);
    unit::run(&mut report);
    pebs::run_all(&mut report);
    arch_pebs::run_all(&mut report);
    lbr::run_all(&mut report);
    ibs::run_all(&mut report);
    prefetch::run(&mut report);
    large_pages::run(&mut report);
    exactness::run(&mut report);
    // Behind the checks above the APIC is in x2APIC mode.
    ibs::in_x2apic(&mut report);
    let _ = writeln!(Serial, "{report}");
    machine::exit(u32::from(!report.all_held()))
}
