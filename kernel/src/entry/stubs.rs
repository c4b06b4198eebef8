//! The assembly stubs of the kernel's entries: interrupts, exceptions and SYSCALL.
//!
//! A stub holds no policy: it saves every register into a [`Frame`] on the CPU's kernel stack,
//! calls a safe function with it, restores the registers from the frame, and returns. A context
//! switch replaces the frame's contents. Interrupts stay off from entry to return, so only NMIs
//! interrupt the kernel outside its idle loop, and each CPU's state has one user at a time; the
//! state that NMIs use is in an [`NmiCell`]. The kernel is built without the floating-point unit,
//! so a program's FPU registers stay in place.

use core::arch::{global_asm, naked_asm};

use x86_64::{
    VirtAddr,
    registers::{
        model_specific::{Efer, EferFlags, LStar, SFMask, Star},
        rflags::RFlags,
    },
    structures::gdt::SegmentSelector,
};

use super::trap;
use crate::{
    arch::{
        frame::{Frame, InterruptFrame, SYSCALL_VECTOR},
        segments,
    },
    calls,
    cpu::Cpu,
    measure::NmiCell,
};

// One entry of 16 bytes for each vector. If an exception pushes no error code, its entry pushes a
// zero, so that all frames have the same layout (Intel SDM volume 3, "Exception and Interrupt
// Reference").
global_asm!(
    ".balign 16",
    "tally_vectors:",
    ".set vector, 0",
    ".rept 256",
    ".balign 16",
    ".if !((vector == 8) || ((vector >= 10) && (vector <= 14)) \
      || (vector == 17) || (vector == 21))",
    "pushq $0",
    ".endif",
    "pushq $vector",
    "jmp {trap}",
    ".set vector, vector + 1",
    ".endr",
    trap = sym trap_entry,
    options(att_syntax)
);

unsafe extern "C" {
    safe static tally_vectors: u8;
}

/// The overflow interrupt's stub as an interrupt vector, for a machine with halts or without.
pub fn overflow_entry(has_halts: bool) -> VirtAddr {
    VirtAddr::from_ptr(if has_halts { halt_entry as *const () } else { pmi_entry as *const () })
}

/// The overflow interrupt's stub as an NMI.
pub fn nmi_overflow_entry() -> VirtAddr {
    VirtAddr::from_ptr(nmi_entry as *const ())
}

/// The first vector's stub; the stub of vector `n` is 16 `n` bytes further.
pub fn table() -> VirtAddr {
    VirtAddr::from_ptr(&raw const tally_vectors)
}

/// Pushes the general registers of a [`Frame`], the last field first.
macro_rules! save_registers {
    () => {
        "push rax; push rbx; push rcx; push rdx; push rsi; push rdi; push rbp; push r8; push r9; \
         push r10; push r11; push r12; push r13; push r14; push r15"
    };
}

/// Pops the registers that [`save_registers`] pushed.
macro_rules! restore_registers {
    () => {
        "pop r15; pop r14; pop r13; pop r12; pop r11; pop r10; pop r9; pop r8; pop rbp; pop rdi; \
         pop rsi; pop rdx; pop rcx; pop rbx; pop rax"
    };
}

/// Continues a vector's stub, which pushed vector and error code: saves, calls [`handle_trap`],
/// returns.
#[unsafe(naked)]
unsafe extern "C" fn trap_entry() {
    naked_asm!(
        "test byte ptr [rsp + 24], 3",
        "jz 2f",
        "swapgs",
        "2:",
        save_registers!(),
        // Flags as SYSCALL leaves them: a program's AC would suspend SMAP.
        "push 2",
        "popfq",
        "mov rdi, rsp",
        "call {trap}",
        "jmp {finish}",
        trap = sym handle_trap,
        finish = sym restore,
    )
}

/// The overflow interrupt's own stub, with the shortest entry and exit: `$handler` preserves the
/// other registers and never switches programs, so no [`Frame`] is needed. An NMI may occur between
/// a program's entry to the kernel and SWAPGS, so the stub does not use GS: it finds the CPU's
/// [`NmiCell`] in the first word of its own stack, above the words that the processor pushed.
macro_rules! overflow_entry {
    ($name:ident, $handler:ident) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "push rax; push rcx; push rdx; push rsi; push rdi; \
                 push r8; push r9; push r10; push r11",
                "cld",
                "mov rsi, [rsp + 112]",
                "lea rdi, [rsp + 72]",
                "call {handler}",
                "pop r11; pop r10; pop r9; pop r8; pop rdi; pop rsi; pop rdx; pop rcx; pop rax",
                "iretq",
                handler = sym $handler,
            )
        }
    };
}

