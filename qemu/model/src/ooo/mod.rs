//! The out-of-order pipeline, instruction by instruction, by timestamps.
//!
//! For each instruction, in program order, the engine computes the cycles at which it is fetched,
//! dispatched, issued, complete and retired. Each is the maximum of the times of its inputs. For a
//! structure the engine stores the cycles at which its entries become free (`queue`), for a port
//! the cycles in which it is in use (`ports`), for a register the cycle at which it is ready. It
//! does not step through cycles, so cycles without events cost nothing.
//!
//! Every cycle between two retirements is charged to one cause. Until the oldest instruction is
//! dispatched, that is the cause of the delay of its fetch or dispatch. From then on it is the
//! present step of the instruction's execution, as all older instructions have retired (`Steps`).
//! IBM's POWER5 divides a gap in the same way. A second account charges each gap as a whole, when
//! retirement resumes, to the step that ended last (Azimi, Stumm and Wisniewski, ICS 2005, section
//! 5.1).
//!
//! Every slot of dispatch that no retired micro-operation uses has one cause too (`slots`).
//! Dispatch is ahead of retirement, which the clock follows: the slots in between get their causes
//! when the next instruction is dispatched, or when the pipeline is empty.
//!
//! Every cycle also has a number of micro-operations that execute in it, or a reason why none does
//! (`execution`). These counts follow dispatch, too.
//!
//! [`Engine`] is defined in `state`; `bundle`, `control`, `data`, `order` and `run` are its
//! operations.

mod bundle;
mod consult;
mod control;
mod data;
mod execution;
mod memory;
mod order;
mod ports;
mod queue;
mod run;
mod slots;
mod state;
mod steps;

pub(crate) use self::{
    control::Alone,
    state::{Engine, Touch},
};
