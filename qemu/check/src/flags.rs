//! Flags survive: QEMU keeps them lazily, and whatever is done at an instruction must not lose them.

use core::arch::global_asm;

use crate::{report::Report, vendor::Vendor};

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
    "#
);

unsafe extern "C" {
    fn flags_behind_nothing();
    fn flags_behind_rdmsr();
    fn flags_behind_wrmsr();
    fn flags_behind_rdpmc();
    fn flags_behind_cpuid();
}

/// The arithmetic flags are behind an access what they were before it.
pub fn run(report: &mut Report, vendor: &Vendor) {
    let behind = |code: unsafe extern "C" fn(), rcx: u32| {
        let flags: u64;
        // SAFETY: the code reads or writes a counter that nothing uses, or asks CPUID.
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
}
