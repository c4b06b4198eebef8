//! Exact counts of known loops, in both rings, with and without interrupts.

use core::{arch::global_asm, fmt::Write, sync::atomic::Ordering::Relaxed};

use tally_abi::vpmu::{LEAF, Op};

use crate::{
    apic,
    kernel::{self, in_ring3, in_ring3_interrupted},
    machine::{PMI_VECTOR, Serial, TIMER_VECTOR, rdpmc, vpmu},
    report::CheckReport,
    vendor::{EN, INT, OS, USR, VendorPmu},
};

global_asm!(
    r#"
    .section .text
    .balign 64
// RDI rounds of: one load, one store, a conditional jump never and one always but once taken.
.globl mixed
mixed:
1:  mov rax, [rsi]
    mov [rsi + 8], rax
    test rdi, rdi
    jz 2f
    dec rdi
    jnz 1b
2:  syscall
.globl mixed_in_ring0
mixed_in_ring0:
1:  mov rax, [rsi]
    mov [rsi + 8], rax
    test rdi, rdi
    jz 2f
    dec rdi
    jnz 1b
2:  ret

// RDI rounds of: a call, its return, an indirect jump, a read-modify-write, a locked one.
.globl calls
calls:
    mov rcx, rdi
    lea rdx, [rip + 3f]
1:  call 2f
    jmp rdx
2:  ret
3:  inc qword ptr [rsi]
    lock inc qword ptr [rsi + 64]
    dec rcx
    jnz 1b
    syscall

// One repeated string store of RDI bytes, then one of RDI moves.
.globl strings
strings:
    mov rcx, rdi
    mov rdx, rdi
    lea rdi, [rsi]
    xor eax, eax
    cld
    rep stosb
    mov rcx, rdx
    lea rdi, [rsi]
    rep movsb
    syscall

// Sends operation EDI with the argument 7 to the virtual PMU; its answer goes to RSI.
operation:
    mov r8, rbx
    mov eax, {leaf}
    mov ecx, edi
    mov edx, 7
    cpuid
    mov rbx, r8
    mov [rsi], rax
    syscall
    "#,
    leaf = const LEAF,
);

unsafe extern "C" {
    /// A loop of known instructions.
    pub static mixed: u8;
    static mixed_in_ring0: u8;
    static calls: u8;
    static strings: u8;
    static operation: u8;
}

static mut MEMORY: [u64; 4096] = [0; 4096];

/// Address of memory that ring 3 may use.
pub fn memory() -> u64 {
    &raw const MEMORY as u64
}

/// Runs every check of this module.
pub fn run(report: &mut CheckReport) {
    let vendor = VendorPmu::here();
    for rounds in [1, 2, 100, 12_345] {
        mixed_loop(report, &vendor, rounds);
    }
    rings(report, &vendor);
    call_loop(report, &vendor);
    string_run(report, &vendor);
    with_timer(report, &vendor);
    overflow(report, &vendor, "xAPIC");
    sampling(report, &vendor);
    regions(report);
    apic::enter_x2apic();
    overflow(report, &vendor, "x2APIC");
}

fn mixed_loop(report: &mut CheckReport, vendor: &VendorPmu, rounds: u64) {
    let [instructions, branches, cond, loads, stores] = vendor.events;
    let entry = &raw const mixed as u64;
    let counts = vendor.count(&[instructions, branches, cond, loads], USR, || {
        in_ring3(entry, rounds, memory());
    });
    report.equal(format_args!("ring 3, {rounds} rounds: instructions"), counts[0], 6 * rounds + 1);
    report.equal(format_args!("ring 3, {rounds} rounds: branches"), counts[1], 2 * rounds + 1);
    report.equal(format_args!("ring 3, {rounds} rounds: conditional"), counts[2], 2 * rounds);
    report.equal(format_args!("ring 3, {rounds} rounds: loads"), counts[3], rounds);
    let counts = vendor.count(&[stores], USR, || in_ring3(entry, rounds, memory()));
    report.equal(format_args!("ring 3, {rounds} rounds: stores"), counts[0], rounds);
}

/// Checks a known function in ring 0. The difference of two runs excludes the code around it.
fn rings(report: &mut CheckReport, vendor: &VendorPmu) {
    let [instructions, branches, ..] = vendor.events;
    let counts = vendor.count(&[instructions, branches], USR, || ());
    report.equal("ring 0 work counts nothing under USR", counts[0] + counts[1], 0);
    let code = &raw const mixed_in_ring0;
    let run = |rounds: u64| {
        vendor.count(&[instructions, branches], OS, || {
            // SAFETY: the loop touches RAX, RDI and the memory that it is given, and returns.
            unsafe {
                core::arch::asm!("call {}", in(reg) code, inout("rdi") rounds => _,
                    in("rsi") memory(), out("rax") _);
            }
        })
    };
    let (few, many) = (run(10), run(1010));
    report.equal("ring 0, 1000 rounds: instructions", many[0] - few[0], 6000);
    report.equal("ring 0, 1000 rounds: branches", many[1] - few[1], 2000);
    // All three counts use the same code, so that the kernel's part is the same.
    let [user, kernel, both] =
        [USR, OS, USR | OS].map(|rings| vendor.count(&[instructions], rings, mixed_1000)[0]);
    report.equal("both rings are the sum of each", both, user + kernel);
}

