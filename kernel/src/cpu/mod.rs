//! The state of a CPU, its idle loop, and the set of online CPUs.
//!
//! Each CPU owns its [`Cpu`]: the program that runs on it and its part of the sampling engine. The
//! kernel runs with interrupts off, so an entry to the kernel is the only user of its CPU's state,
//! and the overflow path takes no lock. In ring 0, GS points to the state. Overflow interrupts,
//! which also interrupt the kernel if they are NMIs, use only the CPU's [`NmiCell`].

pub mod online;

use alloc::boxed::Box;
use core::{arch::asm, mem::offset_of};

use tally_abi::CpuSet;
use tally_engine::KernelEntries;
use x86_64::{
    VirtAddr,
    instructions::interrupts,
    registers::model_specific::{GsBase, KernelGsBase},
};

use crate::{
    arch::{
        frame::{self, Frame},
        lapic::Lapic,
        vectors,
    },
    measure::{NmiCell, ProcessorClock, cpus::upcalls},
    memory::kernel,
    task::Process,
};

/// The state that a CPU owns.
#[repr(C)]
pub struct Cpu {
    this: *mut Cpu,
    kernel_stack: VirtAddr,
    user_rsp: u64,
    idle_stack: VirtAddr,
    /// The CPU's number, from 0.
    pub index: u16,
    /// The CPU's interrupt controller.
    pub lapic: Lapic,
    /// The program that runs on the CPU.
    pub current: Option<Box<Process>>,
    /// The CPU's part of the sampling engine.
    pub measure: &'static NmiCell,
    /// The engine's count of kernel entries on this CPU.
    entries: KernelEntries,
    /// The kernel's frame to return to, while the loop that checks counters runs in ring 3.
    pub checks_ring_3: Option<Frame>,
}

impl Cpu {
    /// Offset at which SYSCALL's stub finds the kernel's stack.
    pub const KERNEL_STACK_OFFSET: usize = offset_of!(Cpu, kernel_stack);
    /// Offset at which SYSCALL's stub keeps the program's stack pointer until it has pushed it.
    pub const USER_RSP_OFFSET: usize = offset_of!(Cpu, user_rsp);

    /// Makes the state of the executing CPU, which is never freed, and points GS to it.
    pub fn install(index: u16, kernel_stack: VirtAddr, lapic: Lapic, measure: &'static NmiCell) {
        let cpu = Box::leak(Box::new(Cpu {
            this: core::ptr::null_mut(),
            kernel_stack,
            user_rsp: 0,
            idle_stack: kernel::allocate_stack(),
            index,
            lapic,
            current: None,
            measure,
            entries: measure.lock().entries(),
            checks_ring_3: None,
        }));
        cpu.this = cpu;
        GsBase::write(VirtAddr::from_ptr(cpu));
        KernelGsBase::write(VirtAddr::zero());
    }

    /// The state of this CPU.
    ///
    /// # Safety
    /// (1) [`Cpu::install`] ran on this CPU; (2) interrupts are off; (3) the caller is the one
    /// entry to the kernel that is active on this CPU, and calls this once.
    pub unsafe fn current() -> &'static mut Cpu {
        let this: *mut Cpu;
        // SAFETY: in ring 0, GS leads to the CPU's state, whose first word points to itself.
        unsafe {
            asm!("mov {}, gs:[0]", out(reg) this, options(nostack, preserves_flags, readonly));
        }
        // SAFETY: the state is never freed, and by (3) this is its only reference.
        unsafe { &mut *this }
    }

    /// The program that runs on this CPU: the caller of the system call, or the one to preempt.
    ///
    /// # Panics
    /// No program runs on this CPU.
    pub fn process(&mut self) -> &mut Process {
        self.current.as_deref_mut().expect("a program runs on this CPU")
    }

    /// Records an entry to the kernel: from now on time counts as the running thread's in ring 0.
    #[inline]
    pub fn enter_kernel(&mut self) {
        self.entries.note();
        if let Some(process) = &mut self.current {
            process.threads.enter_kernel();
        }
    }

    /// Records the kernel's return: from now on time counts as the running thread's in ring 3, if a
    /// thread runs. A slice that ring 0 has made too long ends.
    #[inline]
    pub fn leave_kernel(&mut self) {
        if self.entries.is_overdue(&ProcessorClock) {
            self.measure.lock().cut();
        }
        if let Some(process) = &mut self.current {
            process.threads.leave_kernel();
        }
    }

    /// Does the work that calls on sessions on CPUs have requested of this CPU, and interrupts the
    /// running program if upcalls of its sessions on CPUs are due.
    pub fn serve(&mut self) {
        let process = self.current.as_deref();
        let mut measure = self.measure.lock();
        measure.serve(|| process.map(Process::usage));
        if process.is_some_and(|process| upcalls::are_due(process.pid)) {
            measure.raise_upcall();
        }
    }

    /// Returns whether an interrupt is pending that may end the running thread's turn.
    pub fn is_preempted(&self) -> bool {
        let may_end = [vectors::TIMER, vectors::PREEMPT_IPI];
        may_end.into_iter().any(|vector| self.lapic.is_pending(vector))
    }

    /// Interrupts the other CPUs, so that each runs [`Self::serve`].
    pub fn ask_others(&self) {
        self.lapic.interrupt_others(vectors::PREEMPT_IPI);
    }

    /// Returns whether the CPU is in a set.
    pub fn is_in(&self, set: &CpuSet) -> bool {
        set.contains(self.index.into())
    }

    /// A frame whose return enters the idle loop.
    pub fn idle_frame(&self) -> Frame {
        frame::kernel(idle, self.idle_stack)
    }
}

/// Enters the idle loop, and from there the scheduler.
pub fn run() -> ! {
    idle()
}

/// Enters the scheduler; if it has no runnable program, waits for the next interrupt and enters it
/// again. The scheduler leaves the loop by replacing the frame, and returns to the start of the
/// loop.
extern "C" fn idle() -> ! {
    loop {
        // SAFETY: (1) the vector has a stub, which saves all registers; (2) no reference to the
        // CPU's state is live here.
        unsafe { asm!("int {}", const vectors::RESCHEDULE) };
        interrupts::enable_and_hlt();
        interrupts::disable();
    }
}
