//! Architectural PEBS: CPUID, registers, and records of loops in which each instruction is known.
//!
//! Linux, arch/x86/include/asm/msr-index.h and perf_event.h.

use core::{
    ptr::{read_volatile, write_volatile},
    sync::atomic::Ordering::Relaxed,
};

use crate::{
    apic,
    debug_store::{INSTRUCTIONS, MISSES, OFFSETS},
    exactness::{memory, mixed},
    kernel::{self, in_ring3_interrupted},
    lone_loads::{STRIDE, UNTOUCHED, lone_loads},
    machine::{PMI_VECTOR, cpuid, rdmsr, wrmsr},
    report::CheckReport,
    rule::{
        Rule::{Holds, RefusesRead, RefusesWrite},
        check,
    },
    vendor::{EN, INT, USR, VendorPmu},
    version_6,
};

const BASE: u32 = 0x3f4;
const INDEX: u32 = 0x3f5;
const STATUS: u32 = 0x38e;
const STATUS_RESET: u32 = 0x390;
const FIXED_CTRL: u32 = 0x38d;
/// Rows of general and of fixed counters: counter, select, and records from the fourth register on.
const GENERAL: u32 = 0x1900;
const FIXED: u32 = 0x1980;
const RECORDS: u32 = 3;

/// Configuration of a counter's records: on, the memory access, eight branches, the counter's value
/// may be in records, values of general counters.
const ON: u64 = 1 << 63;
const ACCESS: u64 = 1 << 62;
const BRANCHES: u64 = 1 << 40;
const ALLOW: u64 = 1 << 35;
const VALUES: u64 = 1 << 36;
/// Global status: the records have reached the threshold.
const REACHED: u64 = 1 << 54;
/// The index: records are on; a record had no room; the threshold's place.
const INDEX_ON: u64 = 1 << 32;
const INDEX_FULL: u64 = 1 << 31;
const THRESHOLD_SHIFT: u32 = 36;

/// Loads above a latency, which a register has.
const SLOW_LOADS: u64 = 0x01cd;
const LOAD_LATENCY: u32 = 0x3f6;
const SLOW_CYCLES: u64 = 100;
/// Memory of these checks alone.
const APART: u64 = 10 << 20;

/// Words of a basic record, and of one with the access.
const BASIC: usize = 8;
const WITH_ACCESS: usize = 16;

/// Pages of the buffer, as a power of two.
const SIZE: u64 = 4;

#[repr(align(4096))]
struct Buffer([u64; 512 << SIZE]);

static mut BUFFER: Buffer = Buffer([0; 512 << SIZE]);

fn word(index: usize) -> u64 {
    // SAFETY: the virtual PMU writes it between two instructions, and only this module reads it.
    unsafe { read_volatile(&raw const BUFFER.0[index]) }
}

/// Words of the buffer that have records.
fn filled() -> usize {
    (rdmsr(INDEX) & 0x7f_ffff << 4) as usize / 8
}

/// Empties the buffer, with a size and a threshold in units of 16 bytes. The guest's memory is at
/// its physical addresses.
fn prepare(size: u64, threshold: u64) {
    // SAFETY: as in `word`.
    unsafe { write_volatile(&raw mut BUFFER.0[0], 0) };
    wrmsr(BASE, &raw const BUFFER as u64 | size);
    wrmsr(INDEX, INDEX_ON | threshold << THRESHOLD_SHIFT);
    wrmsr(STATUS_RESET, rdmsr(STATUS));
}