fn mixed_1000() {
    in_ring3(&raw const mixed as u64, 1000, memory());
}

fn call_loop(report: &mut CheckReport, vendor: &VendorPmu) {
    let [instructions, branches, _, loads, stores] = vendor.events;
    let counts = vendor.count(&[instructions, branches, loads, stores], USR, || {
        in_ring3(&raw const calls as u64, 500, memory());
    });
    report.equal("calls: instructions", counts[0], 500 * 7 + 3);
    report.equal("calls: branches", counts[1], 500 * 4 + 1);
    report.equal("calls: loads", counts[2], 500 * 3);
    report.equal("calls: stores", counts[3], 500 * 3);
}

fn string_run(report: &mut CheckReport, vendor: &VendorPmu) {
    let [instructions, _, _, loads, stores] = vendor.events;
    let counts = vendor.count(&[instructions, loads, stores], USR, || {
        in_ring3(&raw const strings as u64, 3000, memory());
    });
    report.equal("a repeated string instruction is one", counts[0], 10);
    // Intel counts retired instructions, AMD dispatched operations.
    let elements = if vendor.is_intel() { 1 } else { 3000 };
    report.equal("loads of a repeated move", counts[1], elements);
    report.equal("stores of two repeated instructions", counts[2], 2 * elements);
}

fn with_timer(report: &mut CheckReport, vendor: &VendorPmu) {
    let [instructions, branches, _, loads, _] = vendor.events;
    let before = kernel::TAKEN[TIMER_VECTOR as usize].load(Relaxed);
    apic::timer(20_000);
    let counts = vendor.count(&[instructions, branches, loads], USR, || {
        in_ring3_interrupted(&raw const mixed as u64, 1_000_000, memory());
    });
    let strings_counted = vendor.count(&[instructions], USR, || {
        in_ring3_interrupted(&raw const strings as u64, 30_000, memory());
    });
    apic::timer(0);
    let taken = kernel::TAKEN[TIMER_VECTOR as usize].load(Relaxed) - before;
    report.within("timer interrupts in the run", taken, 10, 1_000_000);
    report.equal("interrupted: instructions", counts[0], 6_000_001);
    report.equal("interrupted: branches", counts[1], 2_000_001);
    report.equal("interrupted: loads", counts[2], 1_000_000);
    report.equal("interrupted strings: instructions", strings_counted[0], 10);
}

/// A method of delivering the interrupt.
pub struct Delivery {
    /// Name of the method.
    pub name: &'static str,
    /// The entry of the local vector table.
    pub entry: u32,
    /// The vector of the interrupt.
    pub vector: u8,
}

/// Both methods: a fixed vector, and an NMI.
pub const DELIVERIES: [Delivery; 2] = [
    Delivery { name: "fixed", entry: PMI_VECTOR as u32, vector: PMI_VECTOR },
    Delivery { name: "nmi", entry: 4 << 8, vector: 2 },
];

fn overflow(report: &mut CheckReport, vendor: &VendorPmu, mode: &str) {
    for Delivery { name, entry, vector } in DELIVERIES {
        let taken = || kernel::TAKEN[vector as usize].load(Relaxed);
        let what = |what| Named { mode, name, what };
        apic::apic_write(apic::LVT_PERFORMANCE, entry);
        let before = taken();
        overflow_at(vendor, 3_000);
        report.equal(what("one interrupt at the overflow"), taken() - before, 1);
        if let Some(overflowed) = vendor.overflowed() {
            report.equal(what("status shows the overflow"), overflowed, 1);
        }
        report.equal(what("the counter continues"), rdpmc(0), 3_001);
        let (at, first) = (kernel::PMI_RIP.load(Relaxed), &raw const mixed as u64);
        report.within(what("it is taken within the loop"), at, first, first + 32);
        let masked = apic::apic_read(apic::LVT_PERFORMANCE) & apic::LVT_MASKED != 0;
        let intel = vendor.is_intel();
        report.equal(what("the entry is masked on Intel only"), masked.into(), intel.into());
        vendor.reset_overflow();
        report.equal(what("status is reset"), vendor.overflowed().unwrap_or(0), 0);
        apic::apic_write(apic::LVT_PERFORMANCE, entry | apic::LVT_MASKED);
        let before = taken();
        overflow_at(vendor, 300);
        report.equal(what("no interrupt through a masked entry"), taken() - before, 0);
        if let Some(overflowed) = vendor.overflowed() {
            report.equal(what("status shows the overflow also then"), overflowed, 1);
        }
        vendor.reset_overflow();
    }
}

