//! Failures that the command line requests (`fail=`), which test the reports of kernel and host.

use core::{arch::asm, hint::black_box};

use tally_abi::boot::{Failure, KERNEL_BASE};

use crate::memory::kernel;

/// Causes the failure that the command line requests, if any.
pub fn plant(failure: Option<Failure>) {
    match failure {
        Some(Failure::Panic) => panic!("requested by the command line"),
        Some(Failure::Fault) => read_unmapped(),
        Some(Failure::Stack) => exhaust_stack(),
        Some(Failure::Nmi) => raise_nmi(),
        Some(Failure::MachineCheck) => raise_machine_check(),
        Some(Failure::Hang) => loop {
            core::hint::spin_loop();
        },
        // A CPU that starts checks for this failure.
        Some(Failure::Pmu) | None => {}
    }
}

#[inline(never)]
fn read_unmapped() {
    // SAFETY: none: below the kernel's half nothing is mapped, which is the point. Nothing is made
    // of the value.
    let value = unsafe { ((KERNEL_BASE >> 32) as *const u64).read_volatile() };
    black_box(value);
}

#[inline(never)]
fn raise_nmi() {
    // SAFETY: the vector's entry saves every register, and does not return.
    unsafe { asm!("int 2") };
}

#[inline(never)]
fn raise_machine_check() {
    // SAFETY: as in `raise_nmi`.
    unsafe { asm!("int 18") };
}

/// Recurses on a separate stack until the stack overflows.
#[inline(never)]
fn exhaust_stack() {
    // SAFETY: the stack is new and nothing else uses it; the recursion does not return.
    unsafe {
        asm!("mov rsp, {stack}", "call {recurse}", "ud2",
             stack = in(reg) kernel::allocate_stack().as_u64(), recurse = sym recurse,
             in("rdi") 0, options(noreturn));
    }
}

#[inline(never)]
extern "C" fn recurse(depth: u64) -> u64 {
    if black_box(depth) == u64::MAX {
        return 0;
    }
    // The addition after the call keeps it from becoming a jump.
    recurse(depth + 1) + 1
}
