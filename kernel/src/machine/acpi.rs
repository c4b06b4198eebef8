//! The firmware's tables, for one thing: which processors there are.

use core::ptr::NonNull;

use acpi::{
    AcpiTables, Handler, PciAddress, PhysicalMapping,
    sdt::madt::{Madt, MadtEntry},
};
use alloc::vec::Vec;
use x86_64::PhysAddr;

use crate::memory::frames::kernel_view;

const ENABLED: u32 = 1;

/// Interrupt-controller numbers of the processors that can be used, in the firmware's order; none
/// if the tables cannot be read.
pub fn processors(rsdp: Option<u64>) -> Vec<u32> {
    let Some(rsdp) = rsdp else { return Vec::new() };
    // SAFETY: the boot loader got the address from the firmware.
    let tables = unsafe { AcpiTables::from_rsdp(Physical, rsdp as usize) };
    let Some(madt) = tables.ok().and_then(|tables| tables.find_table::<Madt>()) else {
        return Vec::new();
    };
    madt.get()
        .entries()
        .filter_map(|entry| match entry {
            MadtEntry::LocalApic(local) if local.flags & ENABLED != 0 => {
                Some(u32::from(local.apic_id))
            }
            MadtEntry::LocalX2Apic(local) if local.flags & ENABLED != 0 => Some(local.x2apic_id),
            _ => None,
        })
        .collect()
}

/// Shows the library physical memory. It reads tables only, and so never asks for ports, PCI or
/// time, whose part of the trait is for its interpreter, which is not built in.
#[derive(Clone)]
struct Physical;

macro_rules! not_asked_for {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        $(fn $name(&self, $(_: $argument),*) $(-> $result)? {
            unreachable!("reading tables needs no {}", stringify!($name))
        })*
    };
}

impl Handler for Physical {
    unsafe fn map_physical_region<T>(
        &self,
        physical_address: usize,
        size: usize,
    ) -> PhysicalMapping<Self, T> {
        let view = kernel_view(PhysAddr::new(physical_address as u64)).as_mut_ptr();
        PhysicalMapping {
            physical_start: physical_address,
            virtual_start: NonNull::new(view).expect("physical memory is not mapped at 0"),
            region_length: size,
            mapped_length: size,
            handler: self.clone(),
        }
    }

    fn unmap_physical_region<T>(_: &PhysicalMapping<Self, T>) {}

    not_asked_for! {
        read_u8(usize) -> u8;
        read_u16(usize) -> u16;
        read_u32(usize) -> u32;
        read_u64(usize) -> u64;
        write_u8(usize, u8);
        write_u16(usize, u16);
        write_u32(usize, u32);
        write_u64(usize, u64);
        read_io_u8(u16) -> u8;
        read_io_u16(u16) -> u16;
        read_io_u32(u16) -> u32;
        write_io_u8(u16, u8);
        write_io_u16(u16, u16);
        write_io_u32(u16, u32);
        read_pci_u8(PciAddress, u16) -> u8;
        read_pci_u16(PciAddress, u16) -> u16;
        read_pci_u32(PciAddress, u16) -> u32;
        write_pci_u8(PciAddress, u16, u8);
        write_pci_u16(PciAddress, u16, u16);
        write_pci_u32(PciAddress, u16, u32);
        nanos_since_boot() -> u64;
        stall(u64);
        sleep(u64);
    }
}
