//! Injected interrupts: the address in the handler's frame is exactly that of the next instruction,
//! and nothing else changes.

use core::{arch::global_asm, sync::atomic::Ordering::Relaxed};

use tally_abi::vpmu::{LEAF, Op};

use crate::{
    apic,
    exactness::{self, DELIVERIES},
    kernel::{self, in_ring3_interrupted},
    report::CheckReport,
    vendor::{USR, VendorPmu},
};

global_asm!(
    r#"
    .section .text
// Injects an interrupt after RDI more instructions, or none if that is negative.
.macro inject
    mov eax, {leaf}
    mov ecx, {interrupt}
    mov edx, edi
    xor r8d, r8d
    test rdi, rdi
    cmovs ecx, r8d
    cmp r8d, 1
    cpuid
.endm
// Pairs whose second depends on the flags of the first; RDX is the sum.
.macro chain
    .rept 64
    adc edx, 3
    cmp r8d, edi
    .endr
.endm
injected_chain:
    inject
    mov edx, 0
injected_chain_pairs:
    chain
    mov [rsi], rdx
    syscall
injected_chain_in_ring0:
    push rbx
    inject
    mov edx, 0
injected_chain_in_ring0_pairs:
    chain
    mov rax, rdx
    pop rbx
    ret
// A loop of 6 instructions, RDI / 6 times, behind 3.
injected_loop:
    inject
    mov edi, 100000
    xor edx, edx
    jmp mixed
// A string instruction is one.
injected_string:
    inject
    mov ecx, 100
    lea rdi, [rsi]
injected_string_store:
    rep stosb
injected_string_behind:
    nop
    syscall
    "#,
    leaf = const LEAF,
    interrupt = const Op::Interrupt as u32,
);

unsafe extern "C" {
    static injected_chain: u8;
    static injected_chain_pairs: u8;
    fn injected_chain_in_ring0(behind: i64) -> u64;
    static injected_chain_in_ring0_pairs: u8;
    static injected_loop: u8;
    static injected_string: u8;
    static injected_string_store: u8;
    static injected_string_behind: u8;
    static mixed: u8;
}

/// Offsets of the instructions in `mixed`'s loop.
const MIXED_STARTS: [u64; 6] = [0, 3, 7, 10, 12, 15];
/// Argument for no injection.
const NONE: i64 = -1;

/// Checks that nothing can be injected while nothing is counted.
pub fn run_first(report: &mut CheckReport) {
    let answer = crate::machine::vpmu(Op::Interrupt, 5)[0];
    report.equal("no interrupt can be injected while nothing is counted", answer.into(), 0);
}

/// Runs every check of this module.
pub fn run(report: &mut CheckReport) {
    let vendor = VendorPmu::here();
    for delivery in &DELIVERIES {
        let mut check = Check { report, vendor, entry: delivery.entry, vector: delivery.vector };
        check.chain(delivery.name);
        check.others(delivery.name);
    }
    let mut check = Check { report, vendor, entry: DELIVERIES[1].entry, vector: 2 };
    check.ring0();
}

struct Check<'a> {
    report: &'a mut CheckReport,
    vendor: VendorPmu,
    entry: u32,
    vector: u8,
}

/// The address of the chain's instruction `index`; the first is the one after CPUID.
fn in_chain(pairs: u64, index: u64) -> u64 {
    match index.checked_sub(1) {
        None => pairs - 5,
        // An addition is 3 bytes long, a comparison 3.
        Some(index) => pairs + 3 * index,
    }
}

impl Check<'_> {
    /// Runs code in ring 3 with an injected interrupt. Returns the instructions counted there, and
    /// the address at which the interrupt was taken, if it was.
    fn ring3(&mut self, code: *const u8, behind: i64) -> (u64, Option<u64>) {
        apic::apic_write(apic::LVT_PERFORMANCE, self.entry);
        let taken = || kernel::TAKEN[self.vector as usize].load(Relaxed);
        let before = taken();
        let counts = self.vendor.count(&[self.vendor.events[0]], USR, || {
            in_ring3_interrupted(code as u64, behind as u64, exactness::memory());
        });
        let came = (taken() == before + 1).then(|| kernel::PMI_RIP.load(Relaxed));
        (counts[0], came)
    }

    fn chain(&mut self, name: &str) {
        let code = &raw const injected_chain;
        // SAFETY: only ring 3 writes it, and has returned.
        let sum = || unsafe { core::ptr::read_volatile(exactness::memory() as *const u64) };
        for behind in [0, 1, 2, 3, 17, 64, 100, 128, 129] {
            let (counted, came) = self.ring3(code, behind);
            let with = sum();
            let want = in_chain(&raw const injected_chain_pairs as u64, behind as u64);
            let what = format_args!("injected, {name}: behind {behind} instructions");
            self.report.equal(what, came.unwrap_or(0), want);
            let what = format_args!("injected, {name}: behind {behind}: the count is the same");
            self.report.equal(what, counted, 139);
            // R8 is 0, so each comparison borrows unless RDI is 0 too; the comparison before CPUID
            // does.
            let carries = if behind == 0 { 1 } else { 64 };
            let what = format_args!("injected, {name}: behind {behind}: flags are kept");
            self.report.equal(what, with, 64 * 3 + carries);
        }
        let (_, came) = self.ring3(code, NONE);
        self.report.equal("no interrupt without an injection", came.unwrap_or(0), 0);
    }

    fn others(&mut self, name: &str) {
        for behind in [3, 1_000, 54_321, 300_007] {
            let (_, came) = self.ring3(&raw const injected_loop, behind);
            let start = MIXED_STARTS[(behind as usize - 3) % 6];
            let what = format_args!("injected, {name}: behind {behind} instructions of a loop");
            self.report.equal(what, came.unwrap_or(0), &raw const mixed as u64 + start);
        }
        for (behind, want) in
            [(2, &raw const injected_string_store), (3, &raw const injected_string_behind)]
        {
            let (_, came) = self.ring3(&raw const injected_string, behind);
            let what = format_args!(
                "injected, {name}: {} a string instruction",
                ["before", "behind"][behind as usize - 2]
            );
            self.report.equal(what, came.unwrap_or(0), want as u64);
        }
    }

    fn ring0(&mut self) {
        for behind in [0, 1, 50, 127] {
            apic::apic_write(apic::LVT_PERFORMANCE, self.entry);
            // SAFETY: the code follows the calling convention.
            let sum = unsafe { injected_chain_in_ring0(behind) };
            let want = in_chain(&raw const injected_chain_in_ring0_pairs as u64, behind as u64);
            let what = format_args!("injected, ring 0: behind {behind} instructions");
            self.report.equal(what, kernel::PMI_RIP.load(Relaxed), want);
            let carries = if behind == 0 { 1 } else { 64 };
            let what = format_args!("injected, ring 0: behind {behind}: flags are kept");
            self.report.equal(what, sum, 64 * 3 + carries);
        }
    }
}
