//! The register rules as tables: values read back, and faults, by ring.

use core::arch::global_asm;

use crate::{
    features,
    kernel::fault_of_ring3,
    machine::{cpuid, rdmsr, rdpmc, wrmsr},
    report::CheckReport,
    rule::{
        NONE,
        Rule::{Holds, Reads, RefusesIndex, RefusesRead, RefusesWrite},
        check, expect_gp,
    },
    vendor::VendorPmu,
    version_6,
};

global_asm!(
    r#"
    .section .text
// In ring 3: RDI is the register.
user_wrmsr:
    mov ecx, edi
    xor eax, eax
    xor edx, edx
    wrmsr
    syscall
user_rdmsr:
    mov ecx, edi
    rdmsr
    syscall
user_rdpmc:
    mov ecx, edi
    rdpmc
    shl rdx, 32
    or rax, rdx
    mov [rsi], rax
    syscall
    "#
);

unsafe extern "C" {
    static user_wrmsr: u8;
    static user_rdmsr: u8;
    static user_rdpmc: u8;
}

const CR4_PCE: u64 = 1 << 8;
/// Runs every check of this module.
pub fn run(report: &mut CheckReport) {
    let vendor = VendorPmu::here();
    if vendor.is_intel() {
        intel_cpuid(report);
        intel(report);
    } else {
        amd_cpuid(report);
        amd(report);
    }
    rings(report, &vendor);
    crate::flags::run(report, &vendor);
}

fn intel_cpuid(report: &mut CheckReport) {
    report.equal("leaf 1: PDCM", (cpuid(1, 0)[2] >> 15 & 1).into(), 1);
    let model = cpuid(1, 0)[0] >> 4;
    let version = match model {
        0x606a | 0x806f => 5,
        0xb06d | 0xc06c => 6,
        _ => 0,
    };
    let [eax, ebx, ecx, edx] = cpuid(0xa, 0);
    report.equal("leaf 0AH: the model's version", (eax & 0xff).into(), version);
    report.within("leaf 0AH: general counters", (eax >> 8 & 0xff).into(), 1, 8);
    let width = eax >> 16 & 0xff;
    report.within("leaf 0AH: their width", width.into(), 32, 48);
    report.equal("leaf 0AH: architectural events", (eax >> 24).into(), 8);
    report.equal("leaf 0AH: all of them are available", ebx.into(), 0);
    let fixed = edx & 0x1f;
    report.within("leaf 0AH: fixed counters, in number", fixed.into(), 0, 4);
    report.equal("leaf 0AH: fixed counters, by bit", ecx.into(), (1 << fixed) - 1);
    report.equal("leaf 0AH: their width", (edx >> 5 & 0xff).into(), width.into());
    report.equal("leaf 0AH: AnyThread is deprecated", (edx >> 15 & 1).into(), 1);
}

/// The numbers of general and fixed counters.
fn intel_counters() -> [u32; 2] {
    let [eax, _, _, edx] = cpuid(0xa, 0);
    if version_6::is_here() { version_6::counters() } else { [eax >> 8 & 0xff, edx & 0x1f] }
}

fn intel(report: &mut CheckReport) {
    let [general, fixed] = intel_counters();
    if version_6::is_here() {
        version_6::leaf(report);
        version_6::rows(report);
    } else {
        version_6::absent(report);
    }
    for index in 0..8 {
        if index < general {
            intel_general(report, index);
            continue;
        }
        for msr in [0xc1 + index, 0x4c1 + index, 0x186 + index] {
            check(report, RefusesRead(msr));
            check(report, RefusesWrite(msr, 0));
        }
        check(report, RefusesIndex(index));
    }
    (0..fixed).for_each(|index| intel_fixed(report, index));
    let all = ((1u64 << general) - 1) | ((1 << fixed) - 1) << 32;
    intel_control(report, all, general, fixed);
    intel_status(report, general, fixed);
    intel_debug_and_extra(report);
    intel_beyond(report, general, fixed);
    intel_in_use(report, general, fixed);
    features::metrics(report, fixed);
}

