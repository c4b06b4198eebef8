//! ACPI's table of processors and interrupt controllers (ACPI 6.5, 5.2.12 "Multiple APIC
//! Description Table"): its entries, behind the table's own fields.

use alloc::vec::Vec;

/// Kinds of entries that the kernel reads, with the minimum length of each: a processor by its APIC
/// ID, an I/O APIC, and a processor by its x2APIC ID.
const LOCAL_APIC: (u8, usize) = (0, 8);
const IO_APIC: (u8, usize) = (1, 12);
const LOCAL_X2APIC: (u8, usize) = (9, 16);

const ENABLED: u32 = 1;
/// The broadcast IDs of both kinds of processors, which no processor has (Intel SDM volume 3,
/// "Determining IPI Destination").
const ALL: u8 = 0xff;
const ALL_X2APIC: u32 = u32::MAX;

/// The fault of the entries, a text for users; `None` if they can be read.
pub fn fault(mut entries: &[u8]) -> Option<&'static str> {
    while let [kind, length, ..] = *entries {
        let length = usize::from(length);
        let known = [LOCAL_APIC, IO_APIC, LOCAL_X2APIC].into_iter().find(|(of, _)| *of == kind);
        let least = known.map_or(2, |(_, least)| least);
        if length < least || length > entries.len() {
            return Some("the table of processors has an entry of an impossible length");
        }
        entries = &entries[length..];
    }
    (!entries.is_empty()).then_some("the table of processors ends within an entry")
}

/// APIC IDs of the enabled processors, each once, in the firmware's order. The entries have no
/// [`fault`].
pub fn processors(entries: &[u8]) -> Vec<u32> {
    let mut processors = Vec::new();
    for entry in split(entries) {
        let (id, flags) = match entry {
            [kind, _, _, id, flags @ ..] if *kind == LOCAL_APIC.0 && *id != ALL => {
                (u32::from(*id), word(flags))
            }
            [kind, _, _, _, fields @ ..] if *kind == LOCAL_X2APIC.0 => {
                (word(fields), word(&fields[4..]))
            }
            _ => continue,
        };
        // Some firmware lists a processor as both xAPIC and x2APIC.
        let is_new = id != ALL_X2APIC && !processors.contains(&id);
        if flags & ENABLED != 0 && is_new {
            processors.push(id);
        }
    }
    processors
}

/// The physical addresses of the I/O APICs. The entries have no [`fault`].
pub fn io_apics(entries: &[u8]) -> Vec<u32> {
    let is_one = |entry: &&[u8]| entry[0] == IO_APIC.0;
    split(entries).filter(is_one).map(|entry| word(&entry[4..])).collect()
}

/// The entries, one by one.
fn split(mut entries: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::from_fn(move || {
        let (entry, rest) = entries.split_at_checked(usize::from(*entries.get(1)?))?;
        entries = rest;
        Some(entry)
    })
}

/// The little-endian word at the start of `bytes`.
fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}
