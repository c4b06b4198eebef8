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

/// Clock of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Clock of the processor.
    Processor,
    /// Clock of the model, of QEMU's binary translator on one CPU: a step, an instruction or a
    /// repetition of a string instruction, takes a nanosecond.
    Model,
    /// Clock of the host on which the translator executes several CPUs.
    Host,
}

impl Clock {
    /// Clock of this machine.
    pub fn of_machine() -> Clock {
        // The leaf in which a hypervisor names itself.
        let name = __cpuid(0x4000_0000);
        if [name.ebx, name.ecx, name.edx].map(u32::to_le_bytes).as_flattened() != b"TCGTCGTCGTCG" {
            return Clock::Processor;
        }
        // Leaf 01H, EBX: logical processors of the package; 0 if there is one.
        if __cpuid(1).ebx >> 16 & 0xff > 1 { Clock::Host } else { Clock::Model }
    }

    /// Remark on a time of this clock, behind its unit; empty for a processor's.
    pub fn remark(self) -> &'static str {
        match self {
            Clock::Processor => "",
            Clock::Model => " (modelled: 1 ns a step)",
            Clock::Host => " (the simulation's own time)",
        }
    }
}
