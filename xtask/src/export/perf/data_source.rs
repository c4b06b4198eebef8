//! perf's description of a memory access (`union perf_mem_data_src` of Linux's user API).

use tally_abi::access::{Access, Source};

/// Positions of the fields.
const LEVEL: u32 = 5;
const SNOOP: u32 = 19;
const LOCK: u32 = 24;
const TLB: u32 = 26;
const LEVEL_NUMBER: u32 = 33;
const REMOTE: u32 = 37;

/// `PERF_MEM_OP_NA`, `LOAD`, `STORE`.
const NO_ACCESS: u64 = 1;
const LOAD: u64 = 2;
const STORE: u64 = 4;
/// `PERF_MEM_LVL_NA`, `HIT`, `MISS` and levels.
const LEVEL_UNKNOWN: u64 = 1;
const HIT: u64 = 2;
const MISS: u64 = 4;
const L1: u64 = 8;
const FILL_BUFFER: u64 = 0x10;
const L2: u64 = 0x20;
const L3: u64 = 0x40;
const MEMORY: u64 = 0x80;
const REMOTE_MEMORY: u64 = 0x100;
const UNCACHED: u64 = 0x2000;
/// `PERF_MEM_SNOOP_NA`, `NONE`, `HITM`.
const SNOOP_UNKNOWN: u64 = 1;
const NO_SNOOP: u64 = 2;
const SNOOP_MODIFIED: u64 = 0x10;
/// `PERF_MEM_LOCK_NA`, `LOCKED`.
const LOCK_UNKNOWN: u64 = 1;
const LOCKED: u64 = 2;
/// `PERF_MEM_TLB_NA`, `HIT`, `MISS`, `L1`, `L2`.
const TLB_UNKNOWN: u64 = 1;
const TLB_HIT: u64 = 2 | 8 | 0x10;
const TLB_MISS: u64 = 4 | 0x10;
/// `PERF_MEM_LVLNUM_LFB`, `RAM`, `UNC`, `NA`.
const NUMBER_FILL_BUFFER: u64 = 0xc;
const NUMBER_MEMORY: u64 = 0xd;
const NUMBER_UNCACHED: u64 = 0x8;
const NUMBER_UNKNOWN: u64 = 0xf;

/// The word of a sample's access; without one, nothing is known.
pub(super) fn data_source(access: Option<&Access>) -> u64 {
    let Some(access) = access else {
        let unknown = LEVEL_UNKNOWN << LEVEL | SNOOP_UNKNOWN << SNOOP | LOCK_UNKNOWN << LOCK;
        return NO_ACCESS | unknown | TLB_UNKNOWN << TLB | NUMBER_UNKNOWN << LEVEL_NUMBER;
    };
    let (level, number) = match access.source {
        Source::L1 => (HIT | L1, 1),
        Source::FillBuffer => (HIT | FILL_BUFFER, NUMBER_FILL_BUFFER),
        Source::L2 => (HIT | L2, 2),
        Source::L3 | Source::OtherCore => (HIT | L3, 3),
        Source::Memory => (HIT | MEMORY, NUMBER_MEMORY),
        Source::Remote => (HIT | REMOTE_MEMORY, NUMBER_MEMORY),
        Source::Uncached => (HIT | UNCACHED, NUMBER_UNCACHED),
        Source::NotL1 => (MISS | L1, 1),
        Source::Unknown => (LEVEL_UNKNOWN, NUMBER_UNKNOWN),
    };
    let snoop = match access.source {
        Source::OtherCore => SNOOP_MODIFIED,
        Source::Unknown | Source::NotL1 => SNOOP_UNKNOWN,
        _ => NO_SNOOP,
    };
    let operation = if access.is_store { STORE } else { LOAD };
    let lock = if access.is_locked { LOCKED } else { LOCK_UNKNOWN };
    let tlb = if access.missed_tlb { TLB_MISS } else { TLB_HIT };
    let remote = u64::from(access.source == Source::Remote) << REMOTE;
    operation
        | level << LEVEL
        | snoop << SNOOP
        | lock << LOCK
        | tlb << TLB
        | number << LEVEL_NUMBER
        | remote
}
