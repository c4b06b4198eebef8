//! The samples of a run on its page: for each event that was sampled a flame graph and a table.

use serde::Serialize;

use super::by_code::Functions;
use crate::{
    Result,
    export::Stacks,
    recording::{Recording, Symbolizer},
    samples::{
        breakdown::{ByCode, CodeTruth},
        history::{History, history},
        report::{How, OfEvent, by_event},
    },
};

/// Width of a flame graph in pixels, if it is not scaled.
const WIDTH: usize = 1200;

/// The samples of one event.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sampled {
    #[serde(flatten)]
    of: OfEvent,
    /// Whether the samples have callers.
    has_callers: bool,
    /// Whether every sample is precise.
    is_precise: bool,
    /// The document with the flame graph, which has its own scripts.
    document: String,
    /// Size of the flame graph in pixels, if it is not scaled.
    width: usize,
    height: u32,
}

/// Samples as shown on a page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Samples {
    /// Samples by event.
    pub(super) events: Vec<Sampled>,
    /// Cycles of functions by cause, if the samples allow it.
    pub(super) functions: Option<Functions>,
    /// The branches before samples, if they were recorded.
    pub(super) branches: Option<History>,
}

/// Makes the samples of a recording, with the cycles of its functions by cause, from the samples
/// and from the truth, if there is one.
///
/// # Errors
/// A flame graph cannot be drawn.
pub(crate) fn sampled(
    of: &Recording,
    symbolizer: &Symbolizer,
    truth: Option<&CodeTruth>,
) -> Result<Samples> {
    let events = by_event(of, symbolizer, How::default()).into_iter();
    let sampled = events.map(|event| {
        let stacks = Stacks::of(of, symbolizer, Some(event.event()))?;
        let svg = stacks.flame_graph(event.event(), Some(WIDTH))?;
        let (document, height) = document(&String::from_utf8_lossy(&svg));
        let has_callers = of.has_callers();
        let mut samples = of.records.samples.iter();
        let is_precise = samples.all(|sample| {
            sample.precise || of.event_name(sample.session, sample.event) != event.event()
        });
        Ok(Sampled { of: event, has_callers, is_precise, document, width: WIDTH, height })
    });
    // Other samples contain nothing about causes.
    let by_code = ByCode::functions(of, symbolizer, false, truth).ok();
    let functions = by_code.as_ref().map(Functions::of);
    let branches = history(of, symbolizer, None).ok();
    Ok(Samples { events: sampled.collect::<Result<_>>()?, functions, branches })
}

/// Makes an HTML document with the picture; returns it with the picture's height. A document is
/// needed because the picture's script keeps its state in the address, which a document inside a
/// page does not have.
fn document(svg: &str) -> (String, u32) {
    let svg = svg.find("<svg").map_or(svg, |start| &svg[start..]);
    let height = svg
        .split_once(" height=\"")
        .and_then(|(_, rest)| rest.split_once('"')?.0.parse().ok())
        .unwrap_or_default();
    let head = "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>Flame graph</title>\
                <style>body{margin:0}svg{display:block;width:100%;height:auto}</style>\
                <script>history.replaceState=()=>{};</script>";
    (format!("{head}{svg}"), height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_picture_and_its_height() {
        let svg = "<?xml version=\"1.0\"?><!DOCTYPE svg><svg width=\"9\" height=\"182\"><g/></svg>";
        let (document, height) = document(svg);
        assert_eq!(height, 182);
        assert!(document.ends_with("<svg width=\"9\" height=\"182\"><g/></svg>"), "{document}");
        assert!(!document.contains("<?xml"));
    }
}
