//! A run as one HTML page, which opens without a network and without JavaScript: what `--json`
//! prints, for the eye, with the JSON object itself inside.

mod chart;
mod diff;
mod rates;
mod run;
mod template;
#[cfg(test)]
mod tests;

pub use self::{
    diff::render_diff,
    run::{render, write},
    template::object,
};
