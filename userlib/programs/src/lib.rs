//! What the programs share: their options and the events that they ask for by default.

#![no_std]

extern crate alloc;

pub mod options;

use core::arch::x86_64::__cpuid;

/// Events that tell where an Intel server's cycles go, all in user mode.
const INTEL_EVENTS: &str = "\
    INST_RETIRED.ANY CPU_CLK_UNHALTED.THREAD CPU_CLK_UNHALTED.REF_TSC \
    UOPS_RETIRED.SLOTS BR_INST_RETIRED.ALL_BRANCHES BR_INST_RETIRED.COND_TAKEN \
    BR_INST_RETIRED.COND_NTAKEN BR_INST_RETIRED.NEAR_CALL BR_INST_RETIRED.NEAR_TAKEN \
    BR_MISP_RETIRED.ALL_BRANCHES BR_MISP_RETIRED.COND MEM_INST_RETIRED.ALL_LOADS \
    MEM_INST_RETIRED.ALL_STORES MEM_LOAD_RETIRED.L1_HIT MEM_LOAD_RETIRED.L1_MISS \
    MEM_LOAD_RETIRED.L2_HIT MEM_LOAD_RETIRED.L2_MISS MEM_LOAD_RETIRED.L3_HIT \
    L1D.REPLACEMENT DTLB_LOAD_MISSES.WALK_COMPLETED MEM_INST_RETIRED.STLB_MISS_LOADS \
    CYCLE_ACTIVITY.STALLS_TOTAL";

/// Events that tell where an AMD server's cycles go, all in user mode.
const AMD_EVENTS: &str = "\
    RETIRED_INSTRUCTIONS CYCLES_NOT_IN_HALT RETIRED_OPS RETIRED_BRANCH_INSTRUCTIONS \
    RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED RETIRED_TAKEN_BRANCH_INSTRUCTIONS \
    RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS RETIRED_NEAR_RETURNS \
    LS_DISPATCH.LD_DISPATCH LS_DISPATCH.STORE_DISPATCH";

/// The default list for the processor that this runs on.
pub fn default_events() -> &'static str {
    let vendor = __cpuid(0).ebx;
    if vendor == u32::from_le_bytes(*b"Auth") { AMD_EVENTS } else { INTEL_EVENTS }
}
