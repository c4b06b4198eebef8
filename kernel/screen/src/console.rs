//! Scrolling text console, whose last lines can be shown in pages.
//!
//! Each write to a framebuffer may be slow, so text is scrolled rarely: when the surface is full,
//! by half of its rows. The lines are kept in memory, because the surface is never read.

use core::fmt;

use crate::{
    font::{Font, Ink},
    surface::Surface,
};

/// Maximum letters of a line; longer lines are broken.
const COLUMNS: usize = 128;
/// Number of lines that are kept.
const LINES: usize = 192;
const BLANK: u8 = b' ';

/// Text console. Without a surface it drops the text.
#[derive(Debug)]
pub struct Console<'a> {
    shown: Option<Shown<'a>>,
    /// Last lines, each at its number modulo [`LINES`].
    lines: [[u8; COLUMNS]; LINES],
    /// Number of the line that is being written.
    last: usize,
    /// Number of letters in the current line.
    column: usize,
    /// Number of the first line on the surface.
    top: usize,
}

#[derive(Debug)]
struct Shown<'a> {
    surface: Surface<'a>,
    font: Font,
    columns: usize,
    rows: usize,
}

impl<'a> Console<'a> {
    /// Makes a console without a surface.
    pub const fn new() -> Console<'a> {
        Console { shown: None, lines: [[0; COLUMNS]; LINES], last: 0, column: 0, top: 0 }
    }

    /// Shows text on a surface from now on. Returns whether the surface is large enough.
    pub fn open(&mut self, mut surface: Surface<'a>) -> bool {
        let font = Font::of(&surface);
        let columns = (surface.width() / font.width()).min(COLUMNS);
        let rows = (surface.height() / font.height()).min(LINES);
        if columns < 2 || rows < 2 {
            return false;
        }
        surface.clear(0);
        self.shown = Some(Shown { surface, font, columns, rows });
        true
    }

    /// Returns the surface, if there is one.
    pub fn surface(&mut self) -> Option<&mut Surface<'a>> {
        self.shown.as_mut().map(|shown| &mut shown.surface)
    }

    fn write_byte(&mut self, byte: u8) {
        let Some(shown) = &mut self.shown else { return };
        if byte == b'\n' || self.column == shown.columns {
            self.end_line();
        }
        let Some(shown) = &mut self.shown else { return };
        if byte == b'\n' {
            return;
        }
        self.lines[self.last % LINES][self.column] = byte;
        shown.draw(self.last - self.top, self.column, &[byte]);
        self.column += 1;
    }

    fn end_line(&mut self) {
        self.last += 1;
        self.column = 0;
        self.lines[self.last % LINES].fill(BLANK);
        let rows = self.shown.as_ref().map_or(LINES, |shown| shown.rows);
        if self.last - self.top >= rows {
            self.top = self.last - rows / 2;
            self.redraw(self.top..self.last);
        }
    }

    /// Draws these lines and nothing else.
    fn redraw(&mut self, lines: core::ops::Range<usize>) {
        let Some(shown) = &mut self.shown else { return };
        shown.surface.clear(0);
        for (row, line) in lines.enumerate() {
            let line = &self.lines[line % LINES];
            let end = line.iter().rposition(|byte| *byte > BLANK).map_or(0, |last| last + 1);
            shown.draw(row, 0, &line[..end]);
        }
    }

    /// Returns the number of the first line that is kept.
    fn first(&self) -> usize {
        (self.last + 1).saturating_sub(LINES)
    }

    /// Returns the rows of text on a page: all but the last, which shows the page number.
    fn page_rows(&self) -> usize {
        self.shown.as_ref().map_or(LINES, |shown| shown.rows - 1)
    }

    /// Returns the number of pages of the lines that are kept.
    pub fn pages(&self) -> usize {
        (self.last - self.first()).div_ceil(self.page_rows())
    }

    /// Draws a page of the lines that are kept, numbered from 0, and `footer` below it.
    pub fn draw_page(&mut self, page: usize, footer: &str) {
        let start = self.first() + page * self.page_rows();
        self.redraw(start..self.last.min(start + self.page_rows()));
        if let Some(shown) = &mut self.shown {
            shown.draw(shown.rows - 1, 0, footer.as_bytes());
        }
    }
}

