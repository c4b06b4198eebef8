//! Text on a surface.

use noto_sans_mono_bitmap::{
    FontWeight, RasterHeight, RasterizedChar, get_raster, get_raster_width,
};

use crate::surface::Surface;

/// Number of rows of a surface from which letters have twice the size.
const LARGE_FROM: usize = 1600;

/// Colours of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// White on black.
    White,
    /// Black on white.
    Black,
}

/// A font in which all letters have the same size.
#[derive(Clone, Copy, Debug)]
pub struct Font(RasterHeight);

impl Font {
    /// Returns the font for a surface.
    pub(crate) fn of(surface: &Surface<'_>) -> Font {
        let is_large = surface.height() >= LARGE_FROM;
        Font(if is_large { RasterHeight::Size32 } else { RasterHeight::Size16 })
    }

    /// Returns the width of a letter in pixels.
    pub(crate) fn width(self) -> usize {
        get_raster_width(FontWeight::Regular, self.0)
    }

    /// Returns the height of a letter in rows.
    pub(crate) fn height(self) -> usize {
        self.0.val()
    }

    /// Returns a letter of ASCII; a question mark for any other byte.
    fn letter(self, byte: u8) -> Option<RasterizedChar> {
        let raster = |c| get_raster(c, FontWeight::Regular, self.0);
        raster(char::from(byte)).filter(|_| byte.is_ascii()).or_else(|| raster('?'))
    }

    /// Draws letters of ASCII from their top left corner (`x`, `y`) on.
    pub(crate) fn draw(
        self,
        surface: &mut Surface<'_>,
        (x, y): (usize, usize),
        text: &[u8],
        ink: Ink,
    ) {
        let level = |level: u8| if ink == Ink::White { level } else { 255 - level };
        for (byte, x) in text.iter().zip((x..).step_by(self.width())) {
            let Some(letter) = self.letter(*byte) else { continue };
            for (row, y) in letter.rows().zip(y..) {
                surface.write(x, y, row.iter().map(|covered| level(*covered)));
            }
        }
    }
}
