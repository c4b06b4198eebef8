//! Rows of separately counted threads or CPUs in the output.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use tally::Instance;
use tally_abi::{
    command::{Command, Source},
    text::{Visible, short_name},
};

use super::{
    count::{Count, Span, counts},
    line::quoted,
};

/// Label at the beginning of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label {
    /// The whole program.
    Whole,
    /// Thread with this name and number.
    Thread(String, u32),
    /// CPU with this number.
    Cpu(u32),
}

/// Values of a separately counted thread or CPU.
pub struct Row {
    /// Label of the thread or CPU.
    pub label: Label,
    /// Readings of the thread or CPU.
    pub span: Span,
    /// Counts by column.
    pub counts: Vec<Count>,
}

impl Row {
    /// Makes the row of an instance of the session.
    pub fn of(command: &Command, instance: &Instance, span: Span) -> Row {
        let mut counts = counts(&command.columns, &span);
        if command.stat.cpus.is_some() {
            // A CPU that ran no program has missed no events.
            let ran = |count: &Count| count.value.is_some() || span.cycles() > 0;
            let idle = counts.iter_mut().filter(|count| !ran(count));
            idle.for_each(|count| (count.value, count.coverage) = (Some(0.0), 1.0));
            return Row { label: Label::Cpu(instance.number), span, counts };
        }
        // The first thread has the program's name until it takes another.
        let program = command.program.first().copied().unwrap_or_default();
        let name = match instance.number {
            0 => "others",
            _ => instance.name().unwrap_or(short_name(program)),
        };
        Row { label: Label::Thread(Visible::word(name).to_string(), instance.number), span, counts }
    }
}

/// Returns the values of the whole, by column: of the program, or of all CPUs together, whose rows
/// these are.
pub fn whole(command: &Command, span: &Span, rows: &[Row]) -> Vec<Count> {
    let mut all = counts(&command.columns, span);
    if command.stat.cpus.is_some() {
        let of_session = command.columns.iter().enumerate();
        let of_session = of_session.filter(|(_, column)| matches!(column.1, Source::Session(_)));
        of_session.for_each(|(column, _)| all[column] = sum(rows, column));
    }
    all
}

/// Returns the sum over CPUs, whose errors are independent: each CPU has its own order of groups. A
/// CPU that ran a program for too short a time to count the event is assumed to have the same rate
/// per cycle as the others, and the same amount is added to the half width.
fn sum(rows: &[Row], column: usize) -> Count {
    let of = |row: &Row| (row.counts[column].clone(), row.span.cycles() as f64);
    let (known, unknown): (Vec<_>, Vec<_>) =
        rows.iter().map(of).partition(|(count, _)| count.value.is_some());
    let Some((first, _)) = known.first() else {
        let none = || Count::not_counted("no CPU counted it");
        return unknown.into_iter().next().map_or_else(none, |(count, _)| count);
    };
    let value: f64 = known.iter().filter_map(|(count, _)| count.value).sum();
    let squares: f64 = known.iter().map(|(count, _)| count.half_width * count.half_width).sum();
    let [counted, missed]: [f64; 2] =
        [&known, &unknown].map(|all| all.iter().map(|(_, cycles)| cycles).sum());
    let guess = if counted > 0.0 { value * missed / counted } else { 0.0 };
    let covered: f64 = known.iter().map(|(count, cycles)| count.coverage * cycles).sum();
    let coverage = if counted > 0.0 { covered / (counted + missed) } else { 1.0 };
    let half_width = libm::sqrt(squares) + guess;
    Count { value: Some(value + guess), half_width, coverage, ..first.clone() }
}

impl Label {
    /// Formats the label in perf's columns.
    pub fn text(&self) -> String {
        match self {
            Label::Whole => String::new(),
            Label::Thread(name, number) => format!("{name:>16}-{number:<7} "),
            Label::Cpu(number) => format!("{:<6} ", format!("CPU{number}")),
        }
    }

    /// Formats perf's field, if there is one.
    pub fn field(&self) -> Option<String> {
        match self {
            Label::Whole => None,
            Label::Thread(name, number) => Some(format!("{name}-{number}")),
            Label::Cpu(number) => Some(format!("CPU{number}")),
        }
    }

    /// Formats perf's JSON, including the separator to the next value.
    pub fn json(&self) -> String {
        match self {
            Label::Whole => String::new(),
            Label::Thread(name, number) => {
                format!("\"thread\" : \"{}-{number}\", ", quoted(name))
            }
            Label::Cpu(number) => format!("\"cpu\" : \"{number}\", "),
        }
    }
}
