//! What the programs share: their options, the events that they ask for by default, and the work.

#![no_std]

extern crate alloc;

pub mod options;
pub mod store;

use core::arch::x86_64::__cpuid;

use tally::events;

/// The default list for the processor that this runs on.
pub fn default_events() -> &'static str {
    events::default_list(__cpuid(1).eax)
}
