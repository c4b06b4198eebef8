//! Interrupt vectors and the table that leads to their entries.

use spin::Once;
use x86_64::{PrivilegeLevel, structures::idt::InterruptDescriptorTable};

use tally_abi::boot::Delivery;

use super::segments::{FAULT_STACK, PMI_STACK};
use crate::measure;

/// The scheduler's timer.
pub const TIMER: u8 = 0x30;
/// A CPU that has nothing to do asks for a program, by `int`.
pub const RESCHEDULE: u8 = 0x31;
/// Another CPU wants to look at the program that runs here.
pub const COME: u8 = 0x32;
/// A CPU tells itself that a threshold of the program that runs here has fired: the program is
/// diverted on the way back to it, of which the overflow path knows nothing.
pub const UPCALL: u8 = 0x33;
/// The overflow interrupt: of a higher priority class than the timer (Intel SDM volume 3,
/// "Interrupt, Task, and Processor Priority").
pub const PMI: u8 = 0xe0;
/// The interrupt controller changed its mind.
pub const SPURIOUS: u8 = 0xff;

/// Bytes from one entry to the next in [`super::entry`]'s table.
const ENTRY_BYTES: u64 = 16;

static IDT: Once<InterruptDescriptorTable> = Once::new();

/// Builds the table at the first call, and loads it on this CPU.
pub fn load() {
    IDT.call_once(build).load();
}

fn build() -> InterruptDescriptorTable {
    let mut idt = InterruptDescriptorTable::new();
    let entry = |vector: u64| super::entry::table() + vector * ENTRY_BYTES;
    macro_rules! exceptions {
        ($($vector:literal $name:ident),* $(,)?) => {
            $(
                // SAFETY: the entry saves all registers, handles a frame with this vector's error
                // code, and returns by IRET (`super::entry`).
                unsafe { idt.$name.set_handler_addr(entry($vector)) };
            )*
        };
    }
    exceptions! {
        0 divide_error, 1 debug, 4 overflow, 5 bound_range_exceeded,
        6 invalid_opcode, 7 device_not_available, 10 invalid_tss, 11 segment_not_present,
        12 stack_segment_fault, 13 general_protection_fault, 14 page_fault,
        16 x87_floating_point, 17 alignment_check, 19 simd_floating_point, 20 virtualization,
        21 cp_protection_exception,
    }
    // A program may say INT3, and a debugger in it wants to hear of it.
    // SAFETY: as above.
    unsafe { idt.breakpoint.set_handler_addr(entry(3)).set_privilege_level(PrivilegeLevel::Ring3) };
    // SAFETY: as above, and the stack was set in every CPU's task state (`super::segments`). These
    // three may strike where the stack in use is not to be trusted.
    unsafe {
        idt.non_maskable_interrupt.set_handler_addr(entry(2)).set_stack_index(FAULT_STACK);
        idt.double_fault.set_handler_addr(entry(8)).set_stack_index(FAULT_STACK);
        idt.machine_check.set_handler_addr(entry(18)).set_stack_index(FAULT_STACK);
    }
    for vector in 32..=255_u8 {
        // SAFETY: as above; these vectors have no error code and their entries push a zero.
        unsafe { idt[vector].set_handler_addr(entry(u64::from(vector))) };
    }
    let (pmi, nmi) = super::entry::overflows();
    // SAFETY: the entries save what their handlers may change and return by IRET. Their stack was set in
    // every CPU's task state, and its first word is the CPU's own (`super::Cpu::start`). A fixed interrupt
    // and an NMI for overflows are never both in use.
    unsafe {
        idt[PMI].set_handler_addr(pmi).set_stack_index(PMI_STACK);
        if measure::overflows() == Delivery::Nmi {
            idt.non_maskable_interrupt.set_handler_addr(nmi).set_stack_index(PMI_STACK);
        }
    }
    idt
}

/// What an exception is called, for people.
pub fn exception_name(vector: u64) -> &'static str {
    match vector {
        0 => "division by zero",
        1 => "debug exception",
        2 => "non-maskable interrupt",
        3 => "breakpoint",
        4 => "overflow trap",
        5 => "bound range exceeded",
        6 => "invalid instruction",
        7 => "floating-point unit not available",
        8 => "double fault",
        10 => "invalid task state",
        11 => "segment not present",
        12 => "stack segment fault",
        13 => "general protection fault",
        14 => "page fault",
        16 => "floating-point error",
        17 => "misaligned access",
        18 => "machine check",
        19 => "SIMD floating-point error",
        20 => "virtualization exception",
        21 => "control protection fault",
        _ => "unknown exception",
    }
}
