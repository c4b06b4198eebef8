//! What programs write, as a terminal gets it: each row begins with a mark, which no line of the
//! tool has, and nothing but text, line ends, tabs and colours passes. So a program can neither
//! write a line of the tool's nor change one, and leaves the terminal as it was.

use std::fmt::Write;

use unicode_width::UnicodeWidthChar;
use vte::{Params, Parser, Perform};

use crate::visible::is_shown;

/// The mark, dim and without colours, and its columns.
const MARK: &str = "\x1b[2m│\x1b[0m ";
const PLAIN_MARK: &str = "│ ";
const MARK_COLUMNS: usize = 2;
/// What ends all colours.
const PLAIN: &str = "\x1b[0m";
/// Columns from one tab stop to the next.
const TAB: usize = 8;
/// The fewest columns of a row, also of a terminal that has fewer, or does not say.
const LEAST_COLUMNS: usize = 8;
/// The most bytes of the sequences that made the present colour.
const MOST_STYLE: usize = 256;

/// A terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    /// Its columns.
    pub(super) columns: usize,
    /// Whether it knows escape sequences.
    pub(super) has_colors: bool,
}

/// The row on which programs write: its columns that are taken, 0 if it is new.
#[derive(Debug, Default)]
pub(super) struct Row(pub(super) usize);

/// One program's stream.
#[derive(Default)]
pub(super) struct Marked {
    parser: Parser,
    style: Style,
}

/// What a stream has set, and what it has begun.
#[derive(Debug, Default)]
struct Style {
    /// The sequences since the last one that ended all colours.
    colors: String,
    /// A carriage return came last: the next text begins a row, for it must not replace this one.
    returned: bool,
}

impl Marked {
    /// What the terminal gets for these bytes, where programs are at `row`. The colours are plain
    /// before and behind it.
    pub(super) fn pass(&mut self, bytes: &[u8], row: &mut Row, terminal: Terminal) -> String {
        let mut to = Writer { text: String::new(), style: &mut self.style, row, terminal };
        if to.row.0 > 0 {
            to.text.push_str(&to.style.colors);
        }
        self.parser.advance(&mut to, bytes);
        if !to.style.colors.is_empty() {
            to.text.push_str(PLAIN);
        }
        to.text
    }
}

/// Writes what passes.
struct Writer<'a> {
    text: String,
    style: &'a mut Style,
    row: &'a mut Row,
    terminal: Terminal,
}

impl Writer<'_> {
    /// Begins the row, if it is new.
    fn begin(&mut self) {
        if self.row.0 == 0 {
            self.text.push_str(if self.terminal.has_colors { MARK } else { PLAIN_MARK });
            self.text.push_str(&self.style.colors);
            self.row.0 = MARK_COLUMNS;
        }
    }

    /// Ends the row. Its colours end before, so that they do not fill the next one.
    fn end(&mut self) {
        self.begin();
        if !self.style.colors.is_empty() {
            self.text.push_str(PLAIN);
        }
        self.text.push('\n');
        self.row.0 = 0;
    }

    /// Makes room for a character of so many columns, as no terminal may break the row itself.
    fn make_room(&mut self, columns: usize) {
        if std::mem::take(&mut self.style.returned) && self.row.0 > MARK_COLUMNS
            || self.row.0 + columns > self.terminal.columns.max(LEAST_COLUMNS)
        {
            self.end();
        }
        self.begin();
    }
}

impl Perform for Writer<'_> {
    fn print(&mut self, c: char) {
        let c = if is_shown(c) { c } else { char::REPLACEMENT_CHARACTER };
        // Terminals differ in the columns of some characters: what may be wide counts as wide.
        let columns = c.width_cjk().unwrap_or_default().max(1);
        self.make_room(columns);
        self.text.push(c);
        self.row.0 += columns;
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.style.returned = false;
                self.end();
            }
            b'\r' => self.style.returned = true,
            b'\t' => {
                self.make_room(1);
                self.text.push('\t');
                self.row.0 = (self.row.0 / TAB + 1) * TAB;
            }
            _ => {}
        }
    }

    /// Colours pass (ECMA-48, section 8.3.117, SGR).
    fn csi_dispatch(&mut self, params: &Params, marks: &[u8], is_cut: bool, action: char) {
        let is_color = action == 'm' && marks.is_empty() && !is_cut;
        if !is_color || !self.terminal.has_colors {
            return;
        }
        let mut sequence = "\x1b[".to_owned();
        for (index, param) in params.iter().enumerate() {
            sequence.push_str(if index == 0 { "" } else { ";" });
            for (index, number) in param.iter().enumerate() {
                // Writing to a string does not fail.
                let _ = write!(sequence, "{}{number}", if index == 0 { "" } else { ":" });
            }
        }
        sequence.push('m');
        let ends_all = params.iter().next().is_none_or(|first| first == [0]);
        if ends_all || self.style.colors.len() + sequence.len() > MOST_STYLE {
            self.style.colors.clear();
            if self.row.0 > 0 {
                self.text.push_str(PLAIN);
            }
        }
        if sequence != PLAIN && sequence.len() <= MOST_STYLE {
            self.style.colors.push_str(&sequence);
            if self.row.0 > 0 {
                self.text.push_str(&sequence);
            }
        }
    }
}

#[cfg(test)]
mod tests;
