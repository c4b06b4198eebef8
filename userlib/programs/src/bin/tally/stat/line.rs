//! What lines of each kind have in common: the time of an interval, and words in JSON.

use alloc::{format, string::String};

const SECOND_NS: u64 = 1_000_000_000;

/// The end of the interval that a line is of, in nanoseconds since the program's start; none if it
/// is of the whole run.
#[derive(Clone, Copy)]
pub struct At(pub Option<u64>);

impl At {
    /// In perf's columns.
    pub fn text(self) -> String {
        self.print(|s, ns| format!("{s:>6}.{ns:09} "))
    }

    /// As perf's field, with what separates it from the next.
    pub fn field(self, separator: &str) -> String {
        self.print(|s, ns| format!("{s}.{ns:09}{separator}"))
    }

    /// As perf's JSON, with what separates it from the next.
    pub fn json(self) -> String {
        self.print(|s, ns| format!("\"interval\" : {s}.{ns:09}, "))
    }

    fn print(self, print: impl FnOnce(u64, u64) -> String) -> String {
        self.0.map_or(String::new(), |at| print(at / SECOND_NS, at % SECOND_NS))
    }
}

/// `word` as it is between the quotes of a JSON string.
pub fn quoted(word: &str) -> String {
    word.replace('\\', "\\\\").replace('"', "\\\"")
}
