//! Output of `tally stat`: lines, fields or JSON objects, in the columns of `perf stat`.

use alloc::{format, string::String, vec::Vec};
use core::fmt::Write;

use tally::{
    Slice,
    io::{File, Output},
};
use tally_abi::{
    Mode,
    command::{Command, Source, StatOptions},
    events,
    text::Grouped,
};
use tally_breakdown::{Metrics, added_lines, added_share, likely_added};

use super::{
    computed,
    count::{Count, Span},
    line::{At, field, quoted},
    measure::Run,
    metric::{Metric, metric},
    repeat::Mean,
    row::{Label, Row},
};

/// Columns of a metric's unit and name.
const LABEL: usize = 26;
/// Columns before the reason why an event was not counted, on a line of its own.
const REASON: usize = 16;
/// Columns that perf leaves empty without a metric.
const NO_METRIC: usize = 38;
const SECOND_NS: u64 = 1_000_000_000;

/// Prints to standard error, as perf does, or to the file of `-o`.
pub struct Printer<'a> {
    command: &'a Command<'a>,
    /// Metrics to compute from the counts.
    metrics: Option<&'a Metrics>,
    file: Option<File>,
    /// Whether the heading of the intervals has been printed.
    has_heading: bool,
}

impl<'a> Printer<'a> {
    pub fn new(command: &'a Command<'a>, metrics: Option<&'a Metrics>, file: Option<File>) -> Self {
        Printer { command, metrics, file, has_heading: false }
    }

    /// Prints a line. Write errors are ignored, like those of standard error.
    fn line(&mut self, text: &str) {
        let line = format!("{text}\n");
        let _ = match &mut self.file {
            Some(file) => file.write_str(&line),
            None => Output::Err.write_str(&line),
        };
    }

    fn is_text(&self) -> bool {
        self.command.stat.separator.is_none() && !self.command.stat.is_json
    }

    /// Prints the values of an interval, which ended at a time since the program's start.
    pub fn interval(&mut self, at_ns: u64, span: &Span, counts: &[Count], rows: &[Row]) {
        if self.is_text() && !core::mem::replace(&mut self.has_heading, true) {
            let whom = match rows.first().map(|row| &row.label) {
                None | Some(Label::Whole) => String::new(),
                Some(Label::Thread(..)) => format!(" {:>16}-{:<7}", "comm", "pid"),
                Some(Label::Cpu(_)) => format!(" {:<6}", "CPU"),
            };
            self.line(&format!("#           time{whom}             counts unit events"));
        }
        self.values(&Values { at: At(Some(at_ns)), span, counts, rows, spreads: None });
    }

    /// Prints the values of whole runs, or those of separately counted threads or CPUs, if any;
    /// `spreads` are those between runs, in percent; `time` is with the number of runs.
    pub fn all(
        &mut self,
        span: &Span,
        (counts, rows): (&[Count], &[Row]),
        spreads: Option<&[f64]>,
        (time, runs): (Mean, usize),
    ) {
        let values = Values { at: At(None), span, counts, rows, spreads };
        if !self.is_text() {
            return self.values(&values);
        }
        let runs = match runs {
            1 => String::new(),
            runs => format!(" ({runs} runs)"),
        };
        let StatOptions { cpus, cpu_list, .. } = self.command.stat;
        let of = match (cpus, cpu_list) {
            (None, _) => self.command.program.join(" "),
            (_, None) => "system wide".into(),
            (_, Some(list)) => format!("CPU(s) {list}"),
        };
        self.line(&format!("\n Performance counter stats for '{of}'{runs}:\n"));
        self.values(&values);
        let seconds = |ns: f64| ns / SECOND_NS as f64;
        let of = span.clock.remark();
        let (mean, deviation) = (seconds(time.mean), seconds(time.deviation));
        if spreads.is_some() {
            let spread = time.spread_percent();
            self.line(&format!(
                "\n {mean:>17.9} +- {deviation:.9} seconds time elapsed{of}  ( +-{spread:>6.2}% )"
            ));
        } else {
            self.line(&format!("\n {mean:>17.9} seconds time elapsed{of}"));
            let [user, sys] =
                [span.usage.user_ns, span.usage.system_ns].map(|ns| seconds(ns as f64));
            self.line(&format!("\n {user:>17.9} seconds user"));
            self.line(&format!(" {sys:>17.9} seconds sys"));
        }
    }

