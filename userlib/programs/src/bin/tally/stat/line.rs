//! Common parts of all lines: the time of an interval, and words in JSON.

use alloc::{format, string::String};

const SECOND_NS: u64 = 1_000_000_000;

/// End of the interval of a line, in nanoseconds since the program's start; `None` if the line is
/// for the whole run.
#[derive(Clone, Copy)]
pub struct At(pub Option<u64>);

impl At {
    /// Formats the time in perf's columns.
    pub fn text(self) -> String {
        self.print(|s, ns| format!("{s:>6}.{ns:09} "))
    }

    /// Formats perf's field, including the separator to the next one.
    pub fn field(self, separator: &str) -> String {
        self.print(|s, ns| format!("{s}.{ns:09}{separator}"))
    }

    /// Formats perf's JSON, including the separator to the next value.
    pub fn json(self) -> String {
        self.print(|s, ns| format!("\"interval\" : {s}.{ns:09}, "))
    }

    fn print(self, print: impl FnOnce(u64, u64) -> String) -> String {
        self.0.map_or(String::new(), |at| print(at / SECOND_NS, at % SECOND_NS))
    }
}

/// Quotes a field with a separator or a quotation mark in it, as in CSV.
pub fn field(text: &str, separator: &str) -> String {
    if text.contains(separator) || text.contains('"') {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.into()
}

/// Escapes `word` for the quotes of a JSON string.
pub fn quoted(word: &str) -> String {
    word.replace('\\', "\\\\").replace('"', "\\\"")
}
