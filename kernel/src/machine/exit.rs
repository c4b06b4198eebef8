//! The end of the machine's work.

use tally_abi::{boot::DEBUG_EXIT_PORT, vpmu::Op};
use x86_64::instructions::{hlt, interrupts, port::Port};

use super::vpmu;

/// Ends the machine: QEMU with status `2 status + 1` through its debug-exit device; any other
/// machine stands still until it is switched off.
pub fn stop(status: u8) -> ! {
    vpmu::ask(Op::End, 0);
    // SAFETY: where the device is not there, nobody listens at this port.
    unsafe { Port::<u8>::new(DEBUG_EXIT_PORT).write(status) };
    interrupts::disable();
    loop {
        hlt();
    }
}