    /// Prints the values of events, unless only computed values were requested; then the computed
    /// values.
    fn values(&mut self, of: &Values) {
        if self.command.prints_events() {
            self.events(of);
        }
        let Some(metrics) = self.metrics else { return };
        let counts = |name: &str| {
            let index = self.command.columns.iter().position(|(column, _)| column == name)?;
            of.counts.get(index)?.measured()
        };
        let (at, has_spread) = (of.at, of.spreads.is_some());
        let lines =
            metrics.values(&counts).into_iter().map(|value| match self.command.stat.separator {
                _ if self.command.stat.is_json => computed::json(&value, at),
                Some(separator) => computed::fields(&value, at, has_spread, separator),
                None => computed::text(&value, at),
            });
        let lines: Vec<String> = lines.collect();
        lines.iter().for_each(|line| self.line(line));
        match metrics.breakdown(&counts) {
            None => {}
            Some(Ok(breakdown)) if self.command.stat.is_json => {
                breakdown.parts.iter().for_each(|part| self.line(&computed::part_json(part)));
            }
            Some(Ok(breakdown)) => self.line(format!("\n{breakdown}").trim_end()),
            Some(Err(missing)) => {
                self.line(&format!("no breakdown: too few slices for {}", missing.join(", ")));
            }
        }
    }

    /// Prints each event: of the whole, or of each row if there are rows.
    fn events(&mut self, of: &Values) {
        for index in 0..self.command.columns.len() {
            if of.rows.is_empty() {
                self.event(of, index, (&Label::Whole, of.span, of.counts));
            }
            for Row { label, span, counts } in of.rows {
                self.event(of, index, (label, span, counts));
            }
        }
    }

    fn event(&mut self, of: &Values, index: usize, row: (&Label, &Span, &[Count])) {
        let (command, (label, span, counts)) = (self.command, row);
        let event = Event {
            at: of.at,
            label,
            name: events::label(&command.columns[index].0),
            count: &counts[index],
            metric: metric(&command.columns, counts, index, span),
            spread: of.spreads.map(|spreads| spreads[index]),
            runtime_ns: (span.usage.ran_ns() as f64 * counts[index].coverage) as u64,
        };
        let line = match command.stat.separator {
            _ if command.stat.is_json => event.json(),
            Some(separator) => event.fields(separator),
            None => event.text(),
        };
        self.line(&line);
    }

    /// With `-v`: prints the value, and the nanoseconds of the run and of those in which each event
    /// was counted, as perf does.
    pub fn verbose(&mut self, span: &Span, counts: &[Count], rows: &[Row]) {
        let command = self.command;
        if !command.stat.is_verbose {
            return;
        }
        self.line(&format!("session: {:?}, {}", command.config, command.events()));
        if rows.is_empty() {
            self.runtimes(span, counts);
        }
        rows.iter().for_each(|row| self.runtimes(&row.span, &row.counts));
    }

    fn runtimes(&mut self, span: &Span, counts: &[Count]) {
        for ((name, _), count) in self.command.columns.iter().zip(counts) {
            let ran = span.usage.ran_ns();
            let counted = (ran as f64 * count.coverage) as u64;
            self.line(&format!("{name}: {} {ran} {counted}", count.value.unwrap_or(0.0)));
        }
    }

    /// Prints the conditions of the measurement.
    pub fn conditions(&mut self, run: &Run) {
        let Some(stats) = run.stats.filter(|_| self.is_text()) else { return };
        let share = 100.0 * stats.engine_ticks as f64 / stats.session_ticks.max(1) as f64;
        let length = match self.command.config.slice {
            Slice::Auto => {
                format!(" of {} cycles on average", Grouped(stats.cycles / stats.slices.max(1)))
            }
            slice => format!(" of {} cycles as requested", Grouped(slice.length())),
        };
        let lengthened = match stats.lengthened {
            0 => String::new(),
            slices => format!(", {} of them lengthened for the budget", Grouped(slices)),
        };
        let groups = stats.groups;
        let plural = if groups == 1 { "" } else { "s" };
        self.line(&format!(
            "\n {groups} event group{plural}, {} slices{length}{lengthened};\n the engine took \
             {share:.2} % of the time; +- is the half width of the 95 % interval",
            Grouped(stats.slices),
        ));
        if stats.lost_pmis > 0 {
            self.line(&format!(
                " {} overflow interrupts did not come: these slices were ended by the timer",
                Grouped(stats.lost_pmis),
            ));
        }
    }

    /// Prints the number of events of ring 3 that the session's interrupts are likely to have
    /// added, if they are a significant part of the count.
    pub fn added(&mut self, run: &Run, counts: &[Count]) {
        let is_asked = self.is_text() && self.command.config.mode == Mode::User;
        let Some(stats) = run.stats.filter(|_| is_asked) else { return };
        let share = |((name, _), count): (&(String, Source), &Count)| {
            // Other events count other rings, by a modifier.
            let is_of_ring_3 = matches!(name.split_once(':'), None | Some((_, "u")));
            let value = count.value.filter(|_| is_of_ring_3 && count.software.is_none())?;
            let share = added_share(likely_added(name, stats.overflow_interrupts())?, value)?;
            Some(format!("{name} {:.2} %", 100.0 * share))
        };
        let columns = self.command.columns.iter().zip(counts);
        let shares: Vec<String> = columns.filter_map(share).collect();
        added_lines(&shares, " ").iter().for_each(|line| self.line(line));
    }
}

