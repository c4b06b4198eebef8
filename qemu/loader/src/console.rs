//! The last message on the log's serial port.

use core::fmt::{self, Write};

use tally_abi::boot::{DEBUG_EXIT_PORT, LOG_PORT};
use x86_64::instructions::{hlt, port::Port};

/// QEMU's UART for the log, which takes bytes without waiting.
struct Log;

impl Write for Log {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the log's UART, which nothing else uses before the kernel runs.
            unsafe { Port::new(LOG_PORT).write(byte) };
        }
        Ok(())
    }
}

/// Writes `why` into the log and ends QEMU.
pub fn end_machine(why: fmt::Arguments<'_>) -> ! {
    // The port cannot fail.
    let _ = Log.write_fmt(why);
    // SAFETY: ends QEMU, if it has the device.
    unsafe { Port::<u8>::new(DEBUG_EXIT_PORT).write(1) };
    loop {
        hlt();
    }
}