/// Checks a general counter and its event select.
fn intel_general(report: &mut CheckReport, index: u32) {
    let (legacy, full, select) = (0xc1 + index, 0x4c1 + index, 0x186 + index);
    let mask = VendorPmu::here().counter_mask();
    for rule in [
        Holds(legacy, 0x7fff_ffff, 0x7fff_ffff),
        Holds(legacy, 0xffff_fff0, mask - 0xf),
        Holds(legacy, 0x1234_0000_0001, 1),
        Holds(full, 0x8234_5678_9abc & mask, 0x8234_5678_9abc & mask),
        RefusesWrite(full, mask + 1),
        RefusesWrite(full, u64::MAX),
        Holds(select, 0xff9f_ffff & !(1 << 22), 0xff9f_ffff & !(1 << 22)),
        RefusesWrite(select, 1 << 21),
        RefusesWrite(select, 1 << 32),
        RefusesWrite(select, 1 << 63),
    ] {
        check(report, rule);
    }
}

/// Checks a fixed counter and its control.
fn intel_fixed(report: &mut CheckReport, index: u32) {
    let (counter, nibble) = (0x309 + index, 4 * index);
    let mask = VendorPmu::here().counter_mask();
    for rule in [
        Holds(counter, mask - 0xeeee, mask - 0xeeee),
        RefusesWrite(counter, mask + 1),
        Holds(0x38d, 0xb << nibble, 0xb << nibble),
        RefusesWrite(0x38d, 4 << nibble),
    ] {
        check(report, rule);
    }
}

/// Checks global control and fixed control.
fn intel_control(report: &mut CheckReport, all: u64, general: u32, fixed: u32) {
    for rule in [
        Holds(0x38f, all, all),
        Holds(0x38f, 0, 0),
        RefusesWrite(0x38f, 1 << general),
        RefusesWrite(0x38f, 1 << (32 + fixed)),
        RefusesWrite(0x38f, 1 << 63),
        RefusesWrite(0x38d, 1 << (4 * fixed)),
        RefusesWrite(0x38d, 1 << 63),
    ] {
        check(report, rule);
    }
}

/// Checks global status, its set and reset registers.
fn intel_status(report: &mut CheckReport, general: u32, fixed: u32) {
    for rule in [
        RefusesWrite(0x38e, 0),
        RefusesWrite(0x38e, 1),
        Reads(0x390, 0),
        RefusesWrite(0x390, 1 << general),
        RefusesWrite(0x390, 1 << (32 + fixed)),
        RefusesWrite(0x391, 1 << general),
        RefusesWrite(0x391, 1 << (32 + fixed)),
    ] {
        check(report, rule);
    }
    for bit in (0..general).chain(32..32 + fixed) {
        wrmsr(0x391, 1 << bit);
        report.equal(format_args!("status bit {bit} can be set"), rdmsr(0x38e), 1 << bit);
        wrmsr(0x390, 1 << bit);
        report.equal(format_args!("status bit {bit} can be reset"), rdmsr(0x38e), 0);
    }
}

/// Checks capabilities, debug control, off-core filters and the other extra registers.
fn intel_debug_and_extra(report: &mut CheckReport) {
    for rule in [
        RefusesWrite(0x345, 0),
        Holds(0x1d9, 1 << 12, 1 << 12),
        Holds(0x1d9, 1 << 11 | 1, 1 << 11 | 1),
        RefusesWrite(0x1d9, 1 << 20),
        Holds(0x1a6, 0x3f_8000_0001, 0x3f_8000_0001),
        Holds(0x1a7, 0x10001, 0x10001),
        RefusesWrite(0x1a6, 1 << 38),
        RefusesWrite(0x1a7, 1 << 63),
        Holds(0x3f6, 0x20, 0x20),
        Holds(0x3f7, 0x11, 0x11),
    ] {
        check(report, rule);
    }
}

/// Checks registers and indices beyond the counters.
fn intel_beyond(report: &mut CheckReport, general: u32, fixed: u32) {
    for rule in [
        RefusesRead(0x309 + fixed),
        RefusesWrite(0x309 + fixed, 0),
        RefusesIndex(general),
        RefusesIndex(0x20),
        RefusesIndex(0x4000_0000 + fixed),
        RefusesIndex(0x8000_0000),
        RefusesIndex(0xffff_ffff),
    ] {
        check(report, rule);
    }
}

