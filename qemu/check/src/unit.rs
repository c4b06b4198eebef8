//! The counter unit, if the virtual PMU has one: its registers, its counts compared with those of
//! general counters, and a threshold.

use core::sync::atomic::Ordering::Relaxed;

use tally_abi::vpmu::Op;

use crate::{
    apic,
    exactness::{memory, mixed},
    kernel::{self, in_ring3_interrupted},
    machine::{PMI_VECTOR, rdmsr, vpmu, wrmsr},
    report::CheckReport,
    rule::{
        Rule::{Holds, Reads, RefusesIndex, RefusesRead, RefusesWrite},
        check,
    },
    rules,
    vendor::{EN, INT, USR, VendorPmu},
};

const CONFIG: u32 = 0x4f00_0000;
const COUNT: u32 = 0x4f00_0100;
const THRESHOLD: u32 = 0x4f00_0200;
const CONTROL: u32 = 0x4f00_0300;
const CAPABILITIES: u32 = 0x4f00_0301;
const STATUS: u32 = 0x4f00_0304;
/// CONFIG: the signal mode.
const LEVEL_LOW: u64 = 2 << 40;
/// CONFIG: read-only bit, set if the model has the event in the mode.
const SUPPORTED: u64 = 1 << 63;
/// Number of counters.
const COUNTERS: u32 = 256;
/// Rounds of the measured loop, and its instructions.
const ROUNDS: u64 = 1_000;
const INSTRUCTIONS: u64 = 6 * ROUNDS + 1;

/// Runs every check of this module.
pub fn run(report: &mut CheckReport) {
    let counters = vpmu(Op::Unit, 0)[0];
    if counters == 0 {
        check(report, RefusesIndex(COUNT));
        return;
    }
    let vendor = VendorPmu::here();
    report.equal("the unit's counters", counters.into(), COUNTERS.into());
    registers(report, &vendor);
    counts(report, &vendor);
    threshold(report, &vendor);
}

fn registers(report: &mut CheckReport, vendor: &VendorPmu) {
    let instructions = vendor.events[0] | USR | EN;
    for rule in [
        Reads(CAPABILITIES, 0x0100_100c_0100),
        RefusesWrite(CAPABILITIES, 0),
        Holds(CONFIG + 255, instructions, instructions | SUPPORTED),
        Holds(CONFIG + 255, instructions | LEVEL_LOW, instructions | LEVEL_LOW),
        RefusesWrite(CONFIG, 5 << 40),
        RefusesWrite(CONFIG, 1 << 36),
        Holds(COUNT + 255, u64::MAX, u64::MAX),
        Holds(THRESHOLD + 255, !0xfff, !0xfff),
        RefusesWrite(THRESHOLD, 1),
        Holds(CONTROL, 1, 1),
        RefusesWrite(CONTROL, 2),
        RefusesRead(CONTROL + 2),
        RefusesWrite(STATUS + 4, 0),
        RefusesIndex(COUNT + COUNTERS),
    ] {
        check(report, rule);
    }
}

/// Checks that all counters count like the general counters, on the same code.
fn counts(report: &mut CheckReport, vendor: &VendorPmu) {
    let events = &vendor.events[..4];
    for index in 0..COUNTERS {
        wrmsr(CONFIG + index, events[index as usize % 4] | USR | EN);
    }
    let general = vendor.count(events, USR, || {
        wrmsr(CONTROL, 1);
        in_ring3_interrupted(&raw const mixed as u64, ROUNDS, memory());
        wrmsr(CONTROL, 0);
        in_ring3_interrupted(&raw const mixed as u64, 0, memory());
    });
    let stopped = vendor.count(events, USR, || {
        in_ring3_interrupted(&raw const mixed as u64, 0, memory());
    });
    let expected = |index: u32| general[index as usize % 4] - stopped[index as usize % 4];
    let differ = (0..COUNTERS).filter(|index| rdmsr(COUNT + index) != expected(*index));
    report.equal("counters of the unit that differ", differ.count() as u64, 0);
    report.equal("the unit counts instructions", rdmsr(COUNT), INSTRUCTIONS);
    let read = rules::rdpmc_in_ring3(COUNT + 252);
    report.equal("ring 3 reads the unit by RDPMC", read, INSTRUCTIONS);
    for index in 0..COUNTERS {
        wrmsr(CONFIG + index, 0);
        wrmsr(COUNT + index, 0);
    }
}

/// Checks a threshold at 4096 + 500 instructions, and one that is not reached.
fn threshold(report: &mut CheckReport, vendor: &VendorPmu) {
    let taken = || kernel::TAKEN[PMI_VECTOR as usize].load(Relaxed);
    let before = taken();
    apic::apic_write(apic::LVT_PERFORMANCE, PMI_VECTOR.into());
    for (index, events) in [(100, 4_096 + 500), (101, INSTRUCTIONS + 1)] {
        wrmsr(CONFIG + index, vendor.events[0] | USR | EN | INT);
        wrmsr(COUNT + index, 4_096 - events % 4_096);
        wrmsr(THRESHOLD + index, events & !0xfff);
    }
    wrmsr(CONTROL, 1);
    in_ring3_interrupted(&raw const mixed as u64, ROUNDS, memory());
    wrmsr(CONTROL, 0);
    apic::apic_write(apic::LVT_PERFORMANCE, u32::from(PMI_VECTOR) | apic::LVT_MASKED);
    report.equal("the threshold raises one interrupt", taken() - before, 1);
    report.equal("status has the counter", rdmsr(STATUS + 1), 1 << (100 - 64));
    let (at, first) = (kernel::PMI_RIP.load(Relaxed), &raw const mixed as u64);
    report.within("it is taken within the loop", at, first, first + 32);
    report.equal("the counter continues", rdmsr(COUNT + 100), 4_096 - 500 + INSTRUCTIONS);
    check(report, Holds(STATUS + 1, 1 << (100 - 64), 0));
    for index in 100..102 {
        wrmsr(CONFIG + index, 0);
    }
}
