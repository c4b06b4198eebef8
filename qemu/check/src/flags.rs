//! Preservation of flags: QEMU evaluates them lazily, and an intercept must not lose them.

use core::{arch::global_asm, sync::atomic::Ordering::Relaxed};

use crate::{
    kernel::{self, fault_of},
    report::CheckReport,
    vendor::VendorPmu,
};

global_asm!(
    r#"
    .section .text
// Flags that POPF loads whole, then a subtraction of -1 from RSI, then the instruction; RAX becomes
// the flags behind it.
.macro flags_behind name, instruction:vararg
\name:
    push rbx
    pushfq
    popfq
    mov rdi, -1
    sub rsi, rdi
    \instruction
    pushfq
    pop rax
    pop rbx
    ret
.endm
    flags_behind flags_behind_nothing, nop
    flags_behind flags_behind_rdmsr, rdmsr
    flags_behind flags_behind_wrmsr, wrmsr
    flags_behind flags_behind_rdpmc, rdpmc
    flags_behind flags_behind_cpuid, cpuid
// The same, and a fault.
flags_at_fault:
    pushfq
    popfq
    mov rsi, 5
    mov rdi, -1
    sub rsi, rdi
    rdpmc
    nop
    ret
flags_at_fault_and_end:
    pushfq
    popfq
    mov rsi, 5
    mov rdi, -1
    sub rsi, rdi
    rdpmc
    ret
    "#
);

unsafe extern "C" {
    fn flags_behind_nothing();
    fn flags_behind_rdmsr();
    fn flags_behind_wrmsr();
    fn flags_behind_rdpmc();
    fn flags_behind_cpuid();
    fn flags_at_fault();
    fn flags_at_fault_and_end();
}

/// An RDPMC index beyond the counters.
const NO_COUNTER: u64 = 0x1f;
/// The arithmetic flags, and those of them that 5 - -1 sets: carry, parity and auxiliary carry.
const ARITHMETIC: u64 = 0x8d5;
const BORROWED: u64 = 0x15;

/// Checks that the arithmetic flags are the same before and after an intercepted instruction.
pub fn run(report: &mut CheckReport, vendor: &VendorPmu) {
    let behind = |code: unsafe extern "C" fn(), rcx: u32| {
        let flags: u64;
        // SAFETY: the code accesses a counter that nothing uses, or executes CPUID.
        unsafe {
            core::arch::asm!("call {}", in(reg) code, inout("rax") 0u64 => flags,
                inout("rcx") u64::from(rcx) => _, inout("rdx") 0u64 => _,
                inout("rsi") 5u64 => _, out("rdi") _);
        }
        flags
    };
    let (select, want) = (vendor.select.0, behind(flags_behind_nothing, 0));
    for (name, code, rcx) in [
        ("rdmsr", flags_behind_rdmsr as unsafe extern "C" fn(), select),
        ("wrmsr", flags_behind_wrmsr, select),
        ("rdpmc", flags_behind_rdpmc, 0),
        ("cpuid of the PMU", flags_behind_cpuid, 0),
        ("rdpmc again", flags_behind_rdpmc, 0),
    ] {
        report.equal(format_args!("flags behind {name}"), behind(code, rcx), want);
    }
    for (name, code) in [
        ("rdpmc", flags_at_fault as unsafe extern "C" fn()),
        ("rdpmc again", flags_at_fault),
        ("rdpmc before a return", flags_at_fault_and_end),
        ("rdpmc before a return again", flags_at_fault_and_end),
    ] {
        let [rax, rdx] = [0x1234, 0x5678];
        let fault = fault_of(code, NO_COUNTER, rax, rdx);
        report.equal(format_args!("a fault at {name}"), fault.unwrap_or(0).into(), 13);
        let flags = kernel::FAULT_RFLAGS.load(Relaxed) & ARITHMETIC;
        report.equal(format_args!("flags at a fault at {name}"), flags, BORROWED);
        let rcx = kernel::FAULT_RCX.load(Relaxed);
        report.equal(format_args!("RCX at a fault at {name}"), rcx, NO_COUNTER);
    }
}
