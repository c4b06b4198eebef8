//! Boots the kernel on QEMU without firmware's help (docs/decisions/0032-boot-by-pvh.md): performs
//! the steps of the boot loader after it has left the firmware, with the same crate.
//!
//! QEMU has loaded the kernel and the ramdisk into memory before the first instruction
//! ([`tally_abi::loader`]). Firmware still runs before, to set up devices and ACPI's tables, but
//! loads nothing.

#![no_std]
#![no_main]

mod console;
mod memory;

use core::{arch::x86_64::__cpuid, slice};

use bootloader_x86_64_common::{Kernel, PageTables, SystemInfo, load_and_switch_to_kernel};
use tally_abi::loader::{LoadedFile, LoadedFiles};
use tally_pvh::StartInfo;
use x86_64::{
    PhysAddr, VirtAddr,
    registers::control::Cr3,
    structures::paging::{FrameAllocator, OffsetPageTable, PageTable, PhysFrame, Size4KiB},
};

use memory::MemoryMap;

// SAFETY: no other function of this program has the name.
#[unsafe(no_mangle)]
extern "C" fn pvh_main(info: &'static StartInfo) -> ! {
    assert!(has_no_execute(), "the processor has no NX bit, or firmware has disabled it");
    let line = info.command_line();
    let files = LoadedFiles::parse(line)
        .unwrap_or_else(|| panic!("the loader's command line is not one: `{line}`"));
    let map = MemoryMap::of(info);
    let free = files.end().expect("files end below 4 GiB");
    assert!(map.contains(free), "the machine has too little memory for its files");
    let mut frames = map.frames_from(PhysFrame::containing_address(PhysAddr::new(free)));
    let page_tables = page_tables(&mut frames);
    let system = SystemInfo {
        framebuffer: None,
        rsdp_addr: files.rsdp.or(info.rsdp()).map(PhysAddr::new),
        ramdisk_addr: Some(files.ramdisk.start),
        ramdisk_len: files.ramdisk.len,
    };
    let kernel = Kernel::parse(bytes(files.kernel));
    load_and_switch_to_kernel(kernel, Default::default(), frames, page_tables, system)
}

/// Returns whether pages can be made non-executable, as the kernel's are (Intel SDM volume 2, CPUID
/// leaf 80000001H).
fn has_no_execute() -> bool {
    let leaf = __cpuid(0x8000_0001);
    leaf.edx >> 20 & 1 == 1
}

/// The tables in use, and empty ones for the kernel.
fn page_tables(frames: &mut impl FrameAllocator<Size4KiB>) -> PageTables {
    let (own, _) = Cr3::read();
    let new = frames.allocate_frame().expect("there is memory behind the files");
    let table = |frame: PhysFrame| frame.start_address().as_u64() as *mut PageTable;
    // SAFETY: the frame is free, and identity-mapped as everything below 4 GiB.
    unsafe { table(new).write(PageTable::new()) };
    // SAFETY: likewise for both; each table has one reference.
    let [bootloader, kernel] = [own, new]
        .map(|frame| unsafe { OffsetPageTable::new(&mut *table(frame), VirtAddr::zero()) });
    PageTables { bootloader, kernel, kernel_level_4_frame: new }
}

fn bytes(file: LoadedFile) -> &'static [u8] {
    // SAFETY: QEMU has put the file there, in memory that is identity-mapped and not given out.
    unsafe { slice::from_raw_parts(file.start as *const u8, file.len as usize) }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    console::end_machine(format_args!("loader: {info}\n"))
}