/// Runs rounds of code with a general counter of ring 3, whose records have some groups, and whose
/// first period and next ones are the same.
fn sample(
    vendor: &VendorPmu,
    (counter, event, period): (u32, u64, u64),
    groups: u64,
    (entry, rounds, data): (u64, u64, u64),
) {
    let row = GENERAL + 4 * counter;
    wrmsr(row, period.wrapping_neg() & vendor.counter_mask());
    wrmsr(row + RECORDS, ON | groups | period.wrapping_neg() & 0xffff_ffff);
    wrmsr(row + 1, event | USR | EN);
    vendor.enable(1 << 33 | 0b10 | 1 << counter);
    in_ring3_interrupted(entry, rounds, data);
    vendor.enable(0);
    wrmsr(row + 1, 0);
    wrmsr(row + RECORDS, 0);
}

fn a_loop(rounds: u64) -> (u64, u64, u64) {
    (&raw const mixed as u64, rounds, memory())
}

/// Returns whether PEBS is architectural.
pub fn is_here() -> bool {
    version_6::is_here() && cpuid(0x23, 0)[0] >> 4 & 0b11 == 0b11
}

/// Runs every check of this module.
pub fn run_all(report: &mut CheckReport) {
    if !is_here() {
        return;
    }
    let vendor = VendorPmu::here();
    registers(report);
    instructions(report, &vendor);
    fixed(report, &vendor);
    loads(report, &vendor);
    threshold(report, &vendor);
    full(report, &vendor);
    other_groups(report, &vendor);
    retire_latencies(report, &vendor);
}

fn registers(report: &mut CheckReport) {
    let [general, fixed] = version_6::counters();
    let all = [general, fixed].map(|count| (1_u32 << count) - 1);
    report.equal("no debug store", (cpuid(1, 0)[3] >> 21 & 1).into(), 0);
    report.equal("leaf 23H: accesses", (cpuid(0x23, 4)[1] >> 30 & 1).into(), 1);
    let of_counters = cpuid(0x23, 5);
    report.equal("leaf 23H: general counters store records", of_counters[0].into(), all[0].into());
    report.equal("leaf 23H: fixed counters store records", of_counters[2].into(), all[1].into());
    report.equal(
        "leaf 23H: the first ones are precise",
        (of_counters[1] & of_counters[3]).into(),
        1,
    );
    let last = GENERAL + 4 * (general - 1) + RECORDS;
    for rule in [
        Holds(BASE, 0x1234_5000 | SIZE, 0x1234_5000 | SIZE),
        RefusesWrite(BASE, 1 << 11),
        Holds(INDEX, 5 << THRESHOLD_SHIFT | 3 << 4, 5 << THRESHOLD_SHIFT | 3 << 4),
        RefusesWrite(INDEX, 1),
        Holds(last, ACCESS | 0xffff_ffff, ACCESS | 0xffff_ffff),
        RefusesWrite(last, 1 << 60),
        RefusesRead(last + 4),
        Holds(FIXED + RECORDS, ACCESS, ACCESS),
        RefusesWrite(GENERAL + 1, 1 << 34),
        RefusesWrite(FIXED_CTRL, 1 << 32),
    ] {
        check(report, rule);
    }
}

/// Checks that record `k` is at the instruction where `k * distance` have retired.
fn expect(report: &mut CheckReport, what: &str, distance: u64, all: u64) {
    let records = filled() / BASIC;
    report.equal(format_args!("{what}: records"), records as u64, all / distance);
    let at = |k: usize| word(BASIC * k + 2).wrapping_sub(&raw const mixed as u64);
    let expected = |k: usize| OFFSETS[(((k as u64 + 1) * distance - 1) % 6) as usize];
    let wrong = (0..records).filter(|k| at(*k) != expected(*k)).count();
    report.equal(format_args!("{what}: records elsewhere"), wrong as u64, 0);
    report.equal("architectural PEBS: a basic record", word(0), ON | 1 << 30 | 64);
}

