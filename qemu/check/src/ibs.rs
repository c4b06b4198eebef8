//! IBS: registers, and samples of ops of loops in which each op is known.
//!
//! A sample's place depends on the ops of this kernel before the loop, those of its wrong paths
//! too, which no check knows. So a check takes samples that begin their counts apart, and expects
//! each op of the loop among them; bounds of their numbers are wide, as of a choice at random.

use core::{arch::global_asm, sync::atomic::Ordering::Relaxed};

use crate::{
    apic,
    exactness::{memory, mixed},
    kernel::{self, in_ring3_interrupted},
    lone_loads::{STRIDE, UNTOUCHED, lone_loads},
    machine::{PMI_VECTOR, cpuid, rdmsr, wrmsr},
    report::CheckReport,
    rule::{
        Rule::{Holds, Reads, RefusesWrite},
        check,
    },
};

global_asm!(
    r#"
    .section .text
// RDI rounds of a chain of 63 jumps (JMP +62), each to a line of its own.
    .balign 64
ibs_lines:
    .rept 63
    .byte 0xeb, 62
    .balign 64
    .endr
    dec rdi
    jnz ibs_lines
    syscall
    "#
);

unsafe extern "C" {
    static ibs_lines: u8;
}

/// Distance of the memory of one run from that of the next.
const APART: u64 = 1 << 20;

const FETCH_CTL: u32 = 0xc001_1030;
const FETCH_LIN_AD: u32 = 0xc001_1031;
const FETCH_PHYS_AD: u32 = 0xc001_1032;
const FETCH_ENABLE: u64 = 1 << 48;
const FETCH_VALID: u64 = 1 << 49;
const OP_CTL: u32 = 0xc001_1033;
const OP_RIP: u32 = 0xc001_1034;
const IBS_CTL: u32 = 0xc001_103a;
const BR_TARGET: u32 = 0xc001_103b;
/// Entry 0 of the APIC's extended local vector table.
const EXTENDED_LVT: u64 = 0x500;
const ENABLE: u64 = 1 << 17;
const VALID: u64 = 1 << 18;
const COUNTS_OPS: u64 = 1 << 19;
const L3_MISS: u64 = 1 << 16;

/// Offsets in `mixed` of its ops: a load, a store, a test with a branch that is not taken, a
/// decrement with a branch that is.
const LOAD: u64 = 0;
const STORE: u64 = 3;
const TEST: u64 = 7;
const DECREMENT: u64 = 12;
const OPS: [u64; 4] = [LOAD, STORE, TEST, DECREMENT];

/// A sample: `IbsOpRip`, `IbsOpData`, `IbsOpData2`, `IbsOpData3`, `IbsDcLinAd`.
type Sample = [u64; 5];

fn is_zen4() -> bool {
    cpuid(0x8000_001b, 0)[0] >> 11 & 1 == 1
}

/// Takes a sample while code runs in ring 3, by a control value; `None` if none was taken.
fn sample(control: u64, entry: u64, rounds: u64, data: u64) -> Option<Sample> {
    wrmsr(OP_CTL, control | ENABLE);
    in_ring3_interrupted(entry, rounds, data);
    let is_there = rdmsr(OP_CTL) & VALID != 0;
    wrmsr(OP_CTL, 0);
    is_there.then(|| core::array::from_fn(|index| rdmsr(OP_RIP + index as u32)))
}

/// A sample of `mixed` whose count of ops begins at `start`.
fn sample_of_mixed(start: u64, rounds: u64) -> Option<Sample> {
    let control = COUNTS_OPS | start << 32 | 0x40;
    sample(control, &raw const mixed as u64, rounds, memory())
}

fn offset([ip, ..]: &Sample) -> u64 {
    ip.wrapping_sub(&raw const mixed as u64)
}

/// Runs every check of this module.
pub fn run_all(report: &mut CheckReport) {
    if cpuid(0x8000_0001, 0)[2] >> 10 & 1 == 0 {
        return;
    }
    registers(report);
    every_op(report);
    misses(report);
    if is_zen4() {
        filter(report);
    }
    interrupt(report);
    of_cycles(report);
    fetches(report);
}