overflow_entry!(pmi_entry, handle_pmi);
overflow_entry!(halt_entry, handle_pmi_or_halt);
overflow_entry!(nmi_entry, handle_nmi);

/// Restores the frame at RSP and returns by IRET, which is correct for every kind of frame.
#[unsafe(naked)]
unsafe extern "C" fn restore() {
    naked_asm!(
        restore_registers!(),
        "test byte ptr [rsp + 24], 3",
        "jz 2f",
        "swapgs",
        "2:",
        "add rsp, 16",
        "iretq",
    )
}

/// Target of SYSCALL. RCX holds the program's RIP and R11 its RFLAGS; the stack is still the
/// program's. Returns by SYSRET if the frame is still that of the same call, by IRET otherwise.
#[unsafe(naked)]
unsafe extern "C" fn syscall_entry() {
    naked_asm!(
        "swapgs",
        "mov gs:[{user_rsp}], rsp",
        "mov rsp, gs:[{stack}]",
        "push {user_ss}",
        "push qword ptr gs:[{user_rsp}]",
        "push r11",
        "push {user_cs}",
        "push rcx",
        "push 0",
        "push {vector}",
        save_registers!(),
        "mov rdi, rsp",
        "call {syscall}",
        "test al, al",
        "jz {restore}",
        restore_registers!(),
        "mov rsp, [rsp + 40]",
        "swapgs",
        "sysretq",
        user_rsp = const Cpu::USER_RSP_OFFSET,
        stack = const Cpu::KERNEL_STACK_OFFSET,
        user_ss = const segments::USER_DATA,
        user_cs = const segments::USER_CODE,
        vector = const SYSCALL_VECTOR,
        syscall = sym handle_syscall,
        restore = sym restore,
    )
}

extern "C" fn handle_trap(frame: &mut Frame) {
    if trap::is_kernel_fault(frame) {
        if trap::continue_after_access(frame) {
            return;
        }
        trap::kernel_fault(frame);
    }
    // SAFETY: this is an entry to the kernel, the only one active on this CPU.
    let cpu = unsafe { Cpu::current() };
    trap::handle(cpu, frame);
}

extern "C" fn handle_pmi(interrupted: &mut InterruptFrame, measure: &NmiCell) {
    measure.overflow(interrupted);
}

extern "C" fn handle_pmi_or_halt(interrupted: &mut InterruptFrame, measure: &NmiCell) {
    measure.overflow_or_halt(interrupted);
}

extern "C" fn handle_nmi(interrupted: &mut InterruptFrame, measure: Option<&NmiCell>) {
    measure.expect("NMI before this CPU's counters were set up").overflow_nmi(interrupted);
}

/// Returns whether to return by SYSRET.
extern "C" fn handle_syscall(frame: &mut Frame) -> bool {
    // SAFETY: this is an entry to the kernel, the only one active on this CPU.
    let cpu = unsafe { Cpu::current() };
    calls::dispatch(cpu, frame)
}

/// Enables SYSCALL on this CPU.
pub fn enable_syscall() {
    // SAFETY: SCE only makes SYSCALL legal; the registers that it uses are set below, before any
    // program runs. The page tables in use need NXE, which the boot loader set on the first CPU.
    unsafe {
        Efer::update(|flags| {
            flags.insert(EferFlags::SYSTEM_CALL_EXTENSIONS | EferFlags::NO_EXECUTE_ENABLE);
        });
    }
    Star::write(
        SegmentSelector(segments::USER_CODE),
        SegmentSelector(segments::USER_DATA),
        SegmentSelector(segments::KERNEL_CODE),
        SegmentSelector(segments::KERNEL_DATA),
    )
    .expect("the descriptors are in SYSRET's order");
    LStar::write(VirtAddr::from_ptr(syscall_entry as *const ()));
    SFMask::write(
        RFlags::INTERRUPT_FLAG
            | RFlags::DIRECTION_FLAG
            | RFlags::TRAP_FLAG
            | RFlags::ALIGNMENT_CHECK
            | RFlags::NESTED_TASK,
    );
}
