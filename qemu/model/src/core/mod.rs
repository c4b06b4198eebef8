//! A processor core: fetch, data access, retirement, and the time that they take.
//!
//! Caches, TLBs and predictors are modelled access by access in program order. Their results cost
//! time by one of two pipelines: `interval` (costs from samples, in `learning`) or out of order
//! (`crate::ooo`). Time is kept in slots: the pipeline's width for each cycle.
//!
//! [`Core`] is defined in `state`. The interval pipeline's knowledge is in `activity`,
//! `block_cost`, `exposure`, `learner` and `sampler`, the state of fetch on a wrong path in `path`
//! and `decoded`, of a repeated string instruction in `string_run`.
//! The other files are the core's operations, each importing only from those before it: `learning`,
//! `levels`, `fetch`, `wrong_path`, `branches`, `data`, `strings`, `deliver`, `retire`, `system`.

mod activity;
mod block_cost;
mod branches;
mod data;
mod decoded;
mod deliver;
mod exposure;
mod fetch;
mod learner;
mod learning;
mod levels;
mod path;
mod retire;
mod sampler;
mod state;
mod string_run;
mod strings;
mod system;
#[cfg(test)]
mod tests;
mod uncosted;
mod wrong_path;

pub use self::state::Core;
#[cfg(test)]
pub(crate) use self::state::{LINE_BITS, WALK_LINE_BITS};