fn registers(report: &mut CheckReport) {
    let eax = cpuid(0x8000_001b, 0)[0];
    report.equal("IBS: leaf 8000_001BH: valid, and ops", (eax & 0b101).into(), 0b101);
    for rule in [
        Reads(IBS_CTL, 1 << 8),
        RefusesWrite(IBS_CTL, 0),
        Holds(OP_CTL, 0x07ff_ffff_07ec_ffff, 0x07ff_ffff_07ec_ffff),
        RefusesWrite(OP_CTL, 1 << 27),
        RefusesWrite(OP_CTL, 1 << 63),
        Holds(OP_RIP, 0x1234, 0x1234),
        Holds(BR_TARGET, 0x1234, 0x1234),
    ] {
        check(report, rule);
    }
}

/// Checks that samples a few ops apart have each op of the loop, and what each op did.
fn every_op(report: &mut CheckReport) {
    let (mut seen, mut wrong) = ([0_u64; 4], 0);
    for start in 0..64 {
        let found = sample_of_mixed(start, 1_000);
        let place = found.and_then(|found| OPS.iter().position(|at| *at == offset(&found)));
        match (found, place) {
            (Some(found), Some(place)) => {
                seen[place] += 1;
                wrong += u64::from(!is_right(&found));
            }
            _ => wrong += 1,
        }
    }
    report.equal("IBS: samples elsewhere, or wrong", wrong, 0);
    for (at, seen) in OPS.iter().zip(seen) {
        report.within(format_args!("IBS: samples of the op at {at}"), seen, 6, 26);
    }
}

/// Returns whether a sample has what its op of the loop did.
fn is_right(sample: &Sample) -> bool {
    let [_, data1, _, data3, address] = *sample;
    let (is_branch, is_taken, is_fused) =
        (data1 >> 37 & 1 == 1, data1 >> 35 & 1 == 1, data1 >> 39 & 1 == 1);
    let kind = (data3 & 0b11, address.wrapping_sub(memory()));
    match offset(sample) {
        LOAD => kind == (0b01, 0) && data3 >> 22 & 0xf == 4 && !is_branch,
        STORE => kind == (0b10, 8) && data3 >> 22 & 0xf == 4 && !is_branch,
        TEST => kind.0 == 0 && is_branch && is_fused && !is_taken,
        _ => kind.0 == 0 && is_branch && is_fused && is_taken,
    }
}

/// Checks the samples of loads that memory serves, among three ops of a round.
fn misses(report: &mut CheckReport) {
    let (mut loads, mut right) = (0, 0);
    for start in 0..12 {
        let from = UNTOUCHED + start * APART;
        let control = COUNTS_OPS | start << 32 | 0x20;
        let found = sample(control, &raw const lone_loads as u64, 200, from);
        let Some([ip, times, source, data3, address]) = found else { continue };
        if ip != &raw const lone_loads as u64 {
            continue;
        }
        loads += 1;
        let (latency, retired) = (data3 >> 32 & 0xffff, times >> 16 & 0xffff);
        let missed = 1 << 7 | 1 << 20;
        let is_here = (0..200).any(|load| address == from + STRIDE * load);
        let is_right = data3 & missed == missed
            && source & 7 == 3
            && (100..2_000).contains(&latency)
            && retired > latency
            && is_here;
        right += u64::from(is_right);
    }
    report.within("IBS of misses: samples of the load", loads, 1, 11);
    report.equal("IBS of misses: right", right, loads);
}

/// Checks that the filter by the last level leaves loads from memory alone.
fn filter(report: &mut CheckReport) {
    let control = COUNTS_OPS | L3_MISS | 1;
    let found = sample(control, &raw const mixed as u64, 1_000, memory());
    report.equal("IBS with the filter: samples without misses", found.is_some().into(), 0);
    let from = UNTOUCHED + 16 * APART;
    let found = sample(control, &raw const lone_loads as u64, 200, from);
    let is_load = found.is_some_and(|[ip, ..]| ip == &raw const lone_loads as u64);
    report.equal("IBS with the filter: a sample of the load", is_load.into(), 1);
}

