//! The picture of a state, for any terminal of the least size or more.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::Paragraph,
};
use tally_abi::text::{Grouped, percent};

use super::{
    screen::LEAST,
    state::{Session, State},
};
use crate::{
    machine::tail,
    report::{CyclePart, Interval, IntervalEvent, glyph},
};

/// Columns of a number, and of a half width.
const NUMBER: usize = 12;
const BAR: usize = 9;
/// Columns from which on events also have their rates per second.
const WIDE: u16 = 64;
/// Maximum lines of the programs' output.
const OUTPUT_LINES: usize = 6;

/// Appearance of the view.
#[derive(Clone, Copy)]
struct Look {
    has_color: bool,
}

impl Look {
    fn color(self, color: Color) -> Style {
        if self.has_color { Style::new().fg(color) } else { Style::new() }
    }

    fn heading(self) -> Style {
        self.color(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    fn warning(self) -> Style {
        self.color(Color::Red).add_modifier(Modifier::BOLD)
    }
}

/// Draws the state.
pub fn draw(frame: &mut Frame<'_>, state: &State, has_color: bool) {
    let (look, area) = (Look { has_color }, frame.area());
    let (columns, rows) = (area.width, area.height);
    if columns < LEAST.0 || rows < LEAST.1 {
        let (least_columns, least_rows) = LEAST;
        let text = format!("too small: {columns} × {rows} of {least_columns} × {least_rows}");
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let interval = state.interval();
    let (width, rows) = (usize::from(columns), usize::from(rows));
    let mut above = flow(facts(state, look), width, rows / 3);
    // The keys have a line; the events get the lines that the others leave, but at least this many.
    let room = |above: &[Line<'_>], least: usize| (rows - 1 - above.len()).saturating_sub(least);
    let phases = phases(state, width, look);
    let left = room(&above, 3);
    above.extend(phases.into_iter().take(left));
    let parts = interval.as_ref().map(|it| parts(it, width, look)).unwrap_or_default();
    let left = room(&above, (rows / 4).max(3));
    above.extend(parts.into_iter().take(left));
    let mut below = output(state, look, room(&above, (rows / 3).max(3)));
    let keys = "q stop   ↑↓ scroll   Tab next session";
    below.push(Line::styled(keys, Style::new().add_modifier(Modifier::DIM)));
    let areas = [above.len(), rows - above.len() - below.len(), below.len()];
    let [top, middle, bottom] =
        Layout::vertical(areas.map(|rows| Constraint::Length(rows as u16))).areas(area);
    let events = events(state, interval.as_ref(), middle, look);
    for (lines, area) in [(above, top), (events, middle), (below, bottom)] {
        frame.render_widget(Paragraph::new(lines), area);
    }
}

/// Arranges styled words in at most `most` lines of `width` columns.
fn flow(words: Vec<Span<'static>>, width: usize, most: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.width() + 2 + word.width() <= width => {
                line.push_span("  ");
                line.push_span(word);
            }
            _ => lines.push(Line::from(word)),
        }
    }
    lines.truncate(most);
    lines
}

/// Facts about the run and the session.
fn facts(state: &State, look: Look) -> Vec<Span<'static>> {
    let mut facts = vec![
        Span::styled(state.known.programs.clone(), look.heading()),
        format!("running {} s", state.running.as_secs()).into(),
    ];
    let budget = percent(f64::from(state.known.budget_ppm) / 1e6, false);
    if let Some((number, session)) = state.session() {
        facts.extend(session_facts(number, session, state));
        let switching = session.switching().map_or("-".into(), |share| percent(share, false));
        facts.push(format!("budget {budget}").into());
        facts.push(format!("switching {switching}").into());
    } else {
        facts.push(waits_for(state).into());
        facts.push(format!("budget {budget}").into());
    }
    let lost = format!("lost records {}", Grouped(state.lost));
    facts.push(if state.lost > 0 { Span::styled(lost, look.warning()) } else { lost.into() });
    facts.extend(state.bad.as_ref().map(|bad| Span::styled(bad.clone(), look.warning())));
    let seed = state.seed.map(|seed| format!("seed {seed}"));
    facts.extend([state.pmu.clone(), seed].into_iter().flatten().map(Span::from));
    facts
}

/// The next step of a run that has no slice yet. The kernel's first message has the seed.
fn waits_for(state: &State) -> &'static str {
    match state {
        State { seed: None, .. } => "waiting for the kernel to boot",
        State { is_ready: false, .. } => "waiting for the kernel to start the program",
        _ => "waiting for the first slice of the program",
    }
}

fn session_facts(number: u32, session: &Session, state: &State) -> Vec<Span<'static>> {
    let mut facts = Vec::new();
    if state.sessions.len() > 1 {
        facts.push(format!("session {number} of {}", state.sessions.len()));
    }
    facts.push(format!("slices {}", Grouped(session.slices)));
    facts.push(format!("cycles {}", short(session.cycles as f64)));
    facts.push(format!("instructions {}", short(session.instructions as f64)));
    let window = session.window.len().max(1) as u64;
    facts.push(format!("cycles per slice {}", Grouped(session.window_cycles() / window)));
    let lengthened = session.window.back().map_or(1, |slice| slice.slice_multiplier);
    if lengthened > 1 {
        facts.push(format!("slice multiplier {lengthened}"));
    }
    facts.into_iter().map(Span::from).collect()
}

