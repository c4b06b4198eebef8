//! Breakdown of a program's cycles from counts: dispatch slots as a tree by the vendors' top-down
//! formulas, whose parts add up to all cycles. A second view divides the cycles in which no
//! instruction retired (paper 000, section 4).
//!
//! Pure logic, for the host's reports and for programs that read their own counts.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod closing;
mod count;
mod cycles;
mod decoders;
mod first;
mod formulas;
mod groups;
mod intensity;
mod metrics;
mod next;
mod ports;
mod render;
mod stacks;
mod stalls;
mod structure;
mod tree;

pub use self::{
    count::{Count, Counts, INDEPENDENT, SumError},
    cycles::{Breakdown, break_down, largest_loss_of},
    intensity::Intensity,
    metrics::{MetricValue, Metrics},
    render::wrapped,
    stacks::{
        ALL as STACKS, Stack, missing as no_stack, of as stack_of, short_of as short_stack_of,
        stalls_of,
    },
    structure::{Structure, added_lines, added_share, likely_added},
    tree::{CyclePart, cycle_parts, slot_tree},
};
