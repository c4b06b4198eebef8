//! Lines with values computed from counts: metrics in the format of `perf stat -M` for those
//! without an event, and the parts of a breakdown.

use alloc::{format, string::String};

use tally_breakdown::{CyclePart, MetricValue};

use super::line::At;

/// Columns of a count with its unit and event.
const EVENT: usize = 56;
/// Columns of a metric's unit and name.
const LABEL: usize = 36;

/// Returns perf's unit and name of a metric.
fn label(of: &MetricValue) -> String {
    format!("{}  {}", of.unit, of.metric)
}

/// Formats the value and the half width of its 95 % interval with perf's decimals; those of another
/// unit than percent with four digits, or all of a count and of a large number. An unknown value is
/// `nan`, as in perf.
fn numbers(of: &MetricValue) -> [String; 2] {
    let MetricValue { unit, value, half_width_95: bar, .. } = *of;
    if value.is_nan() {
        return ["nan".into(), "nan".into()];
    }
    let decimals = match value.abs().max(bar) {
        _ if unit == "%" => return [format!("{value:.1}"), format!("{bar:.2}")],
        _ if !unit.contains('/') => 0,
        size if size < 10.0 => 3,
        size if size < 1_000.0 => 1,
        _ => 0,
    };
    [value, bar].map(|number| format!("{number:.decimals$}"))
}

/// Formats perf's text, with the half width of the 95 % interval in the value's unit.
pub fn text(of: &MetricValue, at: At) -> String {
    let (at, [value, bar]) = (at.text(), numbers(of));
    format!("{at}{:EVENT$} # {value:>8} {:<LABEL$}  +- {bar}", "", label(of))
}

/// Formats perf's fields; those of a count are empty.
pub fn fields(of: &MetricValue, at: At, has_spread: bool, separator: &str) -> String {
    let at = at.field(separator);
    // Count, unit, event, the spread if there is one, time and its share.
    let empty = separator.repeat(5 + usize::from(has_spread));
    let [value, bar] = numbers(of);
    format!("{at}{empty}{value}{separator}{}{separator}{bar}", label(of))
}

/// Formats perf's JSON.
pub fn json(of: &MetricValue, at: At) -> String {
    let (at, value) = (at.json(), of.value);
    let [value, bar] = if value.is_nan() {
        ["nan".into(), "null".into()]
    } else {
        [format!("{value:.6}"), format!("{:.4}", of.half_width_95)]
    };
    format!(
        "{{{at}\"metric-value\" : \"{value}\", \"metric-unit\" : \"{}\", \"half-width-95\" : \
         {bar}}}",
        label(of)
    )
}

/// Formats a part of the cycles as JSON: cycles, their share in percent, and the half width in
/// cycles.
pub fn part_json(of: &CyclePart) -> String {
    let CyclePart { name, cycles, share, half_width_95, .. } = of;
    format!(
        "{{\"cycles-in\" : \"{name}\", \"cycles\" : {cycles:.0}, \"share\" : {:.4}, \
         \"half-width-95\" : {half_width_95:.1}}}",
        100.0 * share
    )
}
