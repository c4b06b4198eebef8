//! PEBS: registers, and records of loops in which each instruction is known.

use core::sync::atomic::Ordering::Relaxed;

use crate::{
    apic, arch_pebs,
    debug_store::{
        ADAPTIVE, BASIC, CLEARED, DATA_CFG, DS_AREA, FIXED, FIXED_CTRL, INSTRUCTIONS, MISSES,
        OFFSETS, PEBS_ENABLE, RETIRE, STATUS, STATUS_RESET, TAKEN, WITH_MEMORY,
        expect_instructions, filled, late, offset, prepare, records_of, run, sample, set_area,
        word,
    },
    exactness::{memory, mixed},
    kernel::{self, HOLE, in_ring3_interrupted, unmap_hole},
    lone_loads::{STRIDE, UNTOUCHED, lone_loads},
    machine::{PMI_VECTOR, cpuid, rdmsr, rdpmc, wrmsr},
    pebs_6,
    report::CheckReport,
    rule::{
        Rule::{Holds, RefusesWrite},
        check,
    },
    vendor::{EN, INT, USR, VendorPmu},
    version_6,
};

/// Distance of the memory of one check from that of the next.
const APART: u64 = 2 << 20;

const LOAD_LATENCY: u32 = 0x3f6;
const MISC_ENABLE: u32 = 0x1a0;
/// Global status: the buffer has reached its threshold.
const BUFFER_FULL: u64 = 1 << 62;

const LOADS: u64 = 0x81d0;
/// Loads above a latency, which a register has, and the event that Golden Cove needs beside them.
const SLOW_LOADS: u64 = 0x01cd;
const SLOW_CYCLES: u64 = 100;

const LOAD: u64 = OFFSETS[0];
const BRANCH: u64 = OFFSETS[5];
/// The bits of PEBS in PERF_CAPABILITIES: after the instruction, architectural registers, its
/// format, every counter, and with version 6 the retire latency; of architectural PEBS the format
/// alone.
pub fn capabilities() -> u64 {
    let format = if version_6::is_here() { 6 << 8 | 1 << 17 } else { 4 << 8 };
    if arch_pebs::is_here() {
        return 0xf << 8;
    }
    if is_here() { 1 << 6 | 1 << 7 | format | 1 << 14 } else { 0 }
}

/// The word of fixed counter 0's reset value in the management area: behind those of 8 general
/// counters, or 32.
fn fixed_reset() -> usize {
    if version_6::is_here() { 8 + 32 } else { 8 + 8 }
}

/// Returns whether this machine has PEBS.
fn is_here() -> bool {
    VendorPmu::here().is_intel() && cpuid(1, 0)[3] >> 21 & 1 == 1
}

/// Runs every check of this module.
pub fn run_all(report: &mut CheckReport) {
    if !is_here() {
        return;
    }
    let vendor = VendorPmu::here();
    registers(report);
    first_counter(report, &vendor);
    fixed(report, &vendor);
    next_event(report, &vendor);
    known_instruction(report, &vendor);
    memory_group(report, &vendor);
    misses(report, &vendor);
    together(report, &vendor);
    full(report, &vendor);
    threshold(report, &vendor);
    unmapped(report, &vendor);
    disabled(report, &vendor);
    if version_6::is_here() {
        pebs_6::run_all(report, &vendor);
    }
}

fn registers(report: &mut CheckReport) {
    report.equal("leaf 1: DTES64", (cpuid(1, 0)[2] >> 2 & 1).into(), 1);
    let unknown_group = if version_6::is_here() { 1 << 6 } else { 1 << 4 };
    report.equal("PEBS is available, BTS is not", rdmsr(MISC_ENABLE) >> 11 & 3, 1);
    for rule in [
        Holds(DS_AREA, 0xffff_8000_1234_5678, 0xffff_8000_1234_5678),
        RefusesWrite(DS_AREA, 1 << 60),
        Holds(PEBS_ENABLE, 1, 1),
        RefusesWrite(PEBS_ENABLE, 1 << 31),
        RefusesWrite(PEBS_ENABLE, 1 << 40),
        Holds(DATA_CFG, 0xff00_000f, 0xff00_000f),
        RefusesWrite(DATA_CFG, unknown_group),
        Holds(0x186, ADAPTIVE, ADAPTIVE),
        RefusesWrite(0x186, 1 << 33),
    ] {
        check(report, rule);
    }
}

