//! Search for the places of codes on a photograph.
//!
//! The library that reads codes confuses corners of neighbouring codes, so it gets a picture of
//! each code alone. A code is about half dark, evenly, with white around it: a dark spot about as
//! wide as high may be one. Spots are searched in reduced pictures of the photograph, in which
//! modules run together. The right reduction depends on the share of the photograph that a code
//! fills: at a large size the parts of a code that fills the picture are separate spots; at a small
//! size many codes run together.

use image::{GrayImage, imageops, imageops::FilterType};

/// Sizes of the pictures in which spots are searched: pixels of the longer side.
pub(super) const SIDES: [u32; 3] = [800, 400, 200];
/// Divisor of the picture's side that gives the smallest side of a spot.
const MIN_SPOT: u32 = 20;
/// Divisor of the picture's side that gives the radius around a pixel over which the mean light is
/// taken. A pixel below [`DARK`] times the mean is dark.
const LIGHT_RADIUS: u32 = 16;
const DARK: f32 = 0.92;
/// Radius around a pixel in which this share of pixels must be dark for the pixel to be part of a
/// spot. The radius is smaller than the white margin of a code.
const SPOT_RADIUS: u32 = 3;
const SPOT_SHARE: f32 = 0.3;

/// Rectangle of a photograph, in its pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Spot {
    /// Longer side.
    pub(super) fn side(self) -> u32 {
        self.width.max(self.height)
    }

    /// Returns whether the middle of one of two spots lies in the other, so that they show the same
    /// code.
    pub(super) fn is_about(self, other: Spot) -> bool {
        self.has_middle_of(other) || other.has_middle_of(self)
    }

    fn has_middle_of(self, other: Spot) -> bool {
        let (x, y) = (other.x + other.width / 2, other.y + other.height / 2);
        (self.x..self.x + self.width).contains(&x) && (self.y..self.y + self.height).contains(&y)
    }
}

/// Spots of a photograph that may be codes, with their margins, smallest first. The search uses a
/// picture with `longer` pixels on its longer side.
pub(super) fn spots(photo: &GrayImage, longer: u32) -> Vec<Spot> {
    let scale = (photo.width().max(photo.height()) as f32 / longer as f32).max(1.0);
    let small = |side: u32| ((side as f32 / scale) as u32).max(1);
    let (width, height) = (small(photo.width()), small(photo.height()));
    let small = imageops::resize(photo, width, height, FilterType::Triangle);
    let light = Sums::of(width, height, |x, y| small.get_pixel(x, y).0[0].into());
    let dark = Sums::of(width, height, |x, y| {
        let level = f32::from(small.get_pixel(x, y).0[0]);
        (level < DARK * light.mean(x, y, longer / LIGHT_RADIUS)).into()
    });
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let mut open: Vec<bool> =
        places.map(|(x, y)| dark.mean(x, y, SPOT_RADIUS) > SPOT_SHARE).collect();
    let mut spots = Vec::new();
    while let Some(start) = open.iter().position(|open| *open) {
        let area = take(&mut open, width, start);
        let spot = area.spot(width, height, longer / MIN_SPOT);
        spots.extend(spot.map(|spot| spot.scaled(scale)));
    }
    spots.sort_by_key(|spot| spot.side());
    spots
}

/// Area of connected pixels.
struct Area {
    left: u32,
    top: u32,
    right: u32,
    bottom: u32,
    pixels: u32,
}

/// Removes the pixels connected with `start` from `open`, rows of `width` pixels.
fn take(open: &mut [bool], width: u32, start: usize) -> Area {
    let mut area = Area { left: width, top: u32::MAX, right: 0, bottom: 0, pixels: 0 };
    let mut next = vec![start];
    open[start] = false;
    let row = width as usize;
    while let Some(at) = next.pop() {
        let (x, y) = (at as u32 % width, at as u32 / width);
        (area.left, area.right) = (area.left.min(x), area.right.max(x));
        (area.top, area.bottom) = (area.top.min(y), area.bottom.max(y));
        area.pixels += 1;
        let beside = [
            (x > 0).then(|| at - 1),
            (x + 1 < width).then_some(at + 1),
            at.checked_sub(row),
            Some(at + row),
        ];
        for beside in beside.into_iter().flatten() {
            if open.get(beside) == Some(&true) {
                open[beside] = false;
                next.push(beside);
            }
        }
    }
    area
}

impl Area {
    /// Spot with the area and its margin, if the area may be a code. Each side must have at least
    /// `least` pixels.
    fn spot(&self, width: u32, height: u32, least: u32) -> Option<Spot> {
        let (wide, high) = (self.right - self.left + 1, self.bottom - self.top + 1);
        let is_square = wide <= 2 * high && high <= 2 * wide;
        let is_full = self.pixels >= wide * high / 4;
        let margin = wide.max(high) / 12 + 2;
        let (x, y) = (self.left.saturating_sub(margin), self.top.saturating_sub(margin));
        (wide.min(high) >= least && is_square && is_full).then(|| Spot {
            x,
            y,
            width: (self.right + margin).min(width - 1) - x,
            height: (self.bottom + margin).min(height - 1) - y,
        })
    }
}

impl Spot {
    fn scaled(self, scale: f32) -> Spot {
        let scaled = |pixels: u32| (pixels as f32 * scale) as u32;
        Spot {
            x: scaled(self.x),
            y: scaled(self.y),
            width: scaled(self.width),
            height: scaled(self.height),
        }
    }
}

/// Sums of all rectangles of a picture that begin at its corner.
struct Sums {
    width: u32,
    height: u32,
    sums: Vec<u32>,
}

impl Sums {
    fn of(width: u32, height: u32, value: impl Fn(u32, u32) -> u32) -> Sums {
        let row = width as usize + 1;
        let mut sums = vec![0; row * (height as usize + 1)];
        for y in 0..height {
            let mut sum = 0;
            for x in 0..width {
                sum += value(x, y);
                let above = y as usize * row + x as usize + 1;
                sums[above + row] = sums[above] + sum;
            }
        }
        Sums { width, height, sums }
    }

    /// Mean value of the pixels up to `radius` pixels from one, in rows and in columns.
    fn mean(&self, x: u32, y: u32, radius: u32) -> f32 {
        let (left, top) = (x.saturating_sub(radius), y.saturating_sub(radius));
        let (right, bottom) = ((x + radius + 1).min(self.width), (y + radius + 1).min(self.height));
        let to = |x: u32, y: u32| self.sums[(y * (self.width + 1) + x) as usize];
        let sum = to(right, bottom) + to(left, top) - to(left, bottom) - to(right, top);
        sum as f32 / ((right - left) * (bottom - top)) as f32
    }
}
