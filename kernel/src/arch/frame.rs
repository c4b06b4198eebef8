//! Trap frames: the registers that an entry to the kernel saves and its return restores.

use core::{arch::asm, mem::offset_of};

use x86_64::{
    VirtAddr,
    instructions::segmentation::{CS, SS, Segment},
    registers::rflags::RFlags,
};

pub use tally_abi::registers::Frame;

use super::segments;

/// Value of `vector` in a frame made by SYSCALL.
pub const SYSCALL_VECTOR: u64 = 0x100;
/// Value of `vector` in the frame of [`here`].
const NO_VECTOR: u64 = 0x101;

const _: () = assert!(size_of::<Frame>() == 22 * 8, "the stubs push 22 words");

/// Captures the registers of the calling function; registers that calls change mean little.
#[inline(always)]
pub fn here() -> Frame {
    let mut frame =
        Frame { cs: CS::get_reg().0.into(), ss: SS::get_reg().0.into(), ..Frame::default() };
    // SAFETY: the stores go to the frame's fields, by their offsets, and what PUSHF pushes is
    // popped at once.
    unsafe {
        asm!(
            "mov [{frame} + {r15}], r15", "mov [{frame} + {r14}], r14", "mov [{frame} + {r13}], r13",
            "mov [{frame} + {r12}], r12", "mov [{frame} + {r11}], r11", "mov [{frame} + {r10}], r10",
            "mov [{frame} + {r9}], r9", "mov [{frame} + {r8}], r8", "mov [{frame} + {rbp}], rbp",
            "mov [{frame} + {rdi}], rdi", "mov [{frame} + {rsi}], rsi", "mov [{frame} + {rdx}], rdx",
            "mov [{frame} + {rcx}], rcx", "mov [{frame} + {rbx}], rbx", "mov [{frame} + {rax}], rax",
            "mov [{frame} + {rsp}], rsp",
            "pushfq", "pop qword ptr [{frame} + {rflags}]",
            "lea {rip_now}, [rip]", "mov [{frame} + {rip}], {rip_now}",
            frame = in(reg) &raw mut frame,
            rip_now = out(reg) _,
            r15 = const offset_of!(Frame, r15), r14 = const offset_of!(Frame, r14),
            r13 = const offset_of!(Frame, r13), r12 = const offset_of!(Frame, r12),
            r11 = const offset_of!(Frame, r11), r10 = const offset_of!(Frame, r10),
            r9 = const offset_of!(Frame, r9), r8 = const offset_of!(Frame, r8),
            rbp = const offset_of!(Frame, rbp), rdi = const offset_of!(Frame, rdi),
            rsi = const offset_of!(Frame, rsi), rdx = const offset_of!(Frame, rdx),
            rcx = const offset_of!(Frame, rcx), rbx = const offset_of!(Frame, rbx),
            rax = const offset_of!(Frame, rax), rsp = const offset_of!(Frame, rsp),
            rflags = const offset_of!(Frame, rflags), rip = const offset_of!(Frame, rip),
        );
    }
    Frame { vector: NO_VECTOR, ..frame }
}

/// Returns whether the kernel was entered from ring 3.
pub fn is_user(frame: &Frame) -> bool {
    frame.cs & 3 == 3
}

/// The length of SYSCALL: 0F 05.
pub const SYSCALL_BYTES: u64 = 2;

/// Makes the frame of a system call return to the call's instruction, with the call's `number`.
pub fn restart_call(frame: &mut Frame, number: u64) {
    frame.rax = number;
    frame.rip -= SYSCALL_BYTES;
    // Forces the return by IRET: SYSRET returns to RCX.
    frame.vector = 0;
}

/// Makes the frame of a call to be repeated return from the call, with `result`.
pub fn end_call(frame: &mut Frame, result: i64) {
    frame.rax = result as u64;
    frame.rip += SYSCALL_BYTES;
}

/// A frame whose return starts ring 3 at `rip`, interrupts on.
pub fn user(rip: u64, rsp: u64) -> Frame {
    Frame {
        rip,
        rsp,
        cs: u64::from(segments::USER_CODE),
        ss: u64::from(segments::USER_DATA),
        rflags: RFlags::INTERRUPT_FLAG.bits(),
        ..Frame::default()
    }
}

/// A frame whose return runs `function` in ring 0 on another stack, interrupts off.
pub fn kernel(function: extern "C" fn() -> !, stack_top: VirtAddr) -> Frame {
    Frame {
        rip: function as usize as u64,
        // A call leaves the stack 8 below a multiple of 16 (System V ABI for AMD64, section
        // 3.2.2).
        rsp: stack_top.as_u64() - 8,
        cs: u64::from(segments::KERNEL_CODE),
        ss: u64::from(segments::KERNEL_DATA),
        ..Frame::default()
    }
}

/// The words that the processor pushes at an interrupt (Intel SDM volume 3, "64-Bit Mode Stack
/// Frame"). The overflow interrupt reads nothing else of the interrupted code.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct InterruptFrame {
    /// The address of the next instruction.
    pub rip: u64,
    cs: u64,
    rflags: u64,
    rsp: u64,
    ss: u64,
}

impl InterruptFrame {
    /// Returns whether ring 3 was interrupted.
    pub fn is_user(&self) -> bool {
        self.cs & 3 == 3
    }
}
