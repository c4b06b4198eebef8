//! Code shared by Tally's programs: options, the default list of events, and the work.

#![no_std]

extern crate alloc;

pub mod options;
pub mod store;

use core::arch::x86_64::__cpuid;

use tally::events;

/// Returns the default list of events of this processor.
pub fn default_events() -> &'static str {
    events::default_list(signature())
}

/// Returns the signature of this processor: CPUID leaf 1, EAX.
pub fn signature() -> u32 {
    __cpuid(1).eax
}

/// Returns whether the machine is QEMU's binary translator, whose clock is the model's: an
/// instruction takes a nanosecond.
pub fn has_modelled_clock() -> bool {
    // The leaf in which a hypervisor names itself.
    let name = __cpuid(0x4000_0000);
    [name.ebx, name.ecx, name.edx].map(u32::to_le_bytes).as_flattened() == b"TCGTCGTCGTCG"
}
