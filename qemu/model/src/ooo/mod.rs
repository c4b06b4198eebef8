//! The out-of-order pipeline, instruction by instruction, by timestamps.
//!
//! For each instruction, in program order, the engine computes the cycles at which it is fetched,
//! dispatched, issued, complete and retired: each the maximum of what the instruction waits for. A
//! structure is represented by the times at which its entries become free (`queue`), a port by the
//! cycles in which it is in use (`ports`), a register by the cycle at which it is ready. Nothing
//! steps through cycles, so time without events costs nothing.
//!
//! Every cycle between two retirements is charged to one cause: until the oldest instruction is
//! dispatched, to what delayed its fetch or dispatch; then to the parts of its execution in their
//! order. All older instructions have retired by then, so it waits only for itself (`Steps`). This
//! is the "first event that lets retirement resume" of Azimi, Stumm and Wisniewski (ICS 2005,
//! section 4).
//!
//! [`Engine`] is defined in `state`; `data` and `run` are its operations.

mod data;
mod memory;
mod ports;
mod queue;
mod run;
mod state;
mod steps;

pub(crate) use self::state::{Engine, Touch};
