//! First stage, which UEFI firmware starts before the boot loader: on a processor with five-level
//! paging it leaves that mode, because the boot loader builds page tables of four levels
//! (docs/decisions/0061-five-level-paging.md).
//!
//! Runs in ring 0, with the firmware's page tables, which map all memory at its physical address.

#![no_std]

pub mod boot_loader;
pub mod firmware;
pub mod paging;

use core::panic::PanicInfo;

/// Halts. No code here panics on purpose; the firmware's watchdog restarts the machine.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        x86_64::instructions::hlt();
    }
}
