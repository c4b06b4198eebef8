//! Lines with values computed from counts: metrics in the format of `perf stat -M` for those
//! without an event, and the parts of a breakdown.

use alloc::{format, string::String};

use tally_breakdown::{CyclePart, MetricShare};

use super::line::At;

/// Columns of a count with its unit and event.
const EVENT: usize = 56;
/// Columns of a metric's unit and name.
const LABEL: usize = 36;

/// Returns perf's unit and name of a metric.
fn label(of: &MetricShare) -> String {
    format!("%  {}", of.metric)
}

/// Formats perf's text, with the half width of the 95 % interval in percent of the slots or cycles.
pub fn text(of: &MetricShare, at: At) -> String {
    let at = at.text();
    let [share, bar] = [of.share, of.half_width_95].map(|share| 100.0 * share);
    format!("{at}{:EVENT$} # {share:>8.1} {:<LABEL$}  +- {bar:.2}", "", label(of))
}

/// Formats perf's fields; those of a count are empty.
pub fn fields(of: &MetricShare, at: At, has_spread: bool, separator: &str) -> String {
    let at = at.field(separator);
    // Count, unit, event, the spread if there is one, time and its share.
    let empty = separator.repeat(5 + usize::from(has_spread));
    let [share, bar] = [of.share, of.half_width_95].map(|share| 100.0 * share);
    format!("{at}{empty}{share:.1}{separator}{}{separator}{bar:.2}", label(of))
}

/// Formats perf's JSON.
pub fn json(of: &MetricShare, at: At) -> String {
    let at = at.json();
    let [share, bar] = [of.share, of.half_width_95].map(|share| 100.0 * share);
    format!(
        "{{{at}\"metric-value\" : \"{share:.6}\", \"metric-unit\" : \"{}\", \"half-width-95\" : \
         {bar:.4}}}",
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
