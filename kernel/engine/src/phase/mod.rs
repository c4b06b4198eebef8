//! Phases of a program by its bottlenecks, on line (paper 004, sections V to VII).
//!
//! At the end of an interval, counts of events become a vector of eleven costs with error bars
//! ([`cost`]); the vector gets a class, the *phase* ([`classify`]); predictors predict the next
//! phase ([`predict`]); a detector finds the interval at which the program changed ([`change`]);
//! and the penalties adapt to the program ([`calibrate`]). A [`Tracker`] does all of it for one
//! session, from its slices as they are folded.
//!
//! Integers only; nothing allocates after [`Tracker::new`], and each step is bounded by constants:
//! [`MAX_TERMS`] events, [`tally_abi::phase::MAX_PHASES`] classes, and tables of fixed size.

pub mod calibrate;
pub mod change;
pub mod classify;
pub mod cost;
mod fixed;
pub mod predict;
mod sums;
mod tracker;
mod weighed;

pub use self::{
    calibrate::Calibration,
    classify::{Class, Classes},
    cost::{Cost, Counted, Estimate, Formula, MAX_TERMS, Model, Vector},
    predict::{Predictors, Predicts},
    tracker::{Ended, Place, Tracker},
};
