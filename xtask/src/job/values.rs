//! Values of options that several commands have.

use tally_abi::{
    Shares, Slice,
    boot::{Delivery, LogLevel, Takeover, TraceEvents},
    session::{MAX_SLICE, MIN_SLICE},
};

/// Budgets that limit the engine, in percent of the program's time.
const BUDGETS_PERCENT: std::ops::RangeInclusive<f64> = 0.0001..=50.0;
/// The value for an unlimited budget.
const NO_BUDGET_PERCENT: f64 = 100.0;

/// Converts percent to parts per million.
pub(super) fn ppm(percent: f64) -> u32 {
    (percent * 10_000.0) as u32
}

pub(super) fn percent(text: &str) -> std::result::Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    let is_known = BUDGETS_PERCENT.contains(&percent) || percent == NO_BUDGET_PERCENT;
    let why = "use 0.0001 to 50, or 100 for no limit";
    is_known.then_some(percent).ok_or_else(|| why.to_owned())
}

/// Parses `--slice`: a length as [`slice`], a number of instructions with an `i` behind it, or
/// `auto`.
///
/// # Errors
/// As [`slice`].
pub fn slice_option(text: &str) -> std::result::Result<Slice, String> {
    match Slice::parse(text) {
        Some(Slice::Auto) => Ok(Slice::Auto),
        Some(Slice::Instructions(number)) if number > 0 => Ok(Slice::Instructions(number)),
        _ => slice(text).map(Slice::Cycles),
    }
}

/// Parses the length of a slice in cycles, which is not 0. `Job::check` checks the range.
///
/// # Errors
/// The text is not a number, or 0: the range to use.
pub fn slice(text: &str) -> std::result::Result<u64, String> {
    let cycles: u64 = text.parse().map_err(|_| "it is not a number of cycles".to_owned())?;
    let why = || format!("use {MIN_SLICE} to {MAX_SLICE}");
    (cycles > 0).then_some(cycles).ok_or_else(why)
}

pub(super) fn shares(word: &str) -> std::result::Result<Shares, String> {
    Shares::parse(word).ok_or_else(|| "use planned, adaptive or paired".to_owned())
}

pub(super) fn delivery(word: &str) -> std::result::Result<Delivery, String> {
    Delivery::parse(word).ok_or_else(|| "use fixed or nmi".to_owned())
}

pub(super) fn takeover(word: &str) -> std::result::Result<Takeover, String> {
    Takeover::parse(word).ok_or_else(|| "use take or refuse".to_owned())
}

/// Checks the kinds of records of `--trace-events`.
pub(crate) fn trace_events(list: &str) -> std::result::Result<String, String> {
    let why = || "a list of syscalls, switches and signals, with commas between them".to_owned();
    TraceEvents::parse(list).map(|_| list.to_owned()).ok_or_else(why)
}

/// Parses the least severe level of the kernel's log.
pub(crate) fn level(name: &str) -> std::result::Result<LogLevel, String> {
    LogLevel::parse(name).ok_or_else(|| "error, warn, info, debug or trace".to_owned())
}
