//! The machine's own reasons for an NMI, which the system control port has (Intel, "Platform
//! Controller Hub" datasheets, "NMI Status and Control", port 61H).

use x86_64::instructions::port::Port;

const CONTROL: u16 = 0x61;
const SERR: u8 = 1 << 7;
const IO_CHECK: u8 = 1 << 6;
/// Without the port, all bits are read as set.
const NOTHING: u8 = 0xff;

/// Returns the reason for which the machine has raised an NMI, if it has.
pub fn reason() -> Option<&'static str> {
    // SAFETY: reading the port changes nothing.
    match unsafe { Port::<u8>::new(CONTROL).read() } {
        NOTHING => None,
        value if value & SERR != 0 => Some("a system error (SERR#) of memory or PCI"),
        value if value & IO_CHECK != 0 => Some("an error of a card (IOCHK#)"),
        _ => None,
    }
}
