//! Checks of the lengths in ACPI's tables before the library reads them. The library trusts them:
//! an entry of length 0 would make it loop for ever, a table beyond the memory would fault.

use super::madt;
use crate::memory::frames;

/// Bytes of a table's header.
const HEADER_BYTES: u64 = 36;
/// Maximum length of a table that is accepted.
const MAX_BYTES: u64 = 1 << 20;

/// The tables that the kernel reads, with the minimum length of each in bytes.
const LEAST: [(&[u8; 4], u64); 4] = [PROCESSORS, (b"FACP", 116), (b"HPET", 56), (b"SPCR", 80)];
/// The table of processors, whose entries are behind these bytes.
const PROCESSORS: (&[u8; 4], u64) = (b"APIC", 44);
/// Minimum length of a fixed table with 64-bit addresses, which revision 2 and later must have.
const LONG_FIXED_BYTES: u64 = 220;

/// A piece of physical memory.
#[derive(Clone, Copy)]
struct Bytes(&'static [u8]);

impl Bytes {
    /// Maps memory; `None` if the kernel cannot read it.
    fn at(address: u64, bytes: u64) -> Option<Bytes> {
        let start = frames::viewed(address, bytes)?;
        // SAFETY: the kernel's view has all of it; firmware's tables do not change.
        Some(Bytes(unsafe { core::slice::from_raw_parts(start.as_ptr(), bytes as usize) }))
    }

    /// The entries of the table of processors.
    fn behind_fields(self) -> &'static [u8] {
        &self.0[PROCESSORS.1 as usize..]
    }

    fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes([0, 1, 2, 3].map(|byte| self.0[at + byte]))
    }

    fn u64(self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }
}

/// The fault of the tables, a text for users; `None` if they can be read.
pub(super) fn fault(rsdp: u64) -> Option<&'static str> {
    match addresses(rsdp) {
        Ok(mut addresses) => addresses.find_map(fault_of),
        Err(fault) => Some(fault),
    }
}

/// The entries of the table of processors; `None` if there is none. The tables have no [`fault`].
pub(super) fn processors(rsdp: u64) -> Option<&'static [u8]> {
    let mut tables = addresses(rsdp).ok()?.filter_map(table);
    tables.find(|table| &table.0[..4] == PROCESSORS.0).map(Bytes::behind_fields)
}

/// The addresses of the tables.
///
/// # Errors
/// The fault of the list, a text for users.
fn addresses(rsdp: u64) -> Result<impl Iterator<Item = u64>, &'static str> {
    let pointer = Bytes::at(rsdp, HEADER_BYTES).ok_or("their pointer is not in memory")?;
    let is_long = pointer.0[15] > 0;
    let root = if is_long { pointer.u64(24) } else { pointer.u32(16).into() };
    let root = table(root).ok_or("the list of tables has no possible length")?;
    let entries = root.0[HEADER_BYTES as usize..].chunks_exact(if is_long { 8 } else { 4 });
    let address =
        |entry: &[u8]| entry.iter().rev().fold(0, |address, byte| address << 8 | u64::from(*byte));
    Ok(entries.map(address))
}

/// A table with its header; `None` if its length is impossible.
fn table(address: u64) -> Option<Bytes> {
    let length = Bytes::at(address, HEADER_BYTES)?.u32(4).into();
    if !(HEADER_BYTES..=MAX_BYTES).contains(&length) {
        return None;
    }
    Bytes::at(address, length)
}

/// The fault of the table at an address.
fn fault_of(address: u64) -> Option<&'static str> {
    let Some(header) = Bytes::at(address, HEADER_BYTES) else {
        return Some("one is not in memory");
    };
    let signature = &header.0[..4];
    // The library reads only these tables.
    let (_, least) = LEAST.iter().find(|(known, _)| *known == signature)?;
    let Some(table) = table(address) else { return Some("one has no possible length") };
    if (table.0.len() as u64) < *least {
        return Some("one is shorter than what it must have");
    }
    match signature {
        b"FACP" if table.0[8] >= 2 && (table.0.len() as u64) < LONG_FIXED_BYTES => {
            Some("the fixed table is shorter than its revision says")
        }
        b"APIC" => madt::fault(table.behind_fields()),
        _ => None,
    }
}
