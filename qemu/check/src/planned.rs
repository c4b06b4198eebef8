//! Overflow interrupts at chosen instructions: the handler's frame names exactly the next one, and
//! nothing else is any different.

use core::{arch::global_asm, sync::atomic::Ordering::Relaxed};

use tally_abi::vpmu::{LEAF, Op};

use crate::{
    apic,
    exactness::{self, DELIVERIES},
    kernel::{self, in_ring3_interrupted},
    report::Report,
    vendor::{USR, Vendor},
};

global_asm!(
    r#"
    .section .text
// Plans an interrupt behind RDI more instructions, or none if that is negative.
.macro plan
    mov eax, {leaf}
    mov ecx, {interrupt}
    mov edx, edi
    xor r8d, r8d
    test rdi, rdi
    cmovs ecx, r8d
    cmp r8d, 1
    cpuid
.endm
// Pairs whose second hangs on the flags of the first; RDX is the sum.
.macro chain
    .rept 64
    adc edx, 3
    cmp r8d, edi
    .endr
.endm
planned_chain:
    plan
    mov edx, 0
planned_chain_pairs:
    chain
    mov [rsi], rdx
    syscall
planned_chain_in_ring0:
    push rbx
    plan
    mov edx, 0
planned_chain_in_ring0_pairs:
    chain
    mov rax, rdx
    pop rbx
    ret
// A loop of 6 instructions, RDI / 6 times, behind 3.
planned_loop:
    plan
    mov edi, 100000
    xor edx, edx
    jmp mixed
// A string instruction is one.
planned_string:
    plan
    mov ecx, 100
    lea rdi, [rsi]
planned_string_store:
    rep stosb
planned_string_behind:
    nop
    syscall
    "#,
    leaf = const LEAF,
    interrupt = const Op::Interrupt as u32,
);

unsafe extern "C" {
    static planned_chain: u8;
    static planned_chain_pairs: u8;
    fn planned_chain_in_ring0(behind: i64) -> u64;
    static planned_chain_in_ring0_pairs: u8;
    static planned_loop: u8;
    static planned_string: u8;
    static planned_string_store: u8;
    static planned_string_behind: u8;
    static mixed: u8;
}

/// Where the instructions of `mixed`'s loop begin.
const MIXED_STARTS: [u64; 6] = [0, 3, 7, 10, 12, 15];
/// Before anything is counted.
const NONE: i64 = -1;

/// Nothing can be planned while nothing is counted.
pub fn run_first(report: &mut Report) {
    let answer = crate::machine::vpmu(Op::Interrupt, 5)[0];
    report.equal("an interrupt cannot be planned while nothing is counted", answer.into(), 0);
}

/// Every check of this module.
pub fn run(report: &mut Report) {
    let vendor = Vendor::here();
    for delivery in &DELIVERIES {
        let mut check = Check { report, vendor, entry: delivery.entry, vector: delivery.vector };
        check.chain(delivery.name);
        check.others(delivery.name);
    }
    let mut check = Check { report, vendor, entry: DELIVERIES[1].entry, vector: 2 };
    check.ring0();
}

struct Check<'a> {
    report: &'a mut Report,
    vendor: Vendor,
    entry: u32,
    vector: u8,
}

/// The address of the chain's instruction `index`, when the first is the one behind CPUID.
fn in_chain(pairs: u64, index: u64) -> u64 {
    match index.checked_sub(1) {
        None => pairs - 5,
        // An addition is 3 bytes long, a comparison 3.
        Some(index) => pairs + 3 * index,
    }
}

impl Check<'_> {
    /// Runs ring 3's code with an interrupt planned; the instructions counted there, and where the
    /// interrupt came, if it did.
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
        let code = &raw const planned_chain;
        // SAFETY: ring 3 wrote it, and nothing else does.
        let sum = || unsafe { core::ptr::read_volatile(exactness::memory() as *const u64) };
        for behind in [0, 1, 2, 3, 17, 64, 100, 128, 129] {
            // What the comparisons see is the same with and without.
            let (counted, came) = self.ring3(code, behind);
            let with = sum();
            let want = in_chain(&raw const planned_chain_pairs as u64, behind as u64);
            let what = format_args!("planned, {name}: behind {behind} instructions");
            self.report.equal(what, came.unwrap_or(0), want);
            let what = format_args!("planned, {name}: behind {behind}: as many are counted");
            self.report.equal(what, counted, 139);
            // R8 is 0, so each comparison borrows unless RDI is 0 too; the one before CPUID does.
            let carries = if behind == 0 { 1 } else { 64 };
            let what = format_args!("planned, {name}: behind {behind}: flags are kept");
            self.report.equal(what, with, 64 * 3 + carries);
        }
        let (_, came) = self.ring3(code, NONE);
        self.report.equal("no interrupt where none is planned", came.unwrap_or(0), 0);
    }

    fn others(&mut self, name: &str) {
        for behind in [3, 1_000, 54_321, 300_007] {
            let (_, came) = self.ring3(&raw const planned_loop, behind);
            let start = MIXED_STARTS[(behind as usize - 3) % 6];
            let what = format_args!("planned, {name}: behind {behind} instructions of a loop");
            self.report.equal(what, came.unwrap_or(0), &raw const mixed as u64 + start);
        }
        for (behind, want) in
            [(2, &raw const planned_string_store), (3, &raw const planned_string_behind)]
        {
            let (_, came) = self.ring3(&raw const planned_string, behind);
            let what = format_args!(
                "planned, {name}: {} a string instruction",
                ["before", "behind"][behind as usize - 2]
            );
            self.report.equal(what, came.unwrap_or(0), want as u64);
        }
    }

    fn ring0(&mut self) {
        for behind in [0, 1, 50, 127] {
            apic::apic_write(apic::LVT_PERFORMANCE, self.entry);
            // SAFETY: the code touches only what its calling convention lets it.
            let sum = unsafe { planned_chain_in_ring0(behind) };
            let want = in_chain(&raw const planned_chain_in_ring0_pairs as u64, behind as u64);
            let what = format_args!("planned, ring 0: behind {behind} instructions");
            self.report.equal(what, kernel::PMI_RIP.load(Relaxed), want);
            let carries = if behind == 0 { 1 } else { 64 };
            let what = format_args!("planned, ring 0: behind {behind}: flags are kept");
            self.report.equal(what, sum, 64 * 3 + carries);
        }
    }
}
