//! The processor as the kernel sees it: trap frames, descriptor tables, interrupt vectors, the
//! local interrupt controller, control registers, extended state and its count of cycles.
//!
//! This module does not use programs, the engine or the scheduler. The IDT and the assembly stubs
//! are in `entry`, because they lead to the handlers.

pub mod control;
pub mod cycles;
pub mod extended_state;
pub mod frame;
pub mod lapic;
pub mod segments;
pub mod vectors;