impl Default for Console<'_> {
    fn default() -> Self {
        Console::new()
    }
}

impl Shown<'_> {
    fn draw(&mut self, row: usize, column: usize, text: &[u8]) {
        let at = (column * self.font.width(), row * self.font.height());
        self.font.draw(&mut self.surface, at, text, Ink::White);
    }
}

impl fmt::Write for Console<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            self.write_byte(u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(b'?'));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::Layout;
    use core::fmt::Write;
    use std::{boxed::Box, format, vec, vec::Vec};

    const ROWS: usize = 6;

    /// Returns the contents of a surface of 20 letters and [`ROWS`] lines after `use_console`.
    fn shown(use_console: impl FnOnce(&mut Console)) -> Vec<u8> {
        let layout = Layout { width: 20 * 7, height: ROWS * 16, stride: 20 * 7, pixel_bytes: 1 };
        let mut bytes = vec![9; layout.stride * layout.height];
        let mut console = Box::new(Console::new());
        assert!(console.open(Surface::new(&mut bytes, layout).unwrap()));
        use_console(&mut console);
        drop(console);
        bytes
    }

    /// Returns the contents for these lines, written on an empty surface.
    fn lines(lines: &[&str]) -> Vec<u8> {
        assert!(lines.len() <= ROWS);
        shown(|console| console.write_str(&lines.join("\n")).unwrap())
    }

    #[test]
    fn text_is_drawn_and_long_lines_are_broken() {
        let blank = lines(&[]);
        assert!(blank.iter().all(|level| *level == 0));
        assert_ne!(lines(&["a"]), blank);
        assert_ne!(lines(&["a"]), lines(&["b"]));
        assert_eq!(
            lines(&["123456789 123456789 break"]),
            lines(&["123456789 123456789 ", "break"])
        );
        assert_eq!(lines(&["µ"]), lines(&["?"]));
    }

    #[test]
    fn a_full_surface_scrolls_by_half() {
        let numbered = |count: usize| {
            shown(|console| (0..count).for_each(|i| writeln!(console, "line {i}").unwrap()))
        };
        assert_eq!(numbered(5), lines(&["line 0", "line 1", "line 2", "line 3", "line 4"]));
        assert_eq!(numbered(6), lines(&["line 3", "line 4", "line 5"]));
        assert_eq!(numbered(7), lines(&["line 3", "line 4", "line 5", "line 6"]));
    }

    #[test]
    fn pages_have_all_lines_that_are_kept() {
        let mut pages = 0;
        let page = |count: usize, page: usize, pages: &mut usize| {
            shown(|console| {
                (0..count).for_each(|i| writeln!(console, "line {i}").unwrap());
                *pages = console.pages();
                console.draw_page(page, "footer");
            })
        };
        let last = page(7, 1, &mut pages);
        assert_eq!(pages, 2);
        assert_eq!(last, lines(&["line 5", "line 6", "", "", "", "footer"]));
        let oldest = page(300, 0, &mut pages);
        assert_eq!(pages, (LINES - 1).div_ceil(ROWS - 1));
        let first = 300 + 1 - LINES;
        let expected: Vec<_> = (first..first + 5).map(|i| format!("line {i}")).collect();
        let mut expected: Vec<&str> = expected.iter().map(|line| &**line).collect();
        expected.push("footer");
        assert_eq!(oldest, lines(&expected));
    }

    #[test]
    fn a_console_without_a_surface_drops_text() {
        let mut console = Box::new(Console::new());
        console.write_str("text\n").unwrap();
        assert!(console.surface().is_none());
        let layout = Layout { width: 8, height: 8, stride: 8, pixel_bytes: 1 };
        let mut bytes = [0; 64];
        assert!(!console.open(Surface::new(&mut bytes, layout).unwrap()), "too small");
    }
}
