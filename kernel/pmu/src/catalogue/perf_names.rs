//! perf's own names of AMD's core events.

use alloc::vec::Vec;

use super::processors::Core;

/// The names. Each line: name, event, digits of the generations of Zen that have it.
const LINES: &str = include_str!("perf-amd.tsv");

/// A name, its event, and the generations.
type Line = (&'static str, &'static str, &'static str);

/// Generation of Zen, as a digit of [`LINES`].
fn zen(core: Core) -> Option<char> {
    match core {
        Core::Zen1 => Some('1'),
        Core::Zen2 => Some('2'),
        Core::Zen3 => Some('3'),
        Core::Zen4 => Some('4'),
        Core::Zen5 => Some('5'),
        _ => None,
    }
}

fn lines() -> impl Iterator<Item = Line> {
    LINES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (name, rest) = line.split_once('\t')?;
        let (event, zens) = rest.split_once('\t')?;
        Some((name, event, zens))
    })
}

/// perf's own names for a core, each with its event.
pub(super) fn perf_names(core: Core) -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_zen = |zen| lines().filter(move |(.., zens)| zens.contains(zen));
    zen(core).into_iter().flat_map(of_zen).map(|(name, event, _)| (name, event))
}

/// Finds the event of perf's own name, ignoring case, on every core: one pass over the names.
pub(super) fn perf_name(name: &str) -> impl Fn(Core) -> Option<&'static str> {
    let own: Vec<Line> = lines().filter(|(own, ..)| own.eq_ignore_ascii_case(name)).collect();
    move |core| {
        let zen = zen(core)?;
        own.iter().find(|(.., zens)| zens.contains(zen)).map(|(_, event, _)| *event)
    }
}
