//! QEMU's firmware-configuration device, with which the host passes the command line without
//! changing the image. QEMU documentation, "QEMU Firmware Configuration (fw_cfg) Device".

use alloc::{string::String, vec, vec::Vec};

use raw_cpuid::CpuId;
use x86_64::instructions::port::Port;

const SELECTOR: u16 = 0x510;
const DATA: u16 = 0x511;
const SIGNATURE: u16 = 0;
const DIRECTORY: u16 = 0x19;
/// Bytes of a directory entry: size, selector, reserved, name.
const ENTRY_BYTES: usize = 64;
/// Maximum number of directory entries that the kernel reads: more than any machine has.
const MAX_FILES: usize = 1024;

fn select(item: u16) {
    // SAFETY: the device's selector port; `read_text` checks the signature first, and only under a
    // hypervisor.
    unsafe { Port::<u16>::new(SELECTOR).write(item) };
}

fn read(bytes: usize) -> Vec<u8> {
    let mut port = Port::<u8>::new(DATA);
    let mut data = vec![0; bytes];
    for byte in &mut data {
        // SAFETY: a read of the data port advances in the selected item, and has no other effect.
        *byte = unsafe { port.read() };
    }
    data
}

/// The text of the file `name`; `None` if this machine lacks the device or the file.
pub fn read_text(name: &str) -> Option<String> {
    let in_hypervisor = CpuId::new().get_feature_info().is_some_and(|f| f.has_hypervisor());
    if !in_hypervisor {
        return None;
    }
    select(SIGNATURE);
    if read(4) != b"QEMU" {
        return None;
    }
    select(DIRECTORY);
    let count = u32::from_be_bytes(read(4).try_into().ok()?) as usize;
    let directory = read(count.min(MAX_FILES) * ENTRY_BYTES);
    let (size, item) = directory.chunks_exact(ENTRY_BYTES).find_map(|entry| {
        let (size, rest) = entry.split_first_chunk::<4>()?;
        let (item, rest) = rest.split_first_chunk::<2>()?;
        let label = rest[2..].split(|byte| *byte == 0).next()?;
        (label == name.as_bytes()).then(|| (u32::from_be_bytes(*size), u16::from_be_bytes(*item)))
    })?;
    select(item);
    let text = String::from_utf8(read(size as usize)).ok()?;
    Some(text.trim_end_matches('\0').into())
}
