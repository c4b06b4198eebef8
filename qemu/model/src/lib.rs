//! The model of a processor behind the virtual PMU: counts of hardware events, and timing.
//!
//! The model is pure and deterministic: no clock, no hashing by address of host memory, no
//! allocation after [`Core::new`] except for the accesses of a single instruction. One [`Core`]
//! belongs to one vCPU and may run on any thread that owns it; cores share nothing except, on
//! request, an [`Llc`]. The caller reports three things in the order in which they happen: the
//! fetch of a block ([`Core::fetch`]), each memory access ([`Core::access`]), and how much of a
//! block ran and where execution continued ([`Core::retire`]). The results are [`Counts`] by
//! [`Privilege`], which never decrease.
//!
//! Invariants: the counts depend on the stream of instructions alone and not on how it is divided
//! into blocks, except for the time of the interval pipeline. Between two calls no signal grows by
//! more than [`Signal::growth_per_slot`] times the growth of [`Core::clock`] plus the counts of one
//! block; the PMU's overflow check relies on it.

mod access;
mod assist;
mod block;
mod branch;
mod cache;
mod code;
mod core;
pub mod cost;
mod counts;
mod decode;
mod geometry;
mod llc;
mod ooo;
mod operation;
mod oracle;
mod page;
mod perfect;
mod prefetch;
mod profiles;
mod recency;
mod signal;
mod stacks;
mod strings;
mod tlb;

pub use self::{
    access::{Access, DataAccess, FetchedLine, ServedBy},
    assist::Assist,
    block::{Block, Branch, BranchKind, Insn, MAX_INSNS, Privilege},
    code::{CODE_LINE_BYTES, CodeAt, CodeMemory},
    core::Core,
    counts::Counts,
    geometry::{
        Backend, BufferShape, CacheShape, DecodeShape, Geometry, LargeEntries, LargePages,
        LargeTlb, Latency, Pipeline, PipelineMode, TlbShape, UnitShape,
    },
    llc::Llc,
    operation::{Operation, RegisterSet, Unit},
    oracle::{CYCLE_PARTS, Charge, Events, Place, Rule},
    page::{PageSize, PageSizes},
    perfect::Perfect,
    prefetch::Prefetchers,
    profiles::is_equal,
    signal::{GROWTH_PER_SLOT, STATIC_SIGNALS, Signal},
    stacks::{Architecture, Component},
    strings::{StringKind, StringShape},
};
