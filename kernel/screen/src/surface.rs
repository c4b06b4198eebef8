//! A framebuffer as rows of grey pixels.

/// Layout of a framebuffer in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Pixels of a row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
    /// Pixels from the start of one row to the start of the next, at least `width`.
    pub stride: usize,
    /// Bytes of a pixel, 1 to [`Surface::MAX_PIXEL_BYTES`].
    pub pixel_bytes: usize,
}

/// A framebuffer. Every byte of a pixel is set to the pixel's level, from 0, black, to 255, white:
/// this gives grey in each format whose colours have whole bytes, and black and white in all.
#[derive(Debug)]
pub struct Surface<'a> {
    bytes: &'a mut [u8],
    layout: Layout,
}

impl<'a> Surface<'a> {
    /// Maximum bytes of a pixel.
    pub const MAX_PIXEL_BYTES: usize = 4;

    /// Makes a surface in `bytes`; `None` if these are too few, or a pixel has too many.
    pub fn new(bytes: &'a mut [u8], layout: Layout) -> Option<Surface<'a>> {
        let Layout { width, height, stride, pixel_bytes } = layout;
        let fits = (1..=Surface::MAX_PIXEL_BYTES).contains(&pixel_bytes)
            && stride >= width
            && bytes.len() / pixel_bytes / stride.max(1) >= height;
        fits.then_some(Surface { bytes, layout })
    }

    /// Returns the pixels of a row.
    pub fn width(&self) -> usize {
        self.layout.width
    }

    /// Returns the number of rows.
    pub fn height(&self) -> usize {
        self.layout.height
    }

    /// Returns the bytes of up to `pixels` pixels of row `y` from `x` on; empty outside the
    /// surface.
    fn row(&mut self, x: usize, y: usize, pixels: usize) -> &mut [u8] {
        let Layout { width, height, stride, pixel_bytes } = self.layout;
        if x >= width || y >= height {
            return &mut [];
        }
        let start = (y * stride + x) * pixel_bytes;
        &mut self.bytes[start..start + pixels.min(width - x) * pixel_bytes]
    }

    /// Sets the pixels of a rectangle to a level.
    pub(crate) fn fill(&mut self, (x, y): (usize, usize), size: (usize, usize), level: u8) {
        for y in y..y.saturating_add(size.1).min(self.layout.height) {
            self.row(x, y, size.0).fill(level);
        }
    }

    /// Sets every pixel to a level.
    pub(crate) fn clear(&mut self, level: u8) {
        self.fill((0, 0), (self.layout.width, self.layout.height), level);
    }

    /// Sets pixels of row `y` from `x` on to levels, at most [`Self::MAX_LEVELS`], by one write,
    /// because each write to a framebuffer may be slow.
    pub(crate) fn write(&mut self, x: usize, y: usize, levels: impl Iterator<Item = u8>) {
        let mut bytes = [0; Surface::MAX_LEVELS * Surface::MAX_PIXEL_BYTES];
        let mut pixels = 0;
        let places = bytes.chunks_exact_mut(self.layout.pixel_bytes).take(Surface::MAX_LEVELS);
        for (place, level) in places.zip(levels) {
            place.fill(level);
            pixels += 1;
        }
        let row = self.row(x, y, pixels);
        row.copy_from_slice(&bytes[..row.len()]);
    }

    /// Maximum number of pixels for [`Self::write`].
    pub(crate) const MAX_LEVELS: usize = 32;
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { width: 3, height: 2, stride: 4, pixel_bytes: 2 };

    #[test]
    fn what_is_outside_is_not_drawn_and_the_end_of_a_row_is_left_alone() {
        let mut bytes = [7; 16];
        let mut surface = Surface::new(&mut bytes, LAYOUT).unwrap();
        surface.fill((1, 1), (9, 9), 1);
        surface.write(2, 0, [2, 3].into_iter());
        surface.write(5, 9, [4].into_iter());
        assert_eq!(bytes, [7, 7, 7, 7, 2, 2, 7, 7, 7, 7, 1, 1, 1, 1, 7, 7]);
    }

    #[test]
    fn a_layout_that_does_not_fit_is_refused() {
        let mut bytes = [0; 16];
        for (stride, pixel_bytes) in [(4, 3), (4, 0), (4, 5), (2, 2)] {
            let layout = Layout { stride, pixel_bytes, ..LAYOUT };
            assert!(Surface::new(&mut bytes, layout).is_none(), "{layout:?}");
        }
    }
}
