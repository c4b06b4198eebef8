//! The trace's records of a sample's stack, from which the host finds the callers.

use serde::{Deserialize, Serialize};

use crate::{
    Malformed,
    record::{Field, FieldType, Form, RecordType, place, record},
    registers::Frame,
};

/// The most bytes of the stack that are copied for a sample.
pub const MAX_STACK_BYTES: u64 = 32_768;
/// Words of the stack in a record: few, so that records fit the pages of the ring.
pub const STACK_WORDS: usize = 16;

record! {
    /// The registers of the thread that was sampled, at the sample's address: the thread has
    /// executed nothing since. The parts of its stack follow ([`StackRecord`]).
    RegistersRecord = 10 "registers", stamp tsc "TSC when the registers were written." {
        /// The session.
        session: u32,
        /// The CPU.
        cpu: u16,
        /// The time stamp of the sample, or of the samples that were taken together.
        sample_tsc: u64,
        /// The sample's address.
        rip: u64 as Address,
        /// The stack pointer, from which on the stack is copied.
        rsp: u64 as Address,
        /// RAX.
        rax: u64,
        /// RBX.
        rbx: u64,
        /// RCX.
        rcx: u64,
        /// RDX.
        rdx: u64,
        /// RSI.
        rsi: u64,
        /// RDI.
        rdi: u64,
        /// RBP.
        rbp: u64,
        /// R8.
        r8: u64,
        /// R9.
        r9: u64,
        /// R10.
        r10: u64,
        /// R11.
        r11: u64,
        /// R12.
        r12: u64,
        /// R13.
        r13: u64,
        /// R14.
        r14: u64,
        /// R15.
        r15: u64,
    }
}

record! {
    /// A part of the stack of a sample whose registers were written. Parts follow one another from
    /// the stack pointer up, as far as the program's memory reaches.
    StackRecord = 11 "stack", stamp tsc "TSC when the part was written.",
    list words[STACK_WORDS] of valid "The words, from the address up." {
        /// The session.
        session: u32,
        /// The CPU.
        cpu: u16,
        /// The time stamp of the sample.
        sample_tsc: u64,
        /// The address of the first word.
        address: u64 as Address,
    }
}

/// Converts between the record and a trap frame, by the registers that both have.
macro_rules! of_frames {
    ($($register:ident)*) => {
        impl RegistersRecord {
            /// The registers of a trap frame.
            pub fn of_frame(session: u32, cpu: u16, sample_tsc: u64, frame: &Frame) -> Self {
                RegistersRecord { tsc: 0, session, cpu, sample_tsc, $($register: frame.$register),* }
            }

            /// The registers as a trap frame, whose other fields are 0.
            pub fn frame(&self) -> Frame {
                Frame { $($register: self.$register,)* ..Frame::default() }
            }
        }
    };
}

of_frames!(rip rsp rax rbx rcx rdx rsi rdi rbp r8 r9 r10 r11 r12 r13 r14 r15);
