//! The debug store: its management area, its buffer, and loops that fill it with records.

use core::ptr::{addr_of_mut, read_volatile, write_volatile};

use crate::{
    exactness::{memory, mixed},
    kernel::in_ring3_interrupted,
    lone_loads::lone_loads,
    machine::{cpuid, rdmsr, wrmsr},
    report::CheckReport,
    vendor::{EN, USR, VendorPmu},
};

pub const DS_AREA: u32 = 0x600;
pub const PEBS_ENABLE: u32 = 0x3f1;
pub const DATA_CFG: u32 = 0x3f2;
pub const STATUS: u32 = 0x38e;
pub const STATUS_RESET: u32 = 0x390;
pub const FIXED_CTRL: u32 = 0x38d;
pub const FIXED: u32 = 0x309;
/// Event select: records have the groups of `MSR_PEBS_DATA_CFG`.
pub const ADAPTIVE: u64 = 1 << 34;
/// Events: retired instructions, loads, taken branches, loads that memory served.
pub const INSTRUCTIONS: u64 = 0xc0;
pub const TAKEN: u64 = 0x20c4;
pub const MISSES: u64 = 0x20d1;
pub const AUXILIARY: u64 = 0x8203;
/// Offsets of the instructions of a round of `mixed`: a load, a store, a test, a branch that is not
/// taken, a decrement, a branch that is.
pub const OFFSETS: [u64; 6] = [0, 3, 7, 10, 12, 15];
/// The retire latency in a record's first word, where records have one.
pub const RETIRE: u64 = 0xffff << 32;
/// Words of a record with the basic group, and with the memory group too.
pub const BASIC: usize = 4;
pub const WITH_MEMORY: usize = 8;

/// The management area, and the buffer.
static mut AREA: [u64; 64] = [0; 64];
static mut BUFFER: [u64; 4096] = [0; 4096];

pub fn word(index: usize) -> u64 {
    // SAFETY: the virtual PMU writes it between two instructions, and only this module reads it.
    unsafe { read_volatile(&raw const BUFFER[index]) }
}

pub fn buffer() -> u64 {
    &raw const BUFFER as u64
}

/// Words of the buffer that have records.
pub fn filled() -> usize {
    // SAFETY: as in `word`.
    let index = unsafe { read_volatile(&raw const AREA[5]) };
    (index - buffer()) as usize / 8
}

/// The offset in `mixed` of the instruction of a record.
pub fn offset(record: usize, words: usize) -> u64 {
    word(record * words + 1).wrapping_sub(&raw const mixed as u64)
}

/// Words that are cleared at the buffer's start.
pub const CLEARED: usize = 64;

pub fn set_area(index: usize, value: u64) {
    // SAFETY: as in `word`.
    unsafe { write_volatile(&raw mut AREA[index], value) };
}

/// Empties the buffer, with room and a threshold in words and the reset value of all counters.
pub fn prepare(room: usize, threshold: usize, period: u64) {
    let fields = [0, 8 * room as u64, 8 * threshold as u64];
    let area = addr_of_mut!(AREA);
    let words = &raw mut BUFFER;
    // SAFETY: as in `word`.
    (0..CLEARED).for_each(|index| unsafe { write_volatile(&raw mut (*words)[index], 0) });
    for index in 0..64 {
        let value = match index {
            4 => buffer(),
            5..8 => buffer() + fields[index - 5],
            _ => period.wrapping_neg(),
        };
        set_area(index, value);
    }
    wrmsr(DS_AREA, area as u64);
    wrmsr(STATUS_RESET, rdmsr(STATUS));
}

/// Events between an overflow of general counter 0 and its record.
pub fn late() -> u64 {
    let is_ice_lake = cpuid(1, 0)[0] >> 4 == 0x606a;
    is_ice_lake.into()
}

/// Runs rounds of `mixed` with general counters, each with its event, index and first period.
pub fn sample(vendor: &VendorPmu, counters: &[(u32, u64, u64)], rounds: u64) {
    let mask = counters.iter().fold(0, |mask, (index, ..)| mask | 1 << index);
    for (index, event, period) in counters {
        vendor.program(*index, period.wrapping_neg(), event | USR | EN);
    }
    run(vendor, mask, rounds);
}

pub fn run(vendor: &VendorPmu, mask: u64, rounds: u64) {
    run_code(vendor, mask, &raw const mixed as u64, rounds, memory());
}

pub fn run_code(vendor: &VendorPmu, mask: u64, entry: u64, rounds: u64, data: u64) {
    wrmsr(PEBS_ENABLE, mask);
    vendor.enable(mask);
    in_ring3_interrupted(entry, rounds, data);
    vendor.enable(0);
    wrmsr(PEBS_ENABLE, 0);
}

/// Checks that record `k` is at the instruction where `k * period` have retired.
pub fn expect_instructions(report: &mut CheckReport, what: &str, period: u64, records: usize) {
    report.equal(format_args!("{what}: records"), (filled() / BASIC) as u64, records as u64);
    let wrong = (0..filled() / BASIC)
        .filter(|k| offset(*k, BASIC) != OFFSETS[(((*k as u64 + 1) * period - 1) % 6) as usize])
        .count();
    report.equal(format_args!("{what}: records elsewhere"), wrong as u64, 0);
}

/// Number of records of loads from an address on that memory serves, by an event on the first of
/// `counters`; a second one has the auxiliary event.
pub fn records_of(vendor: &VendorPmu, (event, counters): (u64, u64), from: u64) -> usize {
    prepare(4096, 4096, 3);
    wrmsr(DATA_CFG, 1);
    let first = counters.trailing_zeros();
    vendor.program(first + 1, 0, AUXILIARY | USR | EN);
    vendor.program(first, 3_u64.wrapping_neg(), event | ADAPTIVE | USR | EN);
    run_code(vendor, counters, &raw const lone_loads as u64, 400, from);
    wrmsr(DATA_CFG, 0);
    filled() / WITH_MEMORY
}
