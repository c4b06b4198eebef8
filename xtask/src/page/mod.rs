//! A run as one HTML page, which opens without a network and without JavaScript: what `--json`
//! prints, for the eye, with the JSON object itself inside.

mod chart;
mod rates;
mod run;
mod template;
#[cfg(test)]
pub(crate) mod tests;

pub use self::{
    run::{render, write},
    template::{object, page},
};