/// Values that are printed together.
struct Values<'a> {
    at: At,
    span: &'a Span,
    counts: &'a [Count],
    /// Separately counted threads or CPUs, if any.
    rows: &'a [Row],
    /// Spreads between runs, in percent.
    spreads: Option<&'a [f64]>,
}

/// Event with all values that are printed for it.
struct Event<'a> {
    at: At,
    label: &'a Label,
    name: &'a str,
    count: &'a Count,
    metric: Option<Metric>,
    /// Spread between runs, in percent.
    spread: Option<f64>,
    /// Nanoseconds of the program for which the event was counted.
    runtime_ns: u64,
}

impl Event<'_> {
    /// Formats perf's text, and after the metric the half widths of estimates: that of the metric
    /// itself, if it has one, then that of the count.
    fn text(&self) -> String {
        let Event { name, count, .. } = self;
        let mut text = self.at.text() + &self.label.text();
        let number = match count.in_unit() {
            None => "<not counted>".into(),
            Some(value) if count.unit() == "msec" => thousands(value),
            Some(value) => format!("{}", Grouped(libm::round(value) as u64)),
        };
        text += &format!("{number:>18} {:<4} {name:<32}", count.unit());
        text += &match &self.metric {
            None => format!("{:NO_METRIC$}", ""),
            Some(Metric { value, error, label }) => {
                let error =
                    error.map_or(String::new(), |error| format!(" +- {:.2} %", 100.0 * error));
                format!(" # {value:>8.1} {:<LABEL$}", format!("{label}{error}"))
            }
        };
        if count.value.is_none() {
            text.truncate(text.trim_end().len());
            text += &format!("\n{:REASON$}{}", "", count.reason);
        } else if count.half_width > 0.0 {
            text += &match count.error().filter(|error| *error < 1.0) {
                Some(error) => format!("  +- {:.2} %", 100.0 * error),
                None => format!("  +- {:.0}", count.half_width),
            };
        }
        if let Some(spread) = self.spread.filter(|spread| *spread > 0.0) {
            text += &format!("  ( +-{spread:>6.2}% )");
        }
        if count.value.is_some() && count.coverage < 1.0 {
            text += &format!("  ({:.2}%)", 100.0 * count.coverage);
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// Formats perf's fields: count, unit, event, with `-r` the spread, nanoseconds for which the
    /// event was counted, their share in percent, metric, its unit; then the half width of the
    /// count's 95 % interval.
    fn fields(&self, separator: &str) -> String {
        let Event { name, count, runtime_ns, .. } = self;
        let value = match count.in_unit() {
            None => "<not counted>".into(),
            Some(value) if count.unit() == "msec" => format!("{value:.2}"),
            Some(value) => format!("{value:.0}"),
        };
        let spread = self.spread.map(|spread| format!("{spread:.2}%"));
        let (metric, label) = match &self.metric {
            None => (String::new(), ""),
            Some(Metric { value, label, .. }) => (format!("{value:.1}"), *label),
        };
        let half_width = count.value.map_or(String::new(), |_| format!("{:.0}", count.half_width));
        let share = format!("{:.2}", 100.0 * count.coverage);
        let before = [value, count.unit().into(), field(name, separator)];
        let behind = [format!("{runtime_ns}"), share, metric, label.into(), half_width];
        let label = self.label.field().map(|label| field(&label, separator));
        let all = label.into_iter().chain(before).chain(spread).chain(behind);
        self.at.field(separator) + &all.collect::<Vec<_>>().join(separator)
    }

    /// Formats perf's JSON, and the half width of the count's 95 % interval, in its unit.
    fn json(&self) -> String {
        let Event { name, count, runtime_ns, .. } = self;
        let name = quoted(name);
        let mut text = String::from("{") + &self.at.json() + &self.label.json();
        let value = count.in_unit().map_or("<not counted>".into(), |value| format!("{value:.6}"));
        text += &format!(
            "\"counter-value\" : \"{value}\", \"unit\" : \"{}\", \"event\" : \"{name}\", ",
            count.unit()
        );
        if let Some(spread) = self.spread {
            text += &format!("\"variance\" : {spread:.2}, ");
        }
        text += &format!(
            "\"event-runtime\" : {runtime_ns}, \"pcnt-running\" : {:.2}",
            100.0 * count.coverage
        );
        if let Some(Metric { value, label, .. }) = &self.metric {
            text += &format!(", \"metric-value\" : \"{value:.6}\", \"metric-unit\" : \"{label}\"");
        }
        let half_width = count.value.map(|_| format!("{:.1}", count.half_width));
        text += &format!(", \"half-width-95\" : {}}}", half_width.as_deref().unwrap_or("null"));
        text
    }
}

/// Formats a number with two decimals, in groups of three digits.
fn thousands(value: f64) -> String {
    let hundredths = libm::round(value * 100.0) as u64;
    format!("{}.{:02}", Grouped(hundredths / 100), hundredths % 100)
}