/// Checks the register that lists the counters in use.
fn intel_in_use(report: &mut CheckReport, general: u32, fixed: u32) {
    check(report, Reads(0x392, 0));
    check(report, RefusesWrite(0x392, 0));
    for index in 0..general {
        let select = if index < 8 { 0x186 + index } else { 0x1901 + 4 * index };
        wrmsr(select, 0xc0);
        report.equal(format_args!("in use: general {index}"), rdmsr(0x392), 1 << index);
        wrmsr(select, 0xc0 | 1 << 20);
        report.equal(
            format_args!("in use: the interrupt by general {index}"),
            rdmsr(0x392),
            1 << 63 | 1 << index,
        );
        wrmsr(select, 0);
    }
    for index in 0..fixed {
        wrmsr(0x38d, 2 << (4 * index));
        report.equal(format_args!("in use: fixed {index}"), rdmsr(0x392), 1 << (32 + index));
    }
    wrmsr(0x38d, 0);
}

fn amd_cpuid(report: &mut CheckReport) {
    let family = cpuid(1, 0)[0];
    report.equal("leaf 1: family", (family >> 20 & 0xff).into(), 0xa);
    report.equal("leaf 8000_0001H: PerfCtrExtCore", (cpuid(0x8000_0001, 0)[2] >> 23 & 1).into(), 1);
    if VendorPmu::here().global.is_none() {
        return;
    }
    report.within("leaves to 8000_0022H", cpuid(0x8000_0000, 0)[0].into(), 0x8000_0022, u64::MAX);
    let [eax, ebx, ecx, edx] = cpuid(0x8000_0022, 0);
    report.equal("leaf 8000_0022H: PerfMonV2, branches, freezing", eax.into(), 0b111);
    report.within("leaf 8000_0022H: core counters", (ebx & 0xf).into(), 1, 6);
    report.equal("leaf 8000_0022H: branch records", (ebx >> 4 & 0x3f).into(), 16);
    report.equal("leaf 8000_0022H: no other counters", (ecx | edx | ebx >> 10).into(), 0);
}

fn amd(report: &mut CheckReport) {
    let second = VendorPmu::here().global.is_some();
    let general = if second { cpuid(0x8000_0022, 0)[1] & 0xf } else { 6 };
    for index in 0..6 {
        let (select, counter) = (0xc001_0200 + 2 * index, 0xc001_0201 + 2 * index);
        if index >= general {
            for msr in [select, counter] {
                check(report, RefusesRead(msr));
                check(report, RefusesWrite(msr, 0));
            }
            check(report, RefusesIndex(index));
            continue;
        }
        amd_bank(report, select, counter);
        if index < 4 {
            amd_bank(report, 0xc001_0000 + index, 0xc001_0004 + index);
            wrmsr(counter, 0x1234);
            let what = format_args!("counter {index} is legacy counter {index}");
            report.equal(what, rdmsr(0xc001_0004 + index), 0x1234);
        }
    }
    for index in [general, 0x4000_0000, 0xffff_ffff] {
        check(report, RefusesIndex(index));
    }
    if second {
        amd_global(report, general);
        return;
    }
    for msr in 0xc000_0300..0xc000_0304 {
        check(report, RefusesRead(msr));
        check(report, RefusesWrite(msr, 0));
    }
}

