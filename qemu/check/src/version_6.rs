//! Perfmon version 6: CPUID leaf 23H, rows of registers from 1900H, and fields of selects (SDM vol.
//! 3, "Architectural Performance Monitoring Version 6").

use crate::{
    machine::{cpuid, rdmsr, rdpmc, wrmsr},
    report::CheckReport,
    rule::{
        Rule::{Holds, RefusesRead, RefusesWrite},
        check,
    },
    vendor::VendorPmu,
};

/// First register of the general counters' rows and of the fixed counters'; four registers each.
const GENERAL: u32 = 0x1900;
const FIXED: u32 = 0x1980;
/// Fields of an event select: the comparison for equality, and the second unit mask.
const EQUAL: u64 = 1 << 36;
const UMASK2: u64 = 0xff << 40;
/// Counters that registers of version 5 reach.
const LEGACY: u32 = 8;

/// Returns whether the processor has version 6.
pub fn is_here() -> bool {
    cpuid(0xa, 0)[0] & 0xff >= 6
}

/// The numbers of general and fixed counters, by leaf 23H.
pub fn counters() -> [u32; 2] {
    let [general, fixed, ..] = cpuid(0x23, 1);
    [general, fixed].map(u32::count_ones)
}

/// Checks the leaf.
pub fn leaf(report: &mut CheckReport) {
    report.within("leaf 0: leaf 23H exists", cpuid(0, 0)[0].into(), 0x23, u64::MAX);
    report.equal("leaf 7: leaf 23H is reported", (cpuid(7, 1)[0] >> 8 & 1).into(), 1);
    let [subleaves, fields, ..] = cpuid(0x23, 0);
    report.equal("leaf 23H: sub-leaves of counters", (subleaves & 0b11).into(), 0b11);
    report.equal("leaf 23H: selects have both new fields", (fields & 0b11).into(), 0b11);
    let [general, fixed] = counters();
    report.within("leaf 23H: general counters", general.into(), 1, 10);
    report.equal("leaf 23H: by bit", cpuid(0x23, 1)[0].into(), (1 << general) - 1);
    // Leaf 0AH has what all cores of a hybrid processor have.
    let [eax, _, _, edx] = cpuid(0xa, 0);
    report.within(
        "leaf 0AH: no more general counters",
        (eax >> 8 & 0xff).into(),
        1,
        general.into(),
    );
    report.within("leaf 0AH: no more fixed counters", (edx & 0x1f).into(), 0, fixed.into());
}

/// Checks the rows of all counters, beside the legacy registers of the first eight.
pub fn rows(report: &mut CheckReport) {
    let [general, fixed] = counters();
    (0..general).for_each(|index| row(report, index));
    for index in 0..fixed {
        let row = FIXED + 4 * index;
        wrmsr(row, 0x1234);
        let what = format_args!("{row:#x} is fixed counter {index}");
        report.equal(what, rdmsr(0x309 + index), 0x1234);
    }
    for row in [GENERAL + 4 * general, GENERAL + 4 * general + 1, FIXED + 4 * fixed] {
        check(report, RefusesRead(row));
        check(report, RefusesWrite(row, 0));
    }
}

/// Checks a general counter's row.
fn row(report: &mut CheckReport, index: u32) {
    let (counter, select) = (GENERAL + 4 * index, GENERAL + 4 * index + 1);
    let mask = VendorPmu::here().counter_mask();
    for rule in [
        Holds(counter, 0x8234_5678_9abc & mask, 0x8234_5678_9abc & mask),
        RefusesWrite(counter, mask + 1),
        Holds(select, EQUAL | UMASK2, EQUAL | UMASK2),
        RefusesWrite(select, 1 << 21),
        RefusesWrite(select, 1 << 32),
        RefusesWrite(select, 1 << 48),
    ] {
        check(report, rule);
    }
    wrmsr(counter, 0x5678 + u64::from(index));
    report.equal(format_args!("rdpmc {index} reads {counter:#x}"), rdpmc(index), rdmsr(counter));
    if index < LEGACY {
        let what = format_args!("{counter:#x} is legacy counter {index}");
        report.equal(what, rdmsr(0x4c1 + index), rdmsr(counter));
        wrmsr(0x186 + index, 0xc4);
        report.equal(format_args!("{select:#x} is its select"), rdmsr(select), 0xc4);
        wrmsr(select, 0);
    }
}

/// Checks that a processor before version 6 has none of it.
pub fn absent(report: &mut CheckReport) {
    report.equal("no leaf 23H", (cpuid(7, 1)[0] >> 8 & 1).into(), 0);
    for rule in [
        RefusesRead(GENERAL),
        RefusesWrite(GENERAL, 0),
        RefusesRead(FIXED),
        RefusesWrite(0x186, EQUAL),
        RefusesWrite(0x186, 1 << 40),
    ] {
        check(report, rule);
    }
}
