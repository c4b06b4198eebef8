//! The local APIC, in both modes: the performance entry of the local vector table, and the timer.

use core::ptr::NonNull;

use volatile::VolatilePtr;

use crate::machine::{TIMER_VECTOR, rdmsr, wrmsr};

/// Address of the local APIC's registers, which are identity-mapped.
pub const APIC: u64 = 0xfee0_0000;
const IA32_APIC_BASE: u32 = 0x1b;
const X2APIC: u64 = 1 << 10;

/// Returns whether the APIC is in x2APIC mode.
fn is_x2apic() -> bool {
    rdmsr(IA32_APIC_BASE) & X2APIC != 0
}

/// Enables x2APIC mode, for the rest of the run.
pub fn enter_x2apic() {
    wrmsr(IA32_APIC_BASE, rdmsr(IA32_APIC_BASE) | X2APIC);
}

/// An APIC register in memory.
fn in_page(register: u64) -> VolatilePtr<'static, u32> {
    let address = NonNull::new((APIC + register) as *mut u32).expect("the page is not at 0");
    // SAFETY: the APIC's page is mapped, and its registers are words that any access may use.
    unsafe { VolatilePtr::new(address) }
}

/// Writes an APIC register in the current mode.
pub fn apic_write(register: u64, value: u32) {
    if is_x2apic() {
        wrmsr(0x800 + (register >> 4) as u32, value.into());
    } else {
        in_page(register).write(value);
    }
}

/// Reads an APIC register in the current mode.
pub fn apic_read(register: u64) -> u32 {
    if is_x2apic() {
        rdmsr(0x800 + (register >> 4) as u32) as u32
    } else {
        in_page(register).read()
    }
}

/// Signals the end of an interrupt.
pub fn end_of_interrupt() {
    apic_write(0xb0, 0);
}

/// The performance entry of the local vector table.
pub const LVT_PERFORMANCE: u64 = 0x340;
/// Mask bit of the performance entry.
pub const LVT_MASKED: u32 = 1 << 16;

/// Starts the timer with an interrupt every `count` ticks, or stops it for 0.
pub fn timer(count: u32) {
    apic_write(0x3e0, 0xb);
    apic_write(0x320, if count == 0 { LVT_MASKED } else { 1 << 17 | u32::from(TIMER_VECTOR) });
    apic_write(0x380, count);
}