fn amd_global(report: &mut CheckReport, general: u32) {
    let all = (1 << general) - 1;
    for rule in [
        Holds(0xc000_0301, all, all),
        Holds(0xc000_0301, 0, 0),
        RefusesWrite(0xc000_0301, 1 << general),
        RefusesWrite(0xc000_0301, 1 << 63),
        RefusesWrite(0xc000_0300, 0),
        Holds(0xc000_0302, u64::MAX, 0),
        RefusesWrite(0xc000_0303, 1 << general),
        RefusesWrite(0xc000_0301, 1 << 59),
        Holds(0x1d9, 1 << 12, 1 << 12),
        RefusesWrite(0x1d9, 1 << 6),
        Holds(0xc000_0302, 1 << 58, 0),
        RefusesWrite(0xc000_0303, 1 << 58),
    ] {
        check(report, rule);
    }
    for bit in (0..general).chain([59]) {
        wrmsr(0xc000_0303, 1 << bit);
        report.equal(format_args!("status bit {bit} can be set"), rdmsr(0xc000_0300), 1 << bit);
        wrmsr(0xc000_0302, 1 << bit);
        report.equal(format_args!("status bit {bit} can be cleared"), rdmsr(0xc000_0300), 0);
    }
}

fn amd_bank(report: &mut CheckReport, select: u32, counter: u32) {
    let valid = 0x30f_ff97_ffff;
    for rule in [
        Holds(counter, 0x8234_5678_9abc, 0x8234_5678_9abc),
        Holds(counter, u64::MAX, VendorPmu::here().counter_mask()),
        Holds(counter, 1 << 48 | 5, 5),
        Holds(select, valid, valid),
        RefusesWrite(select, 1 << 19),
        RefusesWrite(select, 1 << 21),
        RefusesWrite(select, 1 << 36),
        RefusesWrite(select, 1 << 42),
        RefusesWrite(select, 1 << 63),
    ] {
        check(report, rule);
    }
}

/// Checks that ring 3 can execute only RDPMC, and RDPMC only while CR4.PCE is set.
fn rings(report: &mut CheckReport, vendor: &VendorPmu) {
    let mut value = 0u64;
    let memory = &raw mut value as u64;
    let ring3 =
        |entry: *const u8, register: u32| fault_of_ring3(entry as u64, register.into(), memory);
    let globals = vendor.global.into_iter().flatten();
    for register in [vendor.select.0, vendor.counter.0].into_iter().chain(globals) {
        let what = format_args!("ring 3 may not read {register:#x}");
        expect_gp(report, what, ring3(&raw const user_rdmsr, register), register);
        let what = format_args!("ring 3 may not write {register:#x}");
        expect_gp(report, what, ring3(&raw const user_wrmsr, register), register);
    }
    set_pce(false);
    let fault = ring3(&raw const user_rdpmc, 0);
    expect_gp(report, "ring 3 may not rdpmc without CR4.PCE", fault, 0);
    set_pce(true);
    vendor.program(0, 0x55, 0);
    let fault = ring3(&raw const user_rdpmc, 0);
    report.equal("ring 3 may rdpmc with CR4.PCE", fault.map_or(NONE, u64::from), NONE);
    // SAFETY: ring 3 wrote it.
    let read = unsafe { core::ptr::read_volatile(&raw const value) };
    report.equal("and reads what ring 0 reads", read, rdpmc(0));
    let fault = ring3(&raw const user_rdpmc, 0x1f);
    expect_gp(report, "ring 3 may not rdpmc beyond the counters", fault, 0x1f);
    report.equal("CR4.PCE is as it was", read_cr4() & CR4_PCE, CR4_PCE);
}

/// Executes RDPMC in ring 3; returns [`NONE`] if it faults.
pub fn rdpmc_in_ring3(index: u32) -> u64 {
    let mut value = 0u64;
    let memory = &raw mut value as u64;
    let fault = fault_of_ring3(&raw const user_rdpmc as u64, index.into(), memory);
    // SAFETY: ring 3 wrote it.
    fault.map_or(unsafe { core::ptr::read_volatile(&raw const value) }, |_| NONE)
}

fn read_cr4() -> u64 {
    let cr4;
    // SAFETY: reading CR4 has no effect.
    unsafe { core::arch::asm!("mov {}, cr4", out(reg) cr4) };
    cr4
}

fn set_pce(on: bool) {
    let cr4 = read_cr4() & !CR4_PCE | if on { CR4_PCE } else { 0 };
    // SAFETY: only RDPMC's permission changes.
    unsafe { core::arch::asm!("mov cr4, {}", in(reg) cr4) };
}
