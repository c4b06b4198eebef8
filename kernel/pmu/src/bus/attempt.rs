//! Accesses to MSRs that may not exist: a hypervisor may keep one that CPUID reports.
//!
//! RDMSR and WRMSR of a missing MSR raise #GP. The kernel's handler continues at the address that
//! [`after_fault`] names, and the access fails. Only these two instructions may fault.

use core::arch::global_asm;

global_asm!(
    ".pushsection .text.tally_attempt, \"ax\", @progbits",
    // Other code-generation units refer to these.
    ".globl tally_try_rdmsr, tally_try_rdmsr_instruction, tally_try_wrmsr",
    ".globl tally_try_wrmsr_instruction, tally_attempt_failed",
    // RDI: the MSR. Returns RAX: the value, RDX: 1; or RDX: 0.
    "tally_try_rdmsr:",
    "mov ecx, edi",
    "tally_try_rdmsr_instruction:",
    "rdmsr",
    "shl rdx, 32",
    "or rax, rdx",
    "mov edx, 1",
    "ret",
    // RDI: the MSR, RSI: the value. Returns RDX: 1; or RDX: 0.
    "tally_try_wrmsr:",
    "mov ecx, edi",
    "mov eax, esi",
    "mov rdx, rsi",
    "shr rdx, 32",
    "tally_try_wrmsr_instruction:",
    "wrmsr",
    "mov edx, 1",
    "ret",
    "tally_attempt_failed:",
    "xor eax, eax",
    "xor edx, edx",
    "ret",
    ".popsection",
);

/// Result of an access: the value that was read, and whether it was done, in RAX and RDX.
#[repr(C)]
struct Accessed {
    value: u64,
    is_done: u64,
}

unsafe extern "C" {
    fn tally_try_rdmsr(msr: u32) -> Accessed;
    fn tally_try_wrmsr(msr: u32, value: u64) -> Accessed;
    safe static tally_try_rdmsr_instruction: u8;
    safe static tally_try_wrmsr_instruction: u8;
    safe static tally_attempt_failed: u8;
}

/// Executes RDMSR; `None` if it faults.
///
/// # Safety
/// (1) This is ring 0. (2) The handler of #GP continues at the address that [`after_fault`] names.
/// (3) Reading this MSR has no effect.
pub unsafe fn try_rdmsr(msr: u32) -> Option<u64> {
    // SAFETY: by the contract, the instruction is allowed, and ends with a result if it faults.
    let Accessed { value, is_done } = unsafe { tally_try_rdmsr(msr) };
    (is_done != 0).then_some(value)
}

/// Executes WRMSR; returns whether it was done.
///
/// # Safety
/// (1) and (2) as for [`try_rdmsr`]. (3) Nothing relies on the MSR's value.
pub(super) unsafe fn try_wrmsr(msr: u32, value: u64) -> bool {
    // SAFETY: as in `try_rdmsr`.
    unsafe { tally_try_wrmsr(msr, value) }.is_done != 0
}

/// Returns where to continue after a #GP at `rip`; `None` if it is not that of an access here.
pub fn after_fault(rip: u64) -> Option<u64> {
    let may_fault =
        [&raw const tally_try_rdmsr_instruction, &raw const tally_try_wrmsr_instruction];
    may_fault
        .iter()
        .any(|at| at.addr() as u64 == rip)
        .then(|| (&raw const tally_attempt_failed).addr() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_accesses_may_fault() {
        let read = (&raw const tally_try_rdmsr_instruction).addr() as u64;
        let write = (&raw const tally_try_wrmsr_instruction).addr() as u64;
        let failed = (&raw const tally_attempt_failed).addr() as u64;
        assert_eq!([read, write].map(after_fault), [Some(failed); 2]);
        for other in [read - 2, read + 2, write + 2, failed, 0] {
            assert_eq!(after_fault(other), None);
        }
    }
}