/// Makes the first counter overflow after `instructions` of 6,001 in ring 3.
fn overflow_at(vendor: &VendorPmu, instructions: u64) {
    vendor.program(0, 0u64.wrapping_sub(instructions), vendor.events[0] | USR | EN | INT);
    vendor.enable(1);
    in_ring3_interrupted(&raw const mixed as u64, 1_000, memory());
    vendor.enable(0);
}

/// The name of a check for one method of delivery.
struct Named<'a> {
    mode: &'a str,
    name: &'a str,
    what: &'a str,
}

impl core::fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}, {}: {}", self.mode, self.name, self.what)
    }
}

/// Takes an interrupt at every period, re-armed by its handler, in a region. Prints their number,
/// which the host compares with the truth file.
fn sampling(report: &mut CheckReport, vendor: &VendorPmu) {
    const PERIOD: u64 = 10_000;
    apic::apic_write(apic::LVT_PERFORMANCE, PMI_VECTOR.into());
    let before = kernel::TAKEN[PMI_VECTOR as usize].load(Relaxed);
    kernel::REARM.store(PERIOD, Relaxed);
    apic::timer(15_000);
    vpmu(Op::Open, 8);
    vendor.program(0, 0u64.wrapping_sub(PERIOD), vendor.events[0] | USR | EN | INT);
    vendor.enable(1);
    in_ring3_interrupted(&raw const mixed as u64, 200_000, memory());
    vendor.enable(0);
    vpmu(Op::Close, 8);
    apic::timer(0);
    kernel::REARM.store(0, Relaxed);
    let taken = kernel::TAKEN[PMI_VECTOR as usize].load(Relaxed) - before;
    // The instructions between an overflow and its handler belong to no period.
    report.within("an interrupt every 10,000 instructions", taken, 119, 120);
    // The serial port cannot fail.
    let _ = writeln!(Serial, "pmis 8 {taken}");
}

/// Checks that only ring 0 can open sessions, and that session 7 is not region 7.
fn sessions(report: &mut CheckReport) {
    let in_ring3 = |op: Op| {
        in_ring3(&raw const operation as u64, op as u64, memory());
        // SAFETY: ring 3 has written it, and nothing else does.
        unsafe { core::ptr::read_volatile(memory() as *const u64) }
    };
    report.equal("ring 3 opens no session", in_ring3(Op::OpenSession), 0);
    report.equal("so that none is open", vpmu(Op::CloseSession, 7)[0].into(), 0);
    report.equal("ring 0 opens a session", vpmu(Op::OpenSession, 7)[0].into(), 1);
    mixed_1000();
    report.equal("ring 3 closes no session", in_ring3(Op::CloseSession), 0);
    report.equal("ring 3 closes no session as a region", in_ring3(Op::Close), 0);
    report.equal("ring 3 does not end the truth", in_ring3(Op::End), 0);
    report.equal("ring 0 closes a session", vpmu(Op::CloseSession, 7)[0].into(), 1);
}

/// Counts by counters and in a region at the same time. Prints the counters' values, which the host
/// compares with the truth file.
fn regions(report: &mut CheckReport) {
    let vendor = VendorPmu::here();
    let events: [u64; 4] = core::array::from_fn(|index| vendor.named[index].1);
    apic::timer(30_000);
    let counts = vendor.count(&events, USR, || {
        let opened = vpmu(Op::Open, 7)[0];
        report.equal("a region opens", opened.into(), 1);
        in_ring3_interrupted(&raw const mixed as u64, 300_000, memory());
        in_ring3_interrupted(&raw const strings as u64, 20_000, memory());
        let closed = vpmu(Op::Close, 7)[0];
        report.equal("and closes", closed.into(), 1);
    });
    apic::timer(0);
    report.equal("a closed region cannot be closed", vpmu(Op::Close, 7)[0].into(), 0);
    report.equal("a closed region has no next one", vpmu(Op::Next, 7)[0].into(), 0);
    vpmu(Op::Open, 11);
    report.equal("an open region has", vpmu(Op::Next, 11)[0].into(), 1);
    report.equal("which closes the first", vpmu(Op::Close, 11)[0].into(), 0);
    report.equal("and opens the next", vpmu(Op::Close, 12)[0].into(), 1);
    sessions(report);
    for ((name, _), count) in vendor.named.iter().zip(counts) {
        // The serial port cannot fail.
        let _ = writeln!(Serial, "truth 7 {name} {count}");
    }
}
