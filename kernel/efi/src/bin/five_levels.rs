//! For tests: enables five-level paging, as some firmware does, and returns to the firmware, which
//! then boots from the next device.

#![no_std]
#![no_main]

use r_efi::efi;
use tally_efi::firmware::Firmware;

// SAFETY: the linker's name of a UEFI application's entry point; no other function has it.
#[unsafe(no_mangle)]
extern "efiapi" fn efi_main(_: efi::Handle, system: *mut efi::SystemTable) -> efi::Status {
    // SAFETY: the firmware calls the entry point with its table while the boot services run.
    let firmware = unsafe { Firmware::new(system) };
    match firmware.switch() {
        Ok(switch) => switch.enter_five_levels(),
        Err(why) => firmware.print(why),
    }
    efi::Status::NOT_FOUND
}