/// Checks that general counter 0 has its record at the overflow, or on Ice Lake at the next event.
fn first_counter(report: &mut CheckReport, vendor: &VendorPmu) {
    for period in [7, 61, 997] {
        prepare(4096, 4096, period);
        sample(vendor, &[(0, INSTRUCTIONS, period)], 1_000);
        let distance = period + late();
        let records = (6_001 / distance) as usize;
        expect_instructions(report, "PEBS, counter 0", distance, records);
        let left = rdpmc(0).wrapping_add(period) & vendor.counter_mask();
        report.equal("PEBS, counter 0: it has its reset value", left, 6_001 % distance);
        report.equal("PEBS: the first word is the size", word(0) & !RETIRE, 32 << 48);
        report.equal("PEBS: the third word is the counter", word(2), 1);
        report.equal("PEBS: no status bit", rdmsr(STATUS), 0);
    }
}

fn fixed(report: &mut CheckReport, vendor: &VendorPmu) {
    if cpuid(0xa, 0)[3] & 0x1f == 0 {
        return;
    }
    prepare(4096, 4096, 61);
    // No other counter's reset value.
    (8..64).filter(|at| *at != fixed_reset()).for_each(|at| set_area(at, 0));
    wrmsr(FIXED, 61_u64.wrapping_neg() & vendor.counter_mask());
    wrmsr(FIXED_CTRL, 0b10);
    run(vendor, 1 << 32, 1_000);
    wrmsr(FIXED_CTRL, 0);
    expect_instructions(report, "PEBS, fixed counter 0", 61, 6_001 / 61);
    report.equal("PEBS: the third word is the fixed counter", word(2), 1 << 32);
}

/// Checks that another counter has its record at the event after the overflow.
fn next_event(report: &mut CheckReport, vendor: &VendorPmu) {
    prepare(4096, 4096, 61);
    sample(vendor, &[(1, INSTRUCTIONS, 61)], 1_000);
    expect_instructions(report, "PEBS, counter 1", 62, 6_001 / 62);
}

/// Checks that every record of an event that one instruction has is at that instruction.
fn known_instruction(report: &mut CheckReport, vendor: &VendorPmu) {
    for (counter, event, at) in [(0, LOADS, LOAD), (1, LOADS, LOAD), (0, TAKEN, BRANCH)] {
        prepare(4096, 4096, 13);
        sample(vendor, &[(counter, event, 13)], 1_000);
        let records = filled() / BASIC;
        let wrong = (0..records).filter(|record| offset(*record, BASIC) != at).count();
        let what = format_args!("PEBS, counter {counter}, event {event:#x}: records");
        report.within(what, records as u64, 1_000 / 14, 1_000 / 13);
        report.equal("PEBS: all of them at the instruction", wrong as u64, 0);
    }
}

fn memory_group(report: &mut CheckReport, vendor: &VendorPmu) {
    prepare(4096, 4096, 13);
    wrmsr(DATA_CFG, 1);
    sample(vendor, &[(0, LOADS | ADAPTIVE, 13)], 1_000);
    wrmsr(DATA_CFG, 0);
    let records = filled() / WITH_MEMORY;
    report.equal("PEBS with addresses: records", records as u64, 1_000 / (13 + late()));
    let is_right = |record: usize| {
        let at = record * WITH_MEMORY;
        let (address, source, cycles) = (word(at + 4), word(at + 5), word(at + 6) & 0xffff);
        word(at) & !RETIRE == 64 << 48 | 1
            && offset(record, WITH_MEMORY) == LOAD
            && address == memory()
            && source == 0
            && cycles == 0
            && word(at + 7) == 0
    };
    let right = (0..records).filter(|record| is_right(*record)).count();
    report.equal("PEBS with addresses: right", right as u64, records as u64);
}

/// Checks the records of loads that memory serves, each from an address of its own: by what they
/// met, and by their latency, where the records have latency and source. Golden Cove needs another
/// counter for these, Lion Cove does not.
fn misses(report: &mut CheckReport, vendor: &VendorPmu) {
    by_event(report, vendor, (MISSES, 0b10), UNTOUCHED);
    wrmsr(LOAD_LATENCY, SLOW_CYCLES);
    let slow = (SLOW_LOADS, if version_6::is_here() { 0b100 } else { 0b110 });
    by_event(report, vendor, slow, UNTOUCHED + APART);
    wrmsr(LOAD_LATENCY, 0xffff);
    let records = records_of(vendor, slow, UNTOUCHED + 2 * APART);
    report.equal("PEBS of slow loads, higher threshold: records", records as u64, 0);
    wrmsr(LOAD_LATENCY, 0);
}

