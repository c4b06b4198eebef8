//! Services of the firmware that this package uses (UEFI specification 2.10, section 7).

use core::{
    mem, ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use r_efi::efi;

use crate::paging::Switch;

/// Last address that 32-bit code reaches.
const BELOW_4_GIB: u64 = 0xffff_ffff;
/// Characters that [`Firmware::print`] passes to the console at a time.
const CHARACTERS: usize = 64;

/// Firmware, while its boot services run.
#[derive(Clone, Copy, Debug)]
pub struct Firmware {
    system: *mut efi::SystemTable,
}

impl Firmware {
    /// # Safety
    /// `system` is the table that the firmware has passed to this image's entry, and the boot
    /// services run.
    pub unsafe fn new(system: *mut efi::SystemTable) -> Firmware {
        Firmware { system }
    }

    fn boot_services(self) -> *mut efi::BootServices {
        // SAFETY: a condition of `new`.
        unsafe { (*self.system).boot_services }
    }

    /// Allocates `pages` pages for code and data up to the address `last`. They are never freed.
    ///
    /// # Errors
    /// No pages are free; the status holds the reason.
    pub fn allocate(self, pages: usize, last: u64) -> Result<*mut u8, efi::Status> {
        let mut start = last;
        // SAFETY: a condition of `new`; `start` outlives the call.
        let status = unsafe {
            ((*self.boot_services()).allocate_pages)(
                efi::ALLOCATE_MAX_ADDRESS,
                efi::LOADER_CODE,
                pages,
                &mut start,
            )
        };
        if status == efi::Status::SUCCESS { Ok(start as *mut u8) } else { Err(status) }
    }

    /// Allocates the memory of a switch.
    ///
    /// # Errors
    /// No memory is free; the text reports it.
    pub fn switch(self) -> Result<Switch, &'static str> {
        let memory = self
            .allocate(2, BELOW_4_GIB)
            .map_err(|_| "tally: no memory below 4 GiB to change the levels of paging\r\n")?;
        // SAFETY: new memory for code and data; the firmware maps all at its physical address.
        Ok(unsafe { Switch::new(memory) })
    }

    /// Prints the ASCII text `text` on the console, if there is one.
    pub fn print(self, text: &str) {
        // SAFETY: a condition of `new`.
        let console = unsafe { (*self.system).con_out };
        if console.is_null() {
            return;
        }
        for part in text.as_bytes().chunks(CHARACTERS) {
            let mut wide = [0u16; CHARACTERS + 1];
            for (to, from) in wide.iter_mut().zip(part) {
                *to = (*from).into();
            }
            // SAFETY: the firmware's console; the text ends with a zero and outlives the call. Text
            // that cannot be printed is lost.
            let _ = unsafe { ((*console).output_string)(console, wide.as_mut_ptr()) };
        }
    }

    /// Makes the end of the boot services run `switch`. The firmware has stopped by then, so none
    /// of its code sees the page tables change.
    pub fn switch_at_exit(self, switch: Switch) {
        // SAFETY: a condition of `new`. The table is writable: the specification has drivers
        // replace its functions ("EFI Boot Services Table"), with the checksum renewed.
        unsafe {
            let services = self.boot_services();
            EXIT.store((*services).exit_boot_services as *mut (), Ordering::Relaxed);
            SWITCH.store(switch.into_raw(), Ordering::Relaxed);
            (*services).exit_boot_services = exit_boot_services;
            let header = &mut (*services).hdr;
            header.crc32 = 0;
            let mut sum = 0;
            let bytes = header.header_size as usize;
            let computed = ((*services).calculate_crc32)(services.cast(), bytes, &mut sum);
            if computed == efi::Status::SUCCESS {
                (*services).hdr.crc32 = sum;
            }
        }
    }
}

/// The firmware's own function. Relaxed: one CPU runs until the boot loader's end.
static EXIT: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
/// Switch to run at the end of the boot services; see [`EXIT`].
static SWITCH: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// Ends the boot services. Fails, as the firmware's own does, if `key` is not that of the current
/// memory map.
extern "efiapi" fn exit_boot_services(image: efi::Handle, key: usize) -> efi::Status {
    // SAFETY: `switch_at_exit` has stored the firmware's function, and a switch.
    let (exit, switch) = unsafe {
        let exit: efi::BootExitBootServices = mem::transmute(EXIT.load(Ordering::Relaxed));
        (exit, Switch::from_raw(SWITCH.load(Ordering::Relaxed)))
    };
    // SAFETY: as the caller called it.
    let status = unsafe { exit(image, key) };
    if status == efi::Status::SUCCESS {
        switch.leave_five_levels();
    }
    status
}
