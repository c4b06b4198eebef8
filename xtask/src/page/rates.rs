//! Rates of a session's events over time, as pictures.

use super::chart::Chart;
use crate::{
    Result,
    picture::{self, Band, RateInterval},
    report::{Interval, IntervalEvent},
};

/// Makes a picture for each event except the instructions, by which the others are divided.
///
/// # Errors
/// A picture cannot be drawn.
pub(super) fn charts(intervals: &[Interval], bands: &[Band], session: usize) -> Result<Vec<Chart>> {
    let events = intervals.first().map(|first| first.events.as_slice()).unwrap_or_default();
    let is_other = |(place, _): &(usize, &IntervalEvent)| {
        !intervals.iter().all(|of| of.events[*place].estimate == Some(of.instructions))
    };
    let charts = events.iter().enumerate().filter(is_other).filter_map(|(place, event)| {
        chart((intervals, bands), place, event, format!("rate-{session}-{place}")).transpose()
    });
    charts.collect()
}

fn chart(
    (intervals, bands): (&[Interval], &[Band]),
    place: usize,
    event: &IntervalEvent,
    id: String,
) -> Result<Option<Chart>> {
    let rates: Vec<RateInterval> = intervals.iter().map(|of| rate(of, &of.events[place])).collect();
    let known = || rates.iter().filter_map(|rate| rate.rate);
    let (lowest, highest) = (known().reduce(f64::min), known().reduce(f64::max));
    let Some((lowest, highest)) = lowest.zip(highest) else { return Ok(None) };
    let unknown = rates.len() - known().count();
    let mut description =
        format!("{lowest:.3} to {highest:.3} in 1,000 instructions, in {} intervals", rates.len());
    if unknown > 0 {
        description += &format!("; {unknown} of them were not measured");
    }
    let line = picture::rate_line(&rates, bands)?;
    Ok(Chart::of(&line, id, event.name.clone(), description))
}

/// An event's rate per 1,000 instructions.
fn rate(interval: &Interval, event: &IntervalEvent) -> RateInterval {
    let per_1000 = |count: f64| 1_000.0 * count / interval.instructions.max(1) as f64;
    RateInterval {
        start_cycles: interval.start_cycles,
        cycles: interval.cycles,
        rate: event.estimate.map(|count| per_1000(count as f64)),
        half_width: per_1000(event.half_width_95.unwrap_or_default()),
    }
}
