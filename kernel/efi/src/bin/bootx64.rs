//! `efi/boot/bootx64.efi`: starts the boot loader, which is in it. If the firmware has left
//! five-level paging enabled, the end of the boot services disables it.

#![no_std]
#![no_main]

use r_efi::efi;
use tally_efi::{boot_loader, firmware::Firmware, paging};

/// Boot loader, as `tally-image` has written it.
static BOOT_LOADER: &[u8] = include_bytes!(env!("TALLY_BOOT_LOADER"));

// SAFETY: the linker's name of a UEFI application's entry point; no other function has it.
#[unsafe(no_mangle)]
extern "efiapi" fn efi_main(image: efi::Handle, system: *mut efi::SystemTable) -> efi::Status {
    // SAFETY: the firmware calls the entry point with its table while the boot services run.
    let firmware = unsafe { Firmware::new(system) };
    match start(firmware) {
        Ok(boot_loader) => boot_loader(image, system),
        Err(why) => {
            firmware.print(why);
            efi::Status::LOAD_ERROR
        }
    }
}

fn start(firmware: Firmware) -> Result<boot_loader::Entry, &'static str> {
    if paging::has_five_levels() {
        firmware.switch_at_exit(firmware.switch()?);
        firmware.print("tally: five-level paging is on; the kernel starts with four levels\r\n");
    }
    boot_loader::load(firmware, BOOT_LOADER)
}
