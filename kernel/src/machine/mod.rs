//! What the machine offers besides its processors and memory: serial ports, the firmware's tables,
//! a clock to measure others by, and a way to end.

pub mod acpi;
pub mod clock;
pub mod exit;
pub mod fw_cfg;
pub mod reference;
pub mod serial;
pub mod virtio;
pub mod vpmu;
