//! PEBS of format 6: counters without legacy registers, values of counters, and retire latencies.

use crate::{
    debug_store::{
        ADAPTIVE, BASIC, DATA_CFG, FIXED, FIXED_CTRL, INSTRUCTIONS, PEBS_ENABLE, RETIRE, TAKEN,
        expect_instructions, filled, prepare, run, set_area, word,
    },
    exactness::{memory, mixed},
    kernel::in_ring3_interrupted,
    lone_loads::{UNTOUCHED, lone_loads},
    machine::{rdmsr, wrmsr},
    report::CheckReport,
    vendor::{EN, USR, VendorPmu},
    version_6,
};

/// Distance of the memory of the checks from that of others'.
const APART: u64 = 6 << 20;

/// Runs every check of this module.
pub fn run_all(report: &mut CheckReport, vendor: &VendorPmu) {
    highest_counter(report, vendor);
    values(report, vendor);
    retire_latencies(report, vendor);
}

/// Checks that the highest counter, which has no legacy registers, has records.
fn highest_counter(report: &mut CheckReport, vendor: &VendorPmu) {
    let [general, _] = version_6::counters();
    let (last, register) = (general - 1, 0x1900 + 4 * (general - 1));
    prepare(4096, 4096, 0);
    set_area(8 + last as usize, 61_u64.wrapping_neg());
    wrmsr(register, 61_u64.wrapping_neg() & vendor.counter_mask());
    wrmsr(register + 1, INSTRUCTIONS | USR | EN);
    run(vendor, 1 << last, 1_000);
    wrmsr(register + 1, 0);
    expect_instructions(report, "PEBS, highest counter", 62, 6_001 / 62);
    report.equal("PEBS: the third word is the highest counter", word(2), 1 << last);
}

/// Checks the group of counters' values: of a counter of branches, and of fixed counter 0, which
/// counts instructions, beside that of the record.
fn values(report: &mut CheckReport, vendor: &VendorPmu) {
    const WORDS: usize = BASIC + 2 + 3;
    prepare(4096, 4096, 60);
    wrmsr(DATA_CFG, 1 << 4 | 0b11 << 32 | 1 << 48);
    wrmsr(FIXED, 0);
    wrmsr(FIXED_CTRL, 0b10);
    vendor.program(1, 0, TAKEN | USR | EN);
    vendor.program(0, 60_u64.wrapping_neg(), INSTRUCTIONS | ADAPTIVE | USR | EN);
    wrmsr(PEBS_ENABLE, 1);
    vendor.enable(1 << 32 | 0b11);
    in_ring3_interrupted(&raw const mixed as u64, 1_000, memory());
    vendor.enable(0);
    wrmsr(PEBS_ENABLE, 0);
    wrmsr(FIXED_CTRL, 0);
    wrmsr(DATA_CFG, 0);
    let records = filled() / WORDS;
    report.equal("PEBS with values: records", records as u64, 6_001 / 60);
    let reset = 60_u64.wrapping_neg() & vendor.counter_mask();
    let is_right = |record: usize| {
        let (at, rounds) = (record * WORDS, 10 * (record as u64 + 1));
        // The last round leaves the loop.
        let taken = rounds.min(999);
        let values = [4, 5, 6, 7, 8].map(|word_of| word(at + word_of));
        word(at) & !RETIRE == (8 * WORDS as u64) << 48 | 1 << 4
            && values == [1 << 32 | 0b11, 0, reset, taken, 6 * rounds]
    };
    let right = (0..records).filter(|record| is_right(*record)).count();
    report.equal("PEBS with values: right", right as u64, records as u64);
}

/// Checks that the retire latencies of all instructions of a loop add up to its cycles, and that
/// loads from memory have most of them.
fn retire_latencies(report: &mut CheckReport, vendor: &VendorPmu) {
    let loads = (&raw const lone_loads as u64, 200, UNTOUCHED + APART);
    let [cycles, sum, of_loads] = latencies(vendor, loads);
    report.within(
        "PEBS, retire latency: of loads and the rest",
        sum,
        cycles * 9 / 10,
        cycles * 11 / 10,
    );
    report.within("PEBS, retire latency: of loads from memory", of_loads, sum / 2, sum);
    let [cycles, sum, _] = latencies(vendor, (&raw const mixed as u64, 150, memory()));
    report.within("PEBS, retire latency: of a loop", sum, cycles * 9 / 10, cycles * 11 / 10);
}

/// Runs rounds of code with a record of every instruction. Returns the cycles, the sum of the
/// retire latencies, and the sum of those of the code's first instruction.
fn latencies(vendor: &VendorPmu, (entry, rounds, data): (u64, u64, u64)) -> [u64; 3] {
    prepare(4096, 4096, 1);
    vendor.program(0, 1_u64.wrapping_neg(), INSTRUCTIONS | USR | EN);
    wrmsr(FIXED + 1, 0);
    wrmsr(FIXED_CTRL, 0b10_0000);
    wrmsr(PEBS_ENABLE, 1);
    vendor.enable(1 << 33 | 1);
    in_ring3_interrupted(entry, rounds, data);
    vendor.enable(0);
    wrmsr(PEBS_ENABLE, 0);
    wrmsr(FIXED_CTRL, 0);
    let all =
        || (0..filled() / BASIC).map(|record| [word(BASIC * record), word(BASIC * record + 1)]);
    let latency = |first: u64| first >> 32 & 0xffff;
    let of_first = all().filter(|[_, address]| *address == entry);
    let sums = [
        all().map(|[first, _]| latency(first)).sum(),
        of_first.map(|[first, _]| latency(first)).sum(),
    ];
    [rdmsr(FIXED + 1), sums[0], sums[1]]
}