/// Checks the first counter, which is precise, the second one and the last, which are not.
fn instructions(report: &mut CheckReport, vendor: &VendorPmu) {
    let [general, _] = version_6::counters();
    for (counter, late) in [(0, 0), (1, 1), (general - 1, 1)] {
        prepare(SIZE, 0x7f_ffff);
        sample(vendor, (counter, INSTRUCTIONS, 61), 0, a_loop(1_000));
        expect(report, "architectural PEBS", 61 + late, 6_001);
        report.equal("architectural PEBS: the counter", word(3), 1 << counter);
        report.equal("architectural PEBS: no status", rdmsr(STATUS), 0);
    }
    prepare(SIZE, 0x7f_ffff);
    wrmsr(INDEX, 0);
    sample(vendor, (0, INSTRUCTIONS, 61), 0, a_loop(100));
    report.equal("architectural PEBS, off: no record", rdmsr(INDEX) | word(0), 0);
}

fn fixed(report: &mut CheckReport, vendor: &VendorPmu) {
    prepare(SIZE, 0x7f_ffff);
    wrmsr(FIXED, 61_u64.wrapping_neg() & vendor.counter_mask());
    wrmsr(FIXED + RECORDS, ON | 61_u64.wrapping_neg() & 0xffff_ffff);
    wrmsr(FIXED_CTRL, 0b10);
    vendor.enable(1 << 32);
    let (entry, rounds, data) = a_loop(1_000);
    in_ring3_interrupted(entry, rounds, data);
    vendor.enable(0);
    wrmsr(FIXED_CTRL, 0);
    wrmsr(FIXED + RECORDS, 0);
    expect(report, "architectural PEBS, fixed counter 0", 61, 6_001);
    report.equal("architectural PEBS: the fixed counter", word(3), 1 << 32);
}

/// Checks the accesses of loads that memory serves, each from an address of its own: the latency
/// and the source of slow loads, and the address alone of others.
fn loads(report: &mut CheckReport, vendor: &VendorPmu) {
    wrmsr(LOAD_LATENCY, SLOW_CYCLES);
    for (event, from) in [(MISSES, UNTOUCHED + APART), (SLOW_LOADS, UNTOUCHED + APART + (2 << 20))]
    {
        prepare(SIZE, 0x7f_ffff);
        let code = (&raw const lone_loads as u64, 400, from);
        sample(vendor, (2, event, 3), ACCESS, code);
        let records = filled() / WITH_ACCESS;
        let what = format_args!("architectural PEBS of {event:#x}: records");
        report.equal(what, records as u64, 400 / 4);
        let is_right = |record: usize| {
            let at = WITH_ACCESS * record;
            let (source, cycles) = (word(at + 13) & 0xff, word(at + 14) & 0xffff);
            let is_slow = event == SLOW_LOADS;
            word(at) == ON | ACCESS | 1 << 30 | 128
                && word(at + 2) == code.0
                && word(at + 8) == from + STRIDE * (4 * record as u64 + 3)
                && if is_slow {
                    source == 0x11 && cycles > SLOW_CYCLES
                } else {
                    source | cycles == 0
                }
        };
        let right = (0..records).filter(|record| is_right(*record)).count();
        let what = format_args!("architectural PEBS of {event:#x}: right");
        report.equal(what, right as u64, records as u64);
    }
    wrmsr(LOAD_LATENCY, 0);
}

/// Checks that the interrupt comes at the threshold, once, and not by the counter's own bit.
fn threshold(report: &mut CheckReport, vendor: &VendorPmu) {
    let taken = || kernel::TAKEN[PMI_VECTOR as usize].load(Relaxed);
    apic::apic_write(apic::LVT_PERFORMANCE, PMI_VECTOR.into());
    prepare(SIZE, 5 * 4);
    let before = taken();
    sample(vendor, (0, INSTRUCTIONS | INT, 100), 0, a_loop(81));
    report.equal("architectural PEBS, below the threshold: words", filled() as u64, 4 * 8);
    report.equal("architectural PEBS, below the threshold", (taken() - before) | rdmsr(STATUS), 0);
    sample(vendor, (0, INSTRUCTIONS | INT, 100), 0, a_loop(1_000));
    report.equal("architectural PEBS, at the threshold: one interrupt", taken() - before, 1);
    report.equal("architectural PEBS, at the threshold: the status", rdmsr(STATUS), REACHED);
    wrmsr(STATUS_RESET, REACHED);
    report.equal("architectural PEBS: the status is reset", rdmsr(STATUS), 0);
    apic::apic_write(apic::LVT_PERFORMANCE, apic::LVT_MASKED);
}

