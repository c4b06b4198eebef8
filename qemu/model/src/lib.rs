//! The machine behind the virtual PMU: what it counts, and how long things take.
//!
//! Pure and deterministic: no clock, no hashing by address of host memory, no allocation after
//! [`Core::new`] but for the accesses of a single instruction. One [`Core`] belongs to one virtual
//! CPU and may run on any thread that owns it; cores share nothing but, where asked, an [`Llc`]. It
//! is fed three things in the order in which they happen: a block's fetch ([`Core::fetch`]), each
//! memory access ([`Core::access`]), and how far a block got and where it went next
//! ([`Core::retire`]). It answers with [`Counts`] per [`Ring`], which only ever grow.
//!
//! Invariants: what is counted depends on the stream of instructions alone and not on how it was
//! cut into blocks. Between two calls no signal grows by more than [`GROWTH_PER_SLOT`] times the
//! growth of [`Core::clock`] plus one block's worth; the PMU's overflow check relies on it.

mod block;
mod branch;
mod cache;
mod core;
mod geometry;
mod llc;
mod ooo;
mod operation;
mod profiles;
mod signal;
mod tlb;

pub use self::{
    block::{Block, Branch, BranchKind, Insn, MAX_INSNS, Ring},
    core::{Access, Core},
    geometry::{Backend, Geometry, Latency, Level, Mode, Perfect, Pipeline, TlbShape, UnitShape},
    llc::Llc,
    operation::{Operation, Registers, Unit},
    signal::{Counts, STATIC_SIGNALS, Signal},
};

/// How many times any one signal can grow while the clock advances by one slot.
pub const GROWTH_PER_SLOT: u64 = 4;
