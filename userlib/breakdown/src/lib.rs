//! Where a program's cycles go, from counts: a CPI stack (paper 000, section 5) from the events by
//! which the processor tells stalls apart, whose parts are all cycles, without a rest; beside it,
//! where the slots of dispatch go, by the vendors' top-down formulas.
//!
//! Pure logic, for the host's reports and for programs that look at their own counts.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod closing;
mod count;
mod cycles;
mod decoders;
mod formulas;
mod metrics;
mod ports;
mod render;
mod slots;
mod stacks;
mod structure;

pub use self::{
    count::{Count, Counts, INDEPENDENT, SumError},
    cycles::{Breakdown, CyclePart, break_down, cycle_parts},
    metrics::{MetricShare, Metrics},
    slots::SlotPart,
    stacks::{
        ALL as STACKS, Stack, missing as no_stack, of as stack_of, short_of as short_stack_of,
    },
    structure::{Structure, added_lines, added_share, likely_added},
};
