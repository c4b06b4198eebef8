//! The kernel's reader of ACPI's table of processors, on tables of this test's making.

extern crate alloc;

#[path = "../../kernel/src/machine/madt.rs"]
mod madt;

/// A processor by its APIC ID.
fn local(id: u8, flags: u32) -> Vec<u8> {
    [&[0, 8, 0, id][..], &flags.to_le_bytes()].concat()
}

/// A processor by its x2APIC ID.
fn x2apic(id: u32, flags: u32) -> Vec<u8> {
    [&[9, 16, 0, 0][..], &id.to_le_bytes(), &flags.to_le_bytes(), &[0; 4]].concat()
}

/// An I/O APIC.
fn io_apic(address: u32) -> Vec<u8> {
    [&[1, 12, 0, 0][..], &address.to_le_bytes(), &[0; 4]].concat()
}

/// A source of interrupts, which the kernel does not read.
const OVERRIDE: [u8; 10] = [2, 10, 0, 0, 2, 0, 0, 0, 0, 0];

#[test]
fn processors_of_both_kinds_are_found_once_each() {
    let entries = [
        local(0, 1),
        x2apic(256, 1),
        OVERRIDE.to_vec(),
        // Listed as both kinds, and disabled.
        local(7, 1),
        x2apic(7, 1),
        local(8, 0),
        x2apic(300, 0),
        // Disabled, but it can be plugged in later.
        x2apic(301, 2),
        // The broadcast IDs; 255 is an ID like others for an x2APIC.
        local(255, 1),
        x2apic(u32::MAX, 1),
        x2apic(255, 1),
        x2apic(4095, 1),
    ]
    .concat();
    assert_eq!(madt::fault(&entries), None);
    assert_eq!(madt::processors(&entries), [0, 256, 7, 255, 4095]);
}

#[test]
fn a_thousand_processors_are_found() {
    let entries: Vec<u8> = (0..1024).flat_map(|id| x2apic(2 * id, 1)).collect();
    let processors = madt::processors(&entries);
    assert_eq!((processors.len(), processors.last()), (1024, Some(&2046)));
}

#[test]
fn io_apics_are_found() {
    let entries = [local(0, 1), io_apic(0xfec0_0000), x2apic(1, 1), io_apic(0xfec1_0000)].concat();
    assert_eq!(madt::io_apics(&entries), [0xfec0_0000, 0xfec1_0000]);
    assert_eq!(madt::processors(&entries), [0, 1]);
}

#[test]
fn entries_of_impossible_lengths_are_refused() {
    let long = [local(0, 1), vec![9, 17, 0, 0], vec![0; 12]].concat();
    let cut = [local(0, 1), vec![9]].concat();
    let faults = [vec![0, 0, 0, 0], vec![9, 15, 0, 0], vec![1, 11, 0], long, cut];
    for entries in faults {
        assert!(madt::fault(&entries).is_some(), "{entries:?}");
    }
    assert_eq!(madt::fault(&[]), None);
}
