//! A run as one HTML page, which opens without a network and without JavaScript: the content of
//! `--json` for readers, with the JSON object itself inside.

mod by_code;
mod chart;
#[cfg(test)]
mod chromium;
mod cycles;
mod rates;
mod run;
mod samples;
mod template;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::samples::sampled;
pub use self::{
    run::{render, write},
    samples::Samples,
    template::{object, page},
};