fn by_event(report: &mut CheckReport, vendor: &VendorPmu, by: (u64, u64), from: u64) {
    let (records, (event, _)) = (records_of(vendor, by, from), by);
    report.equal(format_args!("PEBS of misses by {event:#x}: records"), records as u64, 400 / 4);
    let (memory, source_mask) = if version_6::is_here() { (0x11, 0xff) } else { (0xc, 0xf) };
    let is_right = |record: usize| {
        let at = record * WITH_MEMORY;
        let load = 4 * record as u64 + 3;
        let (source, cycles) = (word(at + 5) & source_mask, word(at + 6) & 0xffff);
        word(at + 1) == &raw const lone_loads as u64
            && word(at + 4) == from + STRIDE * load
            && if event == SLOW_LOADS {
                source == memory && cycles > SLOW_CYCLES
            } else {
                source == 0 && cycles == 0
            }
    };
    let right = (0..records).filter(|record| is_right(*record)).count();
    report.equal(format_args!("PEBS of misses by {event:#x}: right"), right as u64, records as u64);
}

/// Checks that two counters whose records are due at the same instruction share one.
fn together(report: &mut CheckReport, vendor: &VendorPmu) {
    prepare(4096, 4096, 100_000);
    sample(vendor, &[(0, INSTRUCTIONS, 101 - late()), (1, INSTRUCTIONS, 100)], 100);
    report.equal("PEBS, two counters: records", (filled() / BASIC) as u64, 1);
    report.equal("PEBS, two counters: both in one", word(2), 3);
    report.equal("PEBS, two counters: at", offset(0, BASIC), OFFSETS[100 % 6]);
}

fn full(report: &mut CheckReport, vendor: &VendorPmu) {
    prepare(3 * BASIC + 1, 1_000, 50);
    sample(vendor, &[(0, INSTRUCTIONS, 50)], 100);
    report.equal("PEBS, full: words", filled() as u64, 3 * BASIC as u64);
    report.equal("PEBS, full: nothing behind them", (3 * BASIC..CLEARED).map(word).sum(), 0);
    report.equal("PEBS, full: no threshold, no status", rdmsr(STATUS), 0);
    let left = rdpmc(0).wrapping_add(50) & vendor.counter_mask();
    report.equal("PEBS, full: the counter is reset all the same", left, 601 % (50 + late()));
}

/// Checks that the interrupt comes at the threshold, once, and not by the counter's own bit.
fn threshold(report: &mut CheckReport, vendor: &VendorPmu) {
    let taken = || kernel::TAKEN[PMI_VECTOR as usize].load(Relaxed);
    apic::apic_write(apic::LVT_PERFORMANCE, PMI_VECTOR.into());
    prepare(4096, 5 * BASIC, 100);
    let before = taken();
    sample(vendor, &[(0, INSTRUCTIONS | INT, 100)], 81);
    report.equal("PEBS, below the threshold: records", (filled() / BASIC) as u64, 4);
    report.equal("PEBS, below the threshold: no interrupt", taken() - before, 0);
    report.equal("PEBS, below the threshold: no status", rdmsr(STATUS), 0);
    sample(vendor, &[(0, INSTRUCTIONS | INT, 100)], 1_000);
    report.equal("PEBS, at the threshold: one interrupt", taken() - before, 1);
    report.equal("PEBS, at the threshold: the status", rdmsr(STATUS), BUFFER_FULL);
    wrmsr(STATUS_RESET, BUFFER_FULL);
    report.equal("PEBS: the status is reset", rdmsr(STATUS), 0);
    apic::apic_write(apic::LVT_PERFORMANCE, apic::LVT_MASKED);
}

fn unmapped(report: &mut CheckReport, vendor: &VendorPmu) {
    prepare(4096, 4096, 50);
    unmap_hole();
    wrmsr(DS_AREA, HOLE);
    sample(vendor, &[(0, INSTRUCTIONS, 50)], 100);
    report.equal("PEBS, unmapped: nothing is written", filled() as u64, 0);
    report.equal("PEBS, unmapped: no status", rdmsr(STATUS), 0);
    wrmsr(DS_AREA, 0);
}

fn disabled(report: &mut CheckReport, vendor: &VendorPmu) {
    prepare(4096, 4096, 50);
    vendor.program(0, 50_u64.wrapping_neg(), INSTRUCTIONS | USR | EN);
    vendor.enable(1);
    in_ring3_interrupted(&raw const mixed as u64, 100, memory());
    vendor.enable(0);
    report.equal("PEBS, disabled: no record", filled() as u64, 0);
    report.equal("PEBS, disabled: the counter's status", rdmsr(STATUS), 1);
    wrmsr(STATUS_RESET, 1);
}
