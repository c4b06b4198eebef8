//! What is counted apart: each has rows of its own in the output.

use alloc::{format, string::String, vec::Vec};

use tally::Instance;
use tally_abi::command::Command;

use super::{
    count::{Count, Span, counts},
    line::quoted,
};

/// What the rows in front of which it stands are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label {
    /// The whole program.
    Whole,
    /// A thread of this name and number.
    Thread(String, u32),
}

/// The values of what is counted apart.
pub struct Row {
    /// Whose they are.
    pub label: Label,
    /// What was read of it.
    pub span: Span,
    /// By column.
    pub counts: Vec<Count>,
}

impl Row {
    /// The values of an instance of the session.
    pub fn of(command: &Command, instance: &Instance, span: Span) -> Row {
        let program = command.program.first().copied().unwrap_or_default();
        let name = match instance.number {
            0 => "others",
            _ => instance.name().unwrap_or(program),
        };
        let label = Label::Thread(name.into(), instance.number);
        Row { label, counts: counts(&command.columns, &span), span }
    }
}

impl Label {
    /// In perf's columns.
    pub fn text(&self) -> String {
        match self {
            Label::Whole => String::new(),
            Label::Thread(name, number) => format!("{name:>16}-{number:<7} "),
        }
    }

    /// As perf's field, if there is one.
    pub fn field(&self) -> Option<String> {
        match self {
            Label::Whole => None,
            Label::Thread(name, number) => Some(format!("{name}-{number}")),
        }
    }

    /// As perf's JSON, with what separates it from the next.
    pub fn json(&self) -> String {
        match self {
            Label::Whole => String::new(),
            Label::Thread(name, number) => {
                format!("\"thread\" : \"{}-{number}\", ", quoted(name))
            }
        }
    }
}
