//! The ways into the kernel: interrupts, exceptions and SYSCALL.
//!
//! The assembly here holds no policy: it saves every register into a [`Frame`] on the CPU's kernel
//! stack, calls a safe function with it, restores what that function left in the frame, and
//! returns. Switching programs is exchanging the frame's contents. Interrupts stay off from entry
//! to return, so the kernel is never interrupted but in its idle loop and by NMIs, and each CPU's state
//! has one user at a time; what NMIs use is [`Own`]. Rust code here is built without the floating-point unit, so a program's
//! FPU registers stay in place.

use core::arch::{global_asm, naked_asm};

use x86_64::{
    VirtAddr,
    registers::{
        model_specific::{Efer, EferFlags, LStar, SFMask, Star},
        rflags::RFlags,
    },
    structures::gdt::SegmentSelector,
};

use super::{Cpu, segments};
use crate::measure::Own;

/// The `vector` of a frame that SYSCALL made.
pub const SYSCALL_VECTOR: u64 = 0x100;

/// Everything that a return to where the kernel was entered needs.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Frame {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rbp: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rdx: u64,
    pub rcx: u64,
    pub rbx: u64,
    pub rax: u64,
    /// The interrupt's vector, or [`SYSCALL_VECTOR`].
    pub vector: u64,
    /// The exception's error code, or 0.
    pub error: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
}

const _: () = assert!(size_of::<Frame>() == 22 * 8, "the entries push 22 words");

impl Frame {
    /// Whether the kernel was entered from ring 3.
    pub fn is_user(&self) -> bool {
        self.cs & 3 == 3
    }

    /// A frame whose return begins a program.
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
            // A function expects the stack as its call leaves it: 8 below a multiple of 16.
            rsp: stack_top.as_u64() - 8,
            cs: u64::from(segments::KERNEL_CODE),
            ss: u64::from(segments::KERNEL_DATA),
            ..Frame::default()
        }
    }
}

// One entry of 16 bytes for each vector. Those whose exceptions push no error code push a zero,
// so that all frames look alike (Intel SDM volume 3, "Exception and Interrupt Reference").
global_asm!(
    ".balign 16",
    "tally_vectors:",
    ".set vector, 0",
    ".rept 256",
    ".balign 16",
    ".if !((vector == 8) || ((vector >= 10) && (vector <= 14)) || (vector == 17) || (vector == 21))",
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

/// Where the overflow interrupt enters: as a vector, and as an NMI.
pub fn overflows() -> (VirtAddr, VirtAddr) {
    (VirtAddr::from_ptr(pmi_entry as *const ()), VirtAddr::from_ptr(nmi_entry as *const ()))
}

/// Where the entries begin; vector `n`'s is 16 `n` bytes on.
pub fn table() -> VirtAddr {
    VirtAddr::from_ptr(&raw const tally_vectors)
}

/// Pushes what a [`Frame`] begins with, from its end to its beginning.
macro_rules! save_registers {
    () => {
        "push rax; push rbx; push rcx; push rdx; push rsi; push rdi; push rbp; push r8; push r9; \
         push r10; push r11; push r12; push r13; push r14; push r15"
    };
}

/// The opposite of [`save_registers`].
macro_rules! restore_registers {
    () => {
        "pop r15; pop r14; pop r13; pop r12; pop r11; pop r10; pop r9; pop r8; pop rbp; pop rdi; \
         pop rsi; pop rdx; pop rcx; pop rbx; pop rax"
    };
}

/// From a vector's entry, the vector and error code pushed: saves, calls [`trap`], returns.
#[unsafe(naked)]
unsafe extern "C" fn trap_entry() {
    naked_asm!(
        "test byte ptr [rsp + 24], 3",
        "jz 2f",
        "swapgs",
        "2:",
        save_registers!(),
        // Flags as SYSCALL leaves them: the program's AC would let the kernel at programs' pages.
        "push 2",
        "popfq",
        "mov rdi, rsp",
        "call {trap}",
        "jmp {finish}",
        trap = sym trap,
        finish = sym restore,
    )
}

/// The overflow interrupt's own entry: the shortest way in and out. What `$handler` calls keeps the
/// other registers, and nothing switches programs on the way, so no [`Frame`] is needed. As an NMI it may
/// come between a program's entry to the kernel and SWAPGS; so it has nothing to do with GS, and finds
/// the CPU's [`Own`] in the first word of its own stack, behind what the processor pushed.
macro_rules! overflow_entry {
    ($name:ident, $handler:ident) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "push rax; push rcx; push rdx; push rsi; push rdi; push r8; push r9; push r10; push r11",
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
overflow_entry!(nmi_entry, handle_nmi);

/// Restores the frame at RSP and returns by IRET, which serves every kind of frame.
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

/// SYSCALL's target. RCX holds the program's RIP and R11 its RFLAGS; the stack is still its own.
/// Returns by SYSRET if the frame is still that of the same call, by IRET otherwise.
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
        syscall = sym syscall,
        restore = sym restore,
    )
}

extern "C" fn trap(frame: &mut Frame) {
    let of_machine = matches!(frame.vector, 2 | 8 | 18);
    if of_machine || frame.vector < 32 && !frame.is_user() {
        super::trap::kernel_fault(frame);
    }
    // SAFETY: this is an entry to the kernel, the only one active on this CPU.
    let cpu = unsafe { Cpu::current() };
    super::trap::handle(cpu, frame);
}

/// What the processor itself pushes at an interrupt (Intel SDM volume 3, "64-Bit Mode Stack Frame").
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Interrupted {
    /// The address of the next instruction.
    pub rip: u64,
    cs: u64,
    rflags: u64,
    rsp: u64,
    ss: u64,
}

impl Interrupted {
    /// Whether ring 3 was.
    pub fn is_user(&self) -> bool {
        self.cs & 3 == 3
    }
}

extern "C" fn handle_pmi(interrupted: &Interrupted, own: &Own) {
    own.overflow(interrupted);
}

extern "C" fn handle_nmi(interrupted: &Interrupted, own: Option<&Own>) {
    own.expect("a non-maskable interrupt before this CPU counts").overflow_nmi(interrupted);
}

extern "C" fn syscall(frame: &mut Frame) -> bool {
    // SAFETY: this is an entry to the kernel, the only one active on this CPU.
    let cpu = unsafe { Cpu::current() };
    crate::calls::dispatch(cpu, frame)
}

/// Enables SYSCALL on this CPU.
pub fn enable_syscall() {
    // SAFETY: SCE only makes SYSCALL legal; the registers that it uses are set below, before any
    // program runs. NXE is set by the boot loader for all page tables in use; keep it on APs too.
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
    .expect("the descriptors stand in SYSRET's order");
    LStar::write(VirtAddr::from_ptr(syscall_entry as *const ()));
    SFMask::write(
        RFlags::INTERRUPT_FLAG
            | RFlags::DIRECTION_FLAG
            | RFlags::TRAP_FLAG
            | RFlags::ALIGNMENT_CHECK
            | RFlags::NESTED_TASK,
    );
}
