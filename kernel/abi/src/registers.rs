//! A processor's registers: those that an entry to the kernel saves, and all that the kernel
//! reports when it stops.

use serde::{Deserialize, Serialize};

macro_rules! frame {
    ($($(#[doc = $about:literal])* $name:ident,)*) => {
        /// A trap frame: the registers of what the kernel interrupted, in the order in which the
        /// entry stubs push them.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[repr(C)]
        #[expect(missing_docs, reason = "registers have the names that the manuals give them")]
        pub struct Frame {
            $($(#[doc = $about])* pub $name: u64,)*
        }

        impl Frame {
            /// The registers with their names, the last that is pushed first.
            fn named(&self) -> [(&'static str, u64); size_of::<Frame>() / size_of::<u64>()] {
                [$((stringify!($name), self.$name)),*]
            }
        }
    };
}

frame! {
    r15, r14, r13, r12, r11, r10, r9, r8,
    rbp, rdi, rsi, rdx, rcx, rbx, rax,
    /// The number of the interrupt or exception (Intel SDM volume 3, "Protected-Mode Exceptions and
    /// Interrupts"); above 255 for a frame of neither.
    vector,
    /// The exception's error code, or 0.
    error,
    rip, cs, rflags, rsp, ss,
}

/// The registers of a CPU on which the kernel stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registers {
    /// Registers of the code that the kernel interrupted, or the kernel's own if it panicked.
    pub frame: Frame,
    /// CR0.
    pub cr0: u64,
    /// CR2: the address of the last page fault.
    pub cr2: u64,
    /// CR3.
    pub cr3: u64,
    /// CR4.
    pub cr4: u64,
    /// APIC ID of the CPU.
    pub apic_id: u64,
}

impl Registers {
    /// The registers with their names; instruction and stack pointer are among the first.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let Registers { frame, cr0, cr2, cr3, cr4, apic_id } = *self;
        let others = [("cr0", cr0), ("cr2", cr2), ("cr3", cr3), ("cr4", cr4), ("apic_id", apic_id)];
        frame.named().into_iter().rev().chain(others)
    }
}