fn full(report: &mut CheckReport, vendor: &VendorPmu) {
    prepare(0, 0x7f_ffff);
    sample(vendor, (0, INSTRUCTIONS, 50), 0, a_loop(1_000));
    report.equal("architectural PEBS, full: words", filled() as u64, 512);
    report.equal("architectural PEBS, full: it says so", rdmsr(INDEX) & INDEX_FULL, INDEX_FULL);
}

/// Checks the last branches and the value of another counter, in fragments that continue the
/// record.
fn other_groups(report: &mut CheckReport, vendor: &VendorPmu) {
    prepare(SIZE, 0x7f_ffff);
    wrmsr(0x14ce, 0x3f << 16 | 0b101);
    wrmsr(GENERAL + 4, 0);
    wrmsr(GENERAL + 4 + RECORDS, ALLOW);
    wrmsr(GENERAL + 5, INSTRUCTIONS | USR | EN);
    sample(vendor, (0, INSTRUCTIONS, 60), BRANCHES | VALUES, a_loop(1_000));
    wrmsr(GENERAL + 5, 0);
    wrmsr(GENERAL + 4 + RECORDS, 0);
    wrmsr(0x14ce, 0);
    let start = &raw const mixed as u64;
    let (mut at, mut record, mut right) = (0, 0, 0);
    while at < filled() && word(at) & 0xffff >= 16 {
        let [first, end] = [at, at + (word(at) & 0xffff) as usize / 8];
        let next = end + (word(end) & 0xffff) as usize / 8;
        let (branches, values) = (end + 2 + 6, end + 2 + 6 + 3 * 8);
        record += 1;
        let is_right = word(first) == ON | 1 << 31 | 1 << 30 | 64
            && word(end) >> 16 == (BRANCHES | VALUES | 1 << 30) >> 16
            && [word(branches), word(branches + 1)] == [start + OFFSETS[5], start]
            && [word(values), word(values + 2)] == [0b10, 60 * record];
        right += u64::from(is_right);
        at = next;
    }
    report.equal("architectural PEBS, fragments: records", record, 6_001 / 60);
    report.equal("architectural PEBS, fragments: right", right, record);
}

/// Checks that the retire latencies of all instructions add up to the cycles, and that loads from
/// memory have most of them.
fn retire_latencies(report: &mut CheckReport, vendor: &VendorPmu) {
    prepare(SIZE, 0x7f_ffff);
    wrmsr(FIXED + 4, 0);
    wrmsr(FIXED_CTRL, 0b10_0000);
    let entry = &raw const lone_loads as u64;
    sample(vendor, (0, INSTRUCTIONS, 1), 0, (entry, 200, UNTOUCHED + APART + (4 << 20)));
    wrmsr(FIXED_CTRL, 0);
    let all =
        || (0..filled() / BASIC).map(|record| [word(BASIC * record + 2), word(BASIC * record + 5)]);
    let latency = |word: u64| if word >> 16 == 1 { word & 0xffff } else { 0 };
    let sum: u64 = all().map(|[_, word]| latency(word)).sum();
    let of_loads: u64 = all().filter(|of| of[0] == entry).map(|[_, word]| latency(word)).sum();
    let cycles = rdmsr(FIXED + 4);
    report.within("architectural PEBS, retire latencies", sum, cycles * 9 / 10, cycles * 11 / 10);
    report.within("architectural PEBS, retire latencies of loads", of_loads, sum / 2, sum);
}
