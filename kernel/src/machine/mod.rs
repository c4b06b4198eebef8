//! Devices and firmware: serial ports, the screen, ACPI tables, clocks, virtio, fw_cfg, and the
//! machine's end.

pub mod acpi;
mod acpi_lengths;
pub mod clock;
pub mod console;
pub mod exit;
pub mod fw_cfg;
mod hpet;
pub mod io_apic;
mod madt;
pub mod nmi;
pub mod port;
pub mod reference;
pub mod screen;
pub mod serial;
pub mod virtio;
