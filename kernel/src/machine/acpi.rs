//! ACPI tables: the processors, the I/O APICs, the timers, and the firmware's console.

use core::ptr::NonNull;

use acpi::{
    AcpiTables, Handler, PciAddress, PhysicalMapping,
    address::{AddressSpace, StandardAccessSize},
    sdt::{
        fadt::Fadt,
        hpet::HpetTable,
        spcr::{Spcr, SpcrInterfaceType},
    },
};
use alloc::vec::Vec;
use spin::Once;
use x86_64::PhysAddr;

use super::{acpi_lengths, console::Place, madt};
use crate::memory::frames::kernel_view;

/// The address space of memory (ACPI 6.5, 5.2.3.2 "Generic Address Structure").
const SYSTEM_MEMORY: u8 = 0;

/// Whether the tables can be read. The first call logs the faulty ones.
static ARE_SOUND: Once<bool> = Once::new();

/// Returns whether the tables can be read.
fn are_sound(address: u64) -> bool {
    *ARE_SOUND.call_once(|| {
        let fault = acpi_lengths::fault(address);
        if let Some(fault) = fault {
            log::warn!("ACPI's tables are not used: {fault}; 1 CPU runs");
        }
        fault.is_none()
    })
}

fn tables(rsdp: Option<u64>) -> Option<AcpiTables<Physical>> {
    let address = rsdp.filter(|address| are_sound(*address))?;
    // SAFETY: the boot loader got the address from the firmware, and the lengths are right.
    unsafe { AcpiTables::from_rsdp(Physical, address as usize) }.ok()
}

/// APIC IDs of the enabled processors, each once, in the firmware's order; empty if the tables
/// cannot be read.
pub fn processors(rsdp: Option<u64>) -> Vec<u32> {
    entries(rsdp).map(madt::processors).unwrap_or_default()
}

/// The physical addresses of the I/O APICs.
pub fn io_apics(rsdp: Option<u64>) -> Vec<u32> {
    entries(rsdp).map(madt::io_apics).unwrap_or_default()
}

/// The entries of the table of processors.
fn entries(rsdp: Option<u64>) -> Option<&'static [u8]> {
    acpi_lengths::processors(rsdp.filter(|address| are_sound(*address))?)
}

/// The port of ACPI's timer; `None` if the machine has none.
pub fn timer_port(rsdp: Option<u64>) -> Option<u16> {
    let fadt = tables(rsdp)?.find_table::<Fadt>()?;
    let block = fadt.get().pm_timer_block().ok()??;
    let is_port = block.address_space == AddressSpace::SystemIo;
    u16::try_from(block.address).ok().filter(|_| is_port)
}

/// The physical address of the high-precision event timer; `None` if the tables have none.
pub fn hpet_address(rsdp: Option<u64>) -> Option<u64> {
    let table = tables(rsdp)?.find_table::<HpetTable>()?;
    let base = table.get().base_address;
    // The table is packed, so its fields are copied.
    let (space, address) = (base.address_space, base.address);
    (space == SYSTEM_MEMORY).then_some(address)
}

/// The registers of the serial port that firmware uses as its console; `None` if it uses none, or
/// one that is no 16550.
pub fn console(rsdp: Option<u64>) -> Option<Place> {
    let table = tables(rsdp)?.find_table::<Spcr>()?;
    let kind = table.get().interface_type();
    let is_known = matches!(
        kind,
        SpcrInterfaceType::Full16550
            | SpcrInterfaceType::Full16450
            | SpcrInterfaceType::Generic16550
    );
    let base = table.get().base_address().filter(|_| is_known)?.ok()?;
    match base.address_space {
        AddressSpace::SystemIo => u16::try_from(base.address).ok().map(Place::Port),
        AddressSpace::SystemMemory => {
            let stride = match base.standard_access_size() {
                Ok(StandardAccessSize::DWordAccess) => 4,
                Ok(StandardAccessSize::WordAccess) => 2,
                _ => 1,
            };
            Some(Place::Memory { address: base.address, stride })
        }
        _ => None,
    }
}

/// Maps physical memory for the library. The library only reads tables: the trait's ports, PCI and
/// time are for its AML interpreter, which is not built in.
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
