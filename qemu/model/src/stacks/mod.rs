//! CPI stacks by hardware counters: the five counter architectures of paper 001 (Eyerman, Eeckhout,
//! Karkhanis and Smith, "A performance counter architecture for computing accurate CPI components",
//! ASPLOS 2006), side by side, from the out-of-order pipeline's time stamps.
//!
//! There is a file for each: `naive`, `non_speculative`, `power5`, `fmt`, `sfmt`. The first two are
//! products of counts; the others are charged as the pipeline runs. The pipeline reports events and
//! their cycles through [`Watch`]. Its implementation [`Stacks`] converts them to time spans and
//! passes these to the architectures; the implementation for `()` does nothing and costs nothing.
//!
//! Every architecture has the same components ([`Component`]); the rest of the cycles is its base,
//! which can be negative for the naive ones.

mod architecture;
mod component;
mod fmt;
mod naive;
mod non_speculative;
mod power5;
mod sfmt;
mod spans;
mod timeline;
mod watch;

pub use self::{architecture::Architecture, component::Component};
pub(crate) use self::{
    architecture::charge_products,
    timeline::Stacks,
    watch::{Dispatched, FetchWait, Mispredicted, Watch},
};
