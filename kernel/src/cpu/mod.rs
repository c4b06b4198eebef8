//! A CPU: its tables, its ways into the kernel, its interrupt controller, and what it owns.
//!
//! Each CPU owns its [`Cpu`]: the program that runs on it, its part of the sampling engine. As the
//! kernel runs with interrupts off, an entry to the kernel is the one user of its CPU's state, and
//! the overflow path needs no lock. GS leads to it in ring 0. Overflow interrupts, which as NMIs come all
//! the same, have the CPU's [`Own`] and nothing else.

pub mod entry;
pub mod lapic;
pub mod segments;
pub mod smp;
pub mod trap;
pub mod vectors;

use core::{arch::asm, mem::offset_of};

use alloc::boxed::Box;
use x86_64::{
    VirtAddr,
    instructions::interrupts,
    registers::{
        control::{Cr0, Cr0Flags, Cr4, Cr4Flags},
        model_specific::{GsBase, KernelGsBase},
    },
};

use crate::{
    measure::{self, Measure, Own},
    task::{self, Process},
};
use lapic::Lapic;

/// What one CPU owns.
#[repr(C)]
pub struct Cpu {
    this: *mut Cpu,
    kernel_stack: VirtAddr,
    user_rsp: u64,
    idle_stack: VirtAddr,
    /// Its number, from 0.
    pub index: u16,
    /// Its interrupt controller.
    pub lapic: Lapic,
    /// The program that runs on it.
    pub current: Option<Box<Process>>,
    /// Its part of the sampling engine.
    pub measure: &'static Own,
}

impl Cpu {
    /// Where SYSCALL's entry finds the kernel's stack.
    pub const KERNEL_STACK_OFFSET: usize = offset_of!(Cpu, kernel_stack);
    /// Where SYSCALL's entry keeps the program's stack pointer for a moment.
    pub const USER_RSP_OFFSET: usize = offset_of!(Cpu, user_rsp);

    /// Sets this CPU up, interrupts off, and makes its state reachable through GS. The state
    /// lives for ever.
    pub fn start(index: u16) {
        let kernel_stack = task::kernel_stack();
        let pmi_stack = task::kernel_stack() - 2 * size_of::<u64>() as u64;
        let own_word = pmi_stack.as_mut_ptr::<Option<&Own>>();
        // SAFETY: the stack is new, and reaches two words further.
        unsafe { own_word.write(None) };
        segments::load(kernel_stack, pmi_stack);
        vectors::load();
        entry::enable_syscall();
        enable_features();
        let lapic = Lapic::enable();
        let measure = &*Box::leak(Box::new(Own::new(Measure::new(index, &lapic))));
        // SAFETY: as above; the entry that reads it on this CPU reads a whole word.
        unsafe { own_word.write_volatile(Some(measure)) };
        let cpu = Box::leak(Box::new(Cpu {
            this: core::ptr::null_mut(),
            kernel_stack,
            user_rsp: 0,
            idle_stack: task::kernel_stack(),
            index,
            lapic,
            current: None,
            measure,
        }));
        cpu.this = cpu;
        lapic.unmask_pmi(measure::overflows());
        GsBase::write(VirtAddr::from_ptr(cpu));
        KernelGsBase::write(VirtAddr::zero());
    }

    /// This CPU's state.
    ///
    /// # Safety
    /// (1) [`Cpu::start`] ran on this CPU; (2) interrupts are off; (3) the caller is the one entry
    /// to the kernel that is active on this CPU, and calls this once.
    pub unsafe fn current() -> &'static mut Cpu {
        let this: *mut Cpu;
        // SAFETY: in ring 0 GS leads to the CPU's state, whose first word points to itself.
        unsafe {
            asm!("mov {}, gs:[0]", out(reg) this, options(nostack, preserves_flags, readonly));
        }
        // SAFETY: the state lives for ever, and by (3) this is its only reference.
        unsafe { &mut *this }
    }

    /// Its bit in a set of CPUs.
    pub fn bit(&self) -> u64 {
        1 << self.index
    }

    /// A frame whose return lets the CPU wait for something to do.
    pub fn idle_frame(&self) -> entry::Frame {
        entry::Frame::kernel(idle, self.idle_stack)
    }
}

/// Uses up a stack of the kernel's, to show what comes of it.
pub fn exhaust_stack() -> ! {
    // SAFETY: the stack is new and nobody else's; nothing returns from here.
    unsafe {
        asm!("mov rsp, {stack}", "2:", "push 0", "jmp 2b",
             stack = in(reg) task::kernel_stack().as_u64(), options(noreturn));
    }
}

/// Begins to run programs on this CPU.
pub fn run() -> ! {
    idle()
}

/// Asks for a program; where there is none, waits for the next interrupt and asks again. The
/// scheduler leaves this loop by exchanging the frame, and comes back to its beginning.
extern "C" fn idle() -> ! {
    loop {
        // SAFETY: (1) the vector has an entry, which saves all registers; (2) no reference to the
        // CPU's state is live here.
        unsafe { asm!("int {}", const vectors::RESCHEDULE) };
        interrupts::enable_and_hlt();
        interrupts::disable();
    }
}

/// Lets ring 3 use RDPMC on this CPU, or not.
pub fn allow_rdpmc(allowed: bool) {
    // SAFETY: what the counters show is the running program's own, as `Measure` sees to.
    unsafe { Cr4::update(|flags| flags.set(Cr4Flags::PERFORMANCE_MONITOR_COUNTER, allowed)) };
}

/// Turns on what programs and their isolation need: SSE, no execution of or access to programs'
/// memory by the kernel where the processor can forbid it.
fn enable_features() {
    let features = raw_cpuid::CpuId::new().get_extended_feature_info();
    let mut cr4 = Cr4Flags::OSFXSR | Cr4Flags::OSXMMEXCPT_ENABLE;
    cr4.set(
        Cr4Flags::SUPERVISOR_MODE_EXECUTION_PROTECTION,
        features.as_ref().is_some_and(|f| f.has_smep()),
    );
    cr4.set(
        Cr4Flags::SUPERVISOR_MODE_ACCESS_PREVENTION,
        features.as_ref().is_some_and(|f| f.has_smap()),
    );
    cr4.set(Cr4Flags::USER_MODE_INSTRUCTION_PREVENTION, features.is_some_and(|f| f.has_umip()));
    // Whatever else firmware left on goes: with FSGSBASE programs could set bases that no switch restores, with
    // OSXSAVE they would use registers that none keeps, with PCE they would read counters.
    let kept = Cr4Flags::PHYSICAL_ADDRESS_EXTENSION
        | Cr4Flags::PAGE_GLOBAL
        | Cr4Flags::MACHINE_CHECK_EXCEPTION
        | Cr4Flags::L5_PAGING;
    // SAFETY: (1) every x86-64 processor has SSE; (2) the kernel never touches programs' memory
    // through programs' addresses; (3) write protection holds for ring 0 too, as before.
    unsafe {
        Cr0::update(|flags| {
            flags.remove(Cr0Flags::EMULATE_COPROCESSOR | Cr0Flags::TASK_SWITCHED);
            flags.insert(
                Cr0Flags::MONITOR_COPROCESSOR | Cr0Flags::NUMERIC_ERROR | Cr0Flags::WRITE_PROTECT,
            );
        });
        Cr4::update(|flags| *flags = *flags & kept | cr4);
    }
}