/// The phases, if they are tracked.
fn phases(state: &State, width: usize, look: Look) -> Vec<Line<'static>> {
    if !state.known.has_phases {
        return Vec::new();
    }
    let Some((session, last)) =
        state.session().and_then(|(_, session)| Some((session, session.phases.back()?)))
    else {
        return vec![Line::styled("phases: no interval has ended yet", look.heading())];
    };
    let sure = if last.sure { "" } else { ", not sure" };
    let words = vec![
        Span::styled(format!("phase {}{sure}", glyph(last.phase)), look.heading()),
        format!("largest cost {}", last.bottleneck.word()).into(),
        format!("next {}", glyph(last.best)).into(),
        format!("intervals {}", Grouped(session.intervals)).into(),
        format!("changes {}", Grouped(session.changes)).into(),
    ];
    let mut lines = flow(words, width, 2);
    let shown = session.phases.iter().skip(session.phases.len().saturating_sub(width));
    lines.push(shown.map(|phase| glyph(phase.phase)).collect::<String>().into());
    lines
}

/// The division of the window's cycles.
fn parts(interval: &Interval, width: usize, look: Look) -> Vec<Line<'static>> {
    if interval.parts.is_empty() {
        return Vec::new();
    }
    let name_columns = (width - 2 * BAR).min(34);
    let (title, share, bar) = ("cycles in", "share", "± 95 %");
    let head = format!("{title:<name_columns$}{share:>BAR$}{bar:>BAR$}");
    let mut parts: Vec<&CyclePart> = interval.parts.iter().collect();
    parts.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    let line = |part: &CyclePart| {
        let of_all = part.half_width_95 / interval.cycles.max(1) as f64;
        let [share, bar] = [part.share, of_all].map(|share| percent(share, false));
        let name = cut(&part.name, name_columns - 1);
        let room = (width - name_columns - 2 * BAR).saturating_sub(1);
        let blocks = "█".repeat((part.share.clamp(0.0, 1.0) * room as f64).round() as usize);
        let color = if part.is_work() { Color::Green } else { Color::Yellow };
        Line::from(vec![
            format!("{name:<name_columns$}{share:>BAR$}{bar:>BAR$} ").into(),
            Span::styled(blocks, look.color(color)),
        ])
    };
    [Line::styled(head, look.heading())].into_iter().chain(parts.into_iter().map(line)).collect()
}

/// The rates of the events in the window.
fn events(
    state: &State,
    interval: Option<&Interval>,
    area: Rect,
    look: Look,
) -> Vec<Line<'static>> {
    let Some((_, session)) = state.session() else { return Vec::new() };
    let Some(interval) = interval else {
        let why = "the names of the events are known when the session ends: give --events";
        return vec![why.into()];
    };
    let wide = area.width >= WIDE && state.tsc_hz.is_some();
    let number = if wide { NUMBER } else { 0 };
    let name_columns = usize::from(area.width) - NUMBER - BAR - number;
    let window = Grouped(session.window.len() as u64);
    let title = cut(&format!("event, last {window} slices"), name_columns - 1);
    let (rate, bar) = ("in 1,000 i.", "± 95 %");
    let mut head = format!("{title:<name_columns$}{rate:>NUMBER$}{bar:>BAR$}");
    if wide {
        head += &format!("{:>NUMBER$}", "per second");
    }
    let seconds = state.tsc_hz.map(|hz| session.window_ticks() as f64 / hz as f64);
    let line = |event: &IntervalEvent| {
        let name = cut(&event.name, name_columns - 1);
        let (rate, bar, second) = rate_cells(event, interval.instructions, seconds);
        let mut line = format!("{name:<name_columns$}{rate:>NUMBER$}{bar:>BAR$}");
        if wide {
            line += &format!("{second:>NUMBER$}");
        }
        Line::from(line)
    };
    let shown = usize::from(area.height).saturating_sub(1);
    let scrolled = state.scrolled.min(interval.events.len().saturating_sub(shown));
    let lines = interval.events.iter().skip(scrolled).take(shown).map(line);
    [Line::styled(head, look.heading())].into_iter().chain(lines).collect()
}

/// Cells of an event: its rate per 1,000 instructions, half the width of its 95 % interval, and its
/// rate per second.
fn rate_cells(
    event: &IntervalEvent,
    instructions: u64,
    seconds: Option<f64>,
) -> (String, String, String) {
    let Some((count, width)) = event.estimate.zip(event.half_width_95) else {
        return ("-".into(), "too few".into(), "-".into());
    };
    let count = count as f64;
    let bar = match (width, count) {
        (0.0, _) => "exact".into(),
        (width, 0.0) => format!("±{}", short(1_000.0 * width / instructions.max(1) as f64)),
        (width, count) => percent(width / count, false),
    };
    let second = seconds.filter(|seconds| *seconds > 0.0);
    let second = second.map_or("-".into(), |seconds| short(count / seconds));
    (short(1_000.0 * count / instructions.max(1) as f64), bar, second)
}

/// The last lines of the programs' output below a heading, in at most `most` lines.
fn output(state: &State, look: Look, most: usize) -> Vec<Line<'static>> {
    let lines =
        tail(&String::from_utf8_lossy(&state.output), most.saturating_sub(1).min(OUTPUT_LINES));
    if lines.is_empty() {
        return Vec::new();
    }
    let head = Line::styled("output of the programs, all of it at the end", look.heading());
    [head].into_iter().chain(lines.lines().map(|line| line.to_owned().into())).collect()
}

/// The text, cut to `columns` columns.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

/// A number with at least three digits, and an SI prefix from 10,000 on.
fn short(number: f64) -> String {
    match number {
        1e10.. => format!("{:.2} G", number / 1e9),
        1e7.. => format!("{:.2} M", number / 1e6),
        1e4.. => format!("{:.2} k", number / 1e3),
        100.0.. => format!("{number:.1}"),
        _ => format!("{number:.3}"),
    }
}

#[cfg(test)]
mod tests;
