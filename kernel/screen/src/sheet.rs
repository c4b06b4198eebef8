//! Pages of codes.

use qrcodegen_no_heap::{Mask, QrCode, QrCodeEcc, Version};
use tally_abi::text::FixedText;

use crate::{
    font::{Font, Ink},
    part::{MAX_PART_BYTES, Parts},
    surface::Surface,
};

/// Largest version of a code that is used: 57 modules in a row. Larger ones are read from blurred
/// photographs much less often.
const MAX_VERSION: Version = Version::new(10);
/// Mask of all codes. To find the mask with the fewest patterns that are hard to read, an encoder
/// makes the code with each of the eight, which takes most of the time of a page. Parts are
/// compressed, so one mask is as good as another.
const MASK: Mask = Mask::new(0);
/// White modules around a code (ISO/IEC 18004, "Quiet zone").
const QUIET: usize = 4;
/// Divisor of the surface's height that gives the smallest module: a photograph of the whole
/// surface then has several pixels for each module.
const MODULES_OF_HEIGHT: usize = 140;
/// Minimum pixels of a module's side.
const MIN_MODULE: usize = 4;

/// Layout of a run's codes on a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sheet {
    columns: usize,
    rows: usize,
    /// Pixels of a module's side.
    module: usize,
    /// Modules of a cell's side: a code and the white border around it.
    modules: usize,
}

/// Buffers for one code.
struct Buffers {
    data: [u8; MAX_VERSION.buffer_len()],
    code: [u8; MAX_VERSION.buffer_len()],
}

impl Buffers {
    fn new() -> Buffers {
        Buffers { data: [0; _], code: [0; _] }
    }

    /// Makes the code of a part.
    fn encode(&mut self, parts: &Parts, index: u16) -> QrCode<'_> {
        let mut part = [0; MAX_PART_BYTES];
        let length = parts.write(index, &mut part);
        self.data[..length].copy_from_slice(&part[..length]);
        let (data, code) = (&mut self.data, &mut self.code);
        let (level, least, most) = (QrCodeEcc::Medium, Version::MIN, MAX_VERSION);
        QrCode::encode_binary(data, length, code, level, least, most, Some(MASK), false)
            .expect("a part fits into a code of the largest version")
    }
}

impl Sheet {
    /// Returns the sheet for `parts`; `None` if the surface is too small for a code.
    pub fn of(surface: &Surface<'_>, parts: &Parts) -> Option<Sheet> {
        let modules = Buffers::new().encode(parts, 0).size() as usize + 2 * QUIET;
        let letter = Font::of(surface).height();
        let grid = |module: usize| Sheet {
            columns: surface.width() / (modules * module),
            // A line of text above all codes, one below, and one below each.
            rows: surface.height().saturating_sub(2 * letter) / (modules * module + letter),
            module,
            modules,
        };
        let smallest = MIN_MODULE.max(surface.height() / MODULES_OF_HEIGHT);
        let wanted = grid(smallest).codes().min(parts.count().into());
        // Uses the largest modules at which as many codes fit.
        let sheets = (smallest..=surface.height()).map(grid);
        sheets.take_while(|sheet| wanted > 0 && sheet.codes() >= wanted).last()
    }

    /// Returns the number of codes on a page.
    fn codes(&self) -> usize {
        self.columns * self.rows
    }

    /// Returns the number of pages for all codes.
    pub fn pages(&self, parts: &Parts) -> usize {
        usize::from(parts.count()).div_ceil(self.codes())
    }

    /// Draws a page, numbered from 0, and `footer` below it.
    pub fn draw(&self, surface: &mut Surface<'_>, parts: &Parts, page: usize, footer: &str) {
        let font = Font::of(surface);
        surface.clear(255);
        let (run, count) = (parts.run(), parts.count());
        let header =
            FixedText::<64>::of(format_args!("Tally: results of run {run:08x} in {count} codes"));
        font.draw(surface, (QUIET, 0), header.as_str().as_bytes(), Ink::Black);
        let bottom = surface.height() - font.height();
        font.draw(surface, (QUIET, bottom), footer.as_bytes(), Ink::Black);
        let side = self.modules * self.module;
        let first = page * self.codes();
        for (place, index) in (first..parts.count().into()).take(self.codes()).enumerate() {
            let (column, row) = (place % self.columns, place / self.columns);
            let (x, y) = (column * side, font.height() + row * (side + font.height()));
            self.draw_code(surface, &Buffers::new().encode(parts, index as u16), (x, y));
            let label = format_args!("code {} of {}", index + 1, parts.count());
            let label = FixedText::<32>::of(label);
            let at = (x + QUIET * self.module, y + side);
            font.draw(surface, at, label.as_str().as_bytes(), Ink::Black);
        }
    }

    /// Draws a code into the cell whose top left corner is (`x`, `y`).
    fn draw_code(&self, surface: &mut Surface<'_>, code: &QrCode<'_>, (x, y): (usize, usize)) {
        let side = code.size();
        for (row, column) in (0..side).flat_map(|row| (0..side).map(move |column| (row, column))) {
            if code.get_module(column, row) {
                let pixels = |module: i32| (module as usize + QUIET) * self.module;
                let at = (x + pixels(column), y + pixels(row));
                surface.fill(at, (self.module, self.module), 0);
            }
        }
    }
}
