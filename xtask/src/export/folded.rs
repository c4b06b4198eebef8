//! Folded stacks, one line for each stack, and their flame graph.
//!
//! A stack is the program, the thread if it gave itself a name, the callers if the samples' stacks
//! were recorded, and at each address the functions that were inlined into one another. Its number
//! is that of events: each sample stands for the events since the last one, also where the engine
//! lengthened the period.

use std::collections::BTreeMap;

use inferno::flamegraph::{self, Options, TextTruncateDirection};
use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    recording::{Recording, Symbolizer},
};

/// The stacks of samples of one event.
pub(crate) struct Stacks {
    /// The event.
    event: String,
    /// Events by stack: the frames, joined by semicolons.
    stacks: BTreeMap<String, u64>,
}

impl Stacks {
    /// The stacks of the samples of the `chosen` event, or of the only event that was sampled.
    ///
    /// # Errors
    /// There are no samples, or several events have some and none is chosen.
    pub(crate) fn of(
        of: &Recording,
        symbolizer: &Symbolizer,
        chosen: Option<&str>,
    ) -> Result<Stacks> {
        let event = of.sampled_event(chosen)?;
        let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
        for (sample, events) in of.weighted_samples() {
            if of.event_name(sample.session, sample.event) != event {
                continue;
            }
            let (number, program) = of.program_of(sample.session);
            let thread = of.thread_name(number, sample.thread);
            let functions = symbolizer.stack_functions(of, sample);
            let frames = [program.to_owned()].into_iter().chain(thread).chain(functions);
            let stack = frames.map(|frame| plain(&frame)).collect::<Vec<_>>().join(";");
            *stacks.entry(stack).or_default() += events;
        }
        Ok(Stacks { event, stacks })
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.stacks.iter().map(|(stack, events)| format!("{stack} {events}"))
    }

    /// A line for each stack.
    pub(crate) fn folded(&self) -> Vec<u8> {
        self.lines().map(|line| line + "\n").collect::<String>().into_bytes()
    }

    /// The flame graph as SVG, of this width in pixels, or as wide as its place.
    ///
    /// # Errors
    /// The graph cannot be drawn.
    pub(crate) fn flame_graph(&self, subtitle: &str, width: Option<usize>) -> Result<Vec<u8>> {
        let mut options = Options::default();
        // Colours depend on names, so that equal samples give equal pictures.
        options.hash = true;
        // The function's own name is at the beginning; arguments are behind it.
        options.text_truncate_direction = TextTruncateDirection::Right;
        // Letters of one width, so that the names are cut to the room that they have.
        options.font_type = "monospace".to_owned();
        options.font_width = LETTER_WIDTH;
        options.title = "Samples".to_owned();
        options.subtitle = Some(subtitle.to_owned());
        options.image_width = width;
        options.count_name = self.event.clone();
        let lines: Vec<String> = self.lines().collect();
        let mut svg = Vec::new();
        flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg).map_err(
            |error| {
                let why = format!("the flame graph cannot be drawn: {error}");
                Failure::new(ExitStatus::HostError, why)
            },
        )?;
        Ok(svg)
    }
}

/// Width of a letter of the graph's font, as a part of its height: those of common fonts of one
/// width have at most 0.602.
const LETTER_WIDTH: f64 = 0.61;

/// A frame's name without the character that separates frames, and without line breaks.
fn plain(frame: &str) -> String {
    frame.replace(';', ":").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording;

    #[test]
    fn a_thread_with_a_name_is_a_frame() {
        let folded = |name: &[u8; 16]| {
            let of = recording::tests::sampled("cycles", *name);
            let stacks = Stacks::of(&of, &Symbolizer::default(), None).unwrap();
            String::from_utf8(stacks.folded()).unwrap()
        };
        assert_eq!(folded(&[0; 16]), "prog;0x1000 1\n");
        assert_eq!(folded(b"worker\0\0\0\0\0\0\0\0\0\0"), "prog;worker;0x1000 1\n");
    }
}
