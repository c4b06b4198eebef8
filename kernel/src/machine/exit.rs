//! Stopping the machine.

use tally_abi::{boot::DEBUG_EXIT_PORT, vpmu::Op};
use tally_pmu::virtual_pmu;
use x86_64::instructions::{hlt, interrupts, port::Port};

use super::screen;

/// Shows the results of a finished run on the screen, until the machine is switched off. Returns if
/// there are no results to show.
pub fn show_results() {
    if screen::has_results() {
        virtual_pmu::ask(Op::End, 0);
        screen::show_results();
    }
}

/// Stops the machine: QEMU exits with status `2 status + 1` through its debug-exit device; any
/// other machine halts until it is switched off.
pub fn stop(status: u8) -> ! {
    virtual_pmu::ask(Op::End, 0);
    // SAFETY: without the device, no other device uses this port.
    unsafe { Port::<u8>::new(DEBUG_EXIT_PORT).write(status) };
    interrupts::disable();
    loop {
        hlt();
    }
}
