//! Programs' output on a terminal: each row begins with a mark, which no line of the tool has, and
//! only text, line ends, tabs and colours pass. So a program can neither forge nor change a line of
//! the tool, and leaves the terminal as it was.

use std::fmt::Write;

use tally_abi::text::is_shown;
use unicode_width::UnicodeWidthChar;
use vte::{Params, Parser, Perform};

/// The mark, dim and without colours, and its columns.
const MARK: &str = "\x1b[2m│\x1b[0m ";
const PLAIN_MARK: &str = "│ ";
const MARK_COLUMNS: usize = 2;
/// The sequence that resets all colours.
const PLAIN: &str = "\x1b[0m";
/// Columns from one tab stop to the next.
const TAB: usize = 8;
/// Minimum columns of a row, also on a terminal that has fewer, or does not report them.
const LEAST_COLUMNS: usize = 8;
/// Maximum bytes of the sequences that set the present colour.
const MOST_STYLE: usize = 256;

/// A terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    /// Number of columns.
    pub(super) columns: usize,
    /// Whether the terminal knows escape sequences.
    pub(super) has_colors: bool,
}

/// The row on which programs write: its columns in use, 0 if it is new.
#[derive(Debug, Default)]
pub(super) struct Row(pub(super) usize);

/// A stream of a program.
#[derive(Default)]
pub(super) struct Marked {
    parser: Parser,
    style: Style,
}

/// The colours that a stream has set, and its pending carriage return.
#[derive(Debug, Default)]
struct Style {
    /// The sequences since the last one that reset all colours.
    colors: String,
    /// Whether a carriage return came last: the next text begins a new row, as it must not replace
    /// this one.
    returned: bool,
}

impl Marked {
    /// Converts these bytes for the terminal, where programs are at `row`. The colours are plain
    /// before and after it.
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

/// Writes the characters that may pass.
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

    /// Ends the row. Its colours end before, so that they do not fill the next row.
    fn end(&mut self) {
        self.begin();
        if !self.style.colors.is_empty() {
            self.text.push_str(PLAIN);
        }
        self.text.push('\n');
        self.row.0 = 0;
    }

    /// Makes room for a character of `columns` columns, so that the terminal never breaks a row
    /// itself.
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
        // Terminals differ in the columns of some characters: characters that may be wide count as
        // wide.
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

    /// Lets colours pass (ECMA-48, section 8.3.117, SGR).
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
