//! The lines that stand for the table where it is not printed.

use std::fmt::{self, Write};

use tally_abi::text::{Grouped, percent};

use super::{EventReport, SessionReport};

/// Writes how many of the sessions' counts are within their intervals, if there is a truth.
pub(super) fn write_judgement(
    text: &mut String,
    sessions: impl Iterator<Item = (usize, usize)>,
) -> fmt::Result {
    match sessions.fold((0, 0), |sum, (within, all)| (sum.0 + within, sum.1 + all)) {
        (_, 0) => Ok(()),
        (within, all) => writeln!(text, "{within} of {all} counts within ± 95 %; the truth: -v"),
    }
}

/// Writes the slices and the engine's share, and the events in short where no table has them.
pub(super) fn write_summary(text: &mut String, session: &SessionReport) -> fmt::Result {
    if session.breakdown.is_some() {
        let not_measured = session.events.iter().filter(|event| event.reason.is_some()).count();
        write!(text, "{} events", session.events.len())?;
        match judged(&session.events) {
            (_, 0) => {}
            (within, _) => write!(text, ", {within} within ± 95 %")?,
        }
        if not_measured > 0 {
            write!(text, ", {not_measured} not measured")?;
        }
        writeln!(text, "; all of them: -v")?;
    }
    let Some((slices, share)) = session.slices.zip(session.engine_share) else { return Ok(()) };
    let (slices, share) = (Grouped(slices), percent(share, false));
    writeln!(text, "{slices} slices; the engine took {share} of the time")
}

/// Numbers of counts within their intervals, and of counts whose truth is known.
pub(super) fn judged(events: &[EventReport]) -> (usize, usize) {
    let judged = events.iter().filter_map(EventReport::is_within);
    (judged.clone().filter(|is_within| *is_within).count(), judged.count())
}