/// Checks that a sample interrupts once, and that no other follows while it is there.
fn interrupt(report: &mut CheckReport) {
    let taken = || kernel::TAKEN[PMI_VECTOR as usize].load(Relaxed);
    apic::apic_write(apic::LVT_PERFORMANCE, PMI_VECTOR.into());
    let before = taken();
    let found = sample_of_mixed(0, 10_000);
    report.equal("IBS: one interrupt for a sample", taken() - before, 1);
    report.equal("IBS: the sample is there", found.is_some().into(), 1);
    wrmsr(OP_CTL, COUNTS_OPS | VALID | ENABLE | 0x40);
    in_ring3_interrupted(&raw const mixed as u64, 1_000, memory());
    report.equal("IBS: no interrupt while a sample is there", taken() - before, 1);
    wrmsr(OP_CTL, 0);
    apic::apic_write(apic::LVT_PERFORMANCE, apic::LVT_MASKED);
}

/// Checks that in x2APIC mode the interrupt is that of the first entry of the extended local vector
/// table.
pub fn in_x2apic(report: &mut CheckReport) {
    if cpuid(0x8000_0001, 0)[2] >> 10 & 1 == 0 {
        return;
    }
    report.equal("x2APIC: extended space", (apic::apic_read(0x30) >> 31).into(), 1);
    report.equal("x2APIC: extended entries", (apic::apic_read(0x400) >> 16 & 0xff).into(), 4);
    let taken = || kernel::TAKEN[PMI_VECTOR as usize].load(Relaxed);
    for (entry, interrupts) in [(apic::LVT_MASKED, 0), (PMI_VECTOR.into(), 1)] {
        apic::apic_write(EXTENDED_LVT, entry);
        report.equal(
            "x2APIC: extended entry 0",
            apic::apic_read(EXTENDED_LVT).into(),
            entry.into(),
        );
        let before = taken();
        let found = sample_of_mixed(0, 10_000);
        report.equal("IBS in x2APIC mode: a sample", found.is_some().into(), 1);
        report.equal("IBS in x2APIC mode: interrupts", taken() - before, interrupts);
    }
    apic::apic_write(EXTENDED_LVT, apic::LVT_MASKED);
}

fn of_cycles(report: &mut CheckReport) {
    let inside = (0..16)
        .filter_map(|start| sample(start << 32 | 0x80, &raw const mixed as u64, 10_000, memory()))
        .filter(|found| OPS.contains(&offset(found)) && is_right(found))
        .count();
    report.equal("IBS of cycles: samples of the loop", inside as u64, 16);
}

/// Checks samples of fetches, some lines apart, from a chain of lines that the L1 has.
fn fetches(report: &mut CheckReport) {
    let start = &raw const ibs_lines as u64;
    let (mut right, mut lines) = (0, 0_u64);
    for maximum in 64..80 {
        wrmsr(FETCH_CTL, FETCH_ENABLE | maximum);
        in_ring3_interrupted(start, 100, 0);
        let control = rdmsr(FETCH_CTL);
        wrmsr(FETCH_CTL, 0);
        let [linear, physical] = [FETCH_LIN_AD, FETCH_PHYS_AD].map(rdmsr);
        let line = linear.wrapping_sub(start) >> 6;
        // Complete, with a physical address; no miss of the L1 or of a TLB.
        let fields = control >> 50 & 0b111;
        right += u64::from(control & FETCH_VALID != 0 && fields == 0b101 && control >> 55 & 1 == 0);
        right += u64::from(linear == physical && line < 64 && linear.is_multiple_of(64));
        lines |= 1_u64.checked_shl(line as u32).unwrap_or(0);
    }
    report.equal("IBS of fetches: right", right, 2 * 16);
    report.within("IBS of fetches: lines", lines.count_ones().into(), 2, 16);
}
