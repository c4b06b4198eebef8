//! The complete output of the commands on samples, for tests that read damaged traces.

use tally_abi::ExitStatus;

use super::{annotate, breakdown, history::history, report, script};
use crate::{
    Failure, Result,
    recording::{Recording, Symbolizer},
};

/// The output of the three commands for a trace, with every option that changes the counts.
pub(crate) fn all(of: &Recording, symbolizer: &Symbolizer) -> String {
    let of_function = report::How { inlined: true, children: true, threads: true };
    let ways = [report::How::default(), of_function];
    let reports = ways.map(|how| report::by_event(of, symbolizer, how)).concat();
    let mut text: String = reports.iter().map(report::OfEvent::to_string).collect();
    text += &script::text(of, symbolizer);
    for event in of.sampled_events() {
        text += &annotate::text(of, symbolizer, event).unwrap_or_default();
    }
    text += &history(of, symbolizer, None).map(|all| all.to_string()).unwrap_or_default();
    let by = [
        breakdown::ByCode::functions(of, symbolizer, true, None),
        breakdown::ByCode::lines(of, symbolizer, None),
    ];
    text + &by.iter().flatten().map(breakdown::ByCode::to_string).collect::<String>()
}

/// The cycles of functions by cause, with the truth of a file of `--vpmu blocks=FILE`.
///
/// # Errors
/// The text is no such file, or the trace has no samples of what cycles are lost to.
pub(crate) fn with_truth(of: &Recording, blocks: &str) -> Result<String> {
    let Some(truth) = breakdown::CodeTruth::parse(blocks) else {
        return Err(Failure::new(ExitStatus::BadTrace, "no file of --vpmu blocks=FILE"));
    };
    let symbolizer = Symbolizer::default();
    let by = breakdown::ByCode::functions(of, &symbolizer, false, Some(&truth))?;
    Ok(by.to_string())
}
