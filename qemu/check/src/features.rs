//! Optional features: PERF_METRICS, freezing at a PMI, off-core responses.

use crate::{
    exactness::{memory, mixed},
    kernel::in_ring3,
    lbr,
    machine::{cpuid, rdmsr, rdpmc, wrmsr},
    pebs,
    report::CheckReport,
    rule::{
        Rule::{Holds, Reads, RefusesIndex, RefusesRead, RefusesWrite},
        check,
    },
    vendor::{EN, INT, OS, USR, VendorPmu},
};

/// Debug control register, and its bit that freezes the counters at a PMI.
const DEBUGCTL: u32 = 0x1d9;
const FREEZE: u64 = 1 << 12;
/// Global status: counters are frozen.
const FROZEN: u64 = 1 << 59;

/// Runs every check of this module except those of PERF_METRICS' registers.
pub fn run(report: &mut CheckReport) {
    let vendor = VendorPmu::here();
    if let Some([_, status, reset]) = vendor.global {
        freeze(report, &vendor, status, reset);
    }
    if vendor.is_intel() {
        offcore(report, &vendor);
    }
}

fn freeze(report: &mut CheckReport, vendor: &VendorPmu, status: u32, reset: u32) {
    wrmsr(DEBUGCTL, FREEZE);
    vendor.program(0, 0u64.wrapping_sub(3_000), vendor.events[0] | USR | EN | INT);
    vendor.program(1, 0, vendor.events[0] | USR | EN);
    vendor.enable(3);
    in_ring3(&raw const mixed as u64, 1_000, memory());
    report.equal("frozen: the status bit is set", rdmsr(status), FROZEN | 1);
    // The plugin detects the overflow at the end of its block.
    report.within("frozen: the counter stops", rdpmc(0), 0, 20);
    report.equal("frozen: every other counter stops", rdpmc(1), 3_000 + rdpmc(0));
    let stopped = rdpmc(0);
    wrmsr(reset, FROZEN | 1);
    in_ring3(&raw const mixed as u64, 1_000, memory());
    vendor.enable(0);
    report.equal("unfrozen: the counter continues", rdpmc(0), stopped + 6_001);
    wrmsr(DEBUGCTL, 0);
    vendor.reset_overflow();
}

/// Address of memory that nothing has accessed.
const UNTOUCHED: usize = 128 << 20;

fn offcore(report: &mut CheckReport, vendor: &VendorPmu) {
    let codes = match cpuid(1, 0)[0] >> 4 {
        0x806f | 0xb06d | 0xc06c => [0x12a, 0x12b],
        _ => [0x1b7, 0x1bb],
    };
    let read = |first: usize, filters: [u64; 2]| {
        wrmsr(0x1a6, filters[0]);
        wrmsr(0x1a7, filters[1]);
        vendor.count(&codes, OS, || {
            for line in first..first + 1_000 {
                // SAFETY: this memory exists, and nothing else uses it.
                unsafe { core::ptr::read_volatile((UNTOUCHED + 64 * line) as *const u8) };
            }
        })
    };
    // The guest's kernel adds a few lines.
    let [any, memory, ..] = read(0, [0x1_0001, 0x7_3c00_0001]);
    report.within("off-core: demand reads", any, 1_000, 1_010);
    report.within("off-core: demand reads of memory", memory, 1_000, any);
    let [hits, changed, ..] = read(1_000, [0x3f_803c_0001, 0x10_003c_0001]);
    report.within("off-core: new lines do not hit", hits, 0, 10);
    report.equal("off-core: no other core has modified a line", changed, 0);
    let [stores, code, ..] = read(2_000, [0x1_0002, 0x1_0004]);
    report.within("off-core: reads are no requests for ownership", stores, 0, 10);
    report.within("off-core: reads are no code reads", code, 0, 50);
    wrmsr(0x1a6, 0);
    wrmsr(0x1a7, 0);
}

/// Checks that PERF_METRICS exists with the fourth fixed counter, and that without it every access
/// faults.
pub fn metrics(report: &mut CheckReport, fixed: u32) {
    let (register, enable) = (0x329, 1 << 48);
    if fixed < 4 {
        for rule in [
            Reads(0x345, lbr::capabilities() | pebs::capabilities() | 1 << 12 | 1 << 13),
            RefusesRead(register),
            RefusesWrite(register, 0),
            RefusesWrite(0x38f, enable),
            RefusesWrite(0x390, enable),
            RefusesIndex(1 << 29),
        ] {
            check(report, rule);
        }
        return;
    }
    let second_level = matches!(cpuid(1, 0)[0] >> 4, 0x806f | 0xb06d | 0xc06c);
    for rule in [
        Reads(0x345, lbr::capabilities() | pebs::capabilities() | 1 << 15 | 1 << 13 | 1 << 12),
        Reads(register, 0),
        Holds(register, 0, 0),
        Holds(0x38f, enable, enable),
        RefusesIndex(1 << 29 | 1),
    ] {
        check(report, rule);
    }
    if !second_level {
        check(report, RefusesWrite(register, 1 << 32));
    }
    wrmsr(0x391, enable);
    report.equal("the metrics' status bit can be set", rdmsr(0x38e), enable);
    wrmsr(0x390, enable);
    report.equal("the metrics' status bit can be reset", rdmsr(0x38e), 0);
    metrics_count(report, second_level);
}

fn metrics_count(report: &mut CheckReport, second_level: bool) {
    wrmsr(0x38d, 1 << 12);
    wrmsr(0x38f, 1 << 48 | 1 << 35);
    in_ring3(&raw const mixed as u64, 100, memory());
    wrmsr(0x38f, 0);
    let (value, slots) = (rdmsr(0x329), rdmsr(0x30c));
    report.equal("rdpmc 0x20000000 is PERF_METRICS", rdpmc(1 << 29), value);
    report.within("slots are counted in ring 0", slots, 1, u64::MAX);
    let first: u64 = (0..4).map(|place| value >> (8 * place) & 0xff).sum();
    report.within("the four parts of the first level add up to the whole", first, 0xfd, 0x101);
    report.within("some slots retired", value & 0xff, 1, 0xff);
    let second = value >> 32;
    if second_level {
        report.within(
            "memory bound is a part of back-end bound",
            second >> 24,
            0,
            value >> 24 & 0xff,
        );
    } else {
        report.equal("there is no second level", second, 0);
    }
    wrmsr(0x38f, 1 << 48);
    wrmsr(0x329, 0);
    in_ring3(&raw const mixed as u64, 100, memory());
    report.equal("metrics do not count without fixed counter 3", rdmsr(0x329), 0);
    for msr in [0x38f, 0x38d, 0x30c, 0x329] {
        wrmsr(msr, 0);
    }
}
