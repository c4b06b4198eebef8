//! Reads the codes on a photograph. The code is a separate crate, so that tests compile it with
//! optimization: photographs have millions of pixels.

#![forbid(unsafe_code)]

pub mod shot;
mod spots;

use std::{error::Error, fmt, fs, io, path::Path};

use image::{
    GrayImage,
    imageops::{self, FilterType},
};
use rqrr::PreparedImage;

use self::spots::{SIDES, Spot, spots};

/// Upper bound of a picture's bytes per byte of its file: the maximum ratio of deflate, which PNG
/// uses. A file whose header states more is damaged.
const BYTES_A_BYTE: u64 = 1032;
/// Size of a picture in bytes that is accepted from any file.
const LEAST_BYTES: u64 = 1 << 20;

/// Transformation of a picture of a code before it is read.
struct Attempt {
    /// Whether the picture is turned by a quarter.
    turned: bool,
    /// Pixels of the longer side.
    side: u32,
    /// Radius of sharpening, or 0.
    radius: f32,
}

/// Transformations to try in turn. A reading fails where it confuses modules; another
/// transformation has other errors, and most codes are read in one of the first attempts. The
/// library searches row by row, so a picture that is unreadable at every size is often readable
/// when turned.
const ATTEMPTS: [Attempt; 12] = [
    Attempt { turned: false, side: 700, radius: 0.0 },
    Attempt { turned: false, side: 1000, radius: 0.0 },
    Attempt { turned: true, side: 700, radius: 0.0 },
    Attempt { turned: false, side: 1000, radius: 4.0 },
    Attempt { turned: true, side: 1000, radius: 4.0 },
    Attempt { turned: false, side: 1400, radius: 0.0 },
    Attempt { turned: false, side: 1400, radius: 6.0 },
    Attempt { turned: true, side: 1400, radius: 6.0 },
    Attempt { turned: false, side: 500, radius: 0.0 },
    Attempt { turned: true, side: 500, radius: 0.0 },
    Attempt { turned: false, side: 1000, radius: 8.0 },
    Attempt { turned: true, side: 1000, radius: 8.0 },
];

/// A photograph.
#[derive(Debug)]
pub struct Photo(GrayImage);

/// Reason why a file cannot be used as a photograph.
#[derive(Debug)]
pub enum Unreadable {
    /// The file cannot be read.
    File(io::Error),
    /// The file is not a PNG, JPEG or PPM picture.
    Picture(image::ImageError),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::File(error) => error.fmt(f),
            Unreadable::Picture(error) => write!(f, "no PNG, JPEG or PPM picture: {error}"),
        }
    }
}

impl Error for Unreadable {}

impl Photo {
    /// Reads a photograph.
    ///
    /// # Errors
    /// The file cannot be read, or is no picture.
    pub fn read(file: &Path) -> Result<Photo, Unreadable> {
        let bytes = fs::metadata(file).map_err(Unreadable::File)?.len();
        let mut reader = image::ImageReader::open(file)
            .and_then(|reader| reader.with_guessed_format())
            .map_err(Unreadable::File)?;
        let mut limits = image::Limits::default();
        let most = bytes.saturating_mul(BYTES_A_BYTE).max(LEAST_BYTES);
        limits.max_alloc = limits.max_alloc.map(|known| known.min(most));
        reader.limits(limits);
        Ok(Photo(reader.decode().map_err(Unreadable::Picture)?.to_luma8()))
    }

    /// Contents of the readable codes for which `is_wanted` holds.
    pub fn codes(&self, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let spots: Vec<Spot> = SIDES.iter().flat_map(|side| spots(&self.0, *side)).collect();
        let mut read: Vec<(Spot, Vec<u8>)> = Vec::new();
        for (attempt, spot) in ATTEMPTS.iter().flat_map(|it| spots.iter().map(move |s| (it, s))) {
            // Dark areas around a screen's codes are spots too, and so are parts of large codes.
            if !read.iter().any(|(known, _)| spot.is_about(*known)) {
                let code = attempt.read(&self.0, *spot).into_iter().find(|code| is_wanted(code));
                read.extend(code.map(|code| (*spot, code)));
            }
        }
        read.into_iter().map(|(_, code)| code).collect()
    }
}

impl Attempt {
    /// Contents of the codes at a spot of a photograph.
    fn read(&self, photo: &GrayImage, spot: Spot) -> Vec<Vec<u8>> {
        let picture = imageops::crop_imm(photo, spot.x, spot.y, spot.width, spot.height);
        let scale = self.side as f32 / spot.side() as f32;
        let scaled = |side: u32| ((side as f32 * scale) as u32).max(1);
        let (width, height) = (scaled(spot.width), scaled(spot.height));
        let mut picture = imageops::resize(&*picture, width, height, FilterType::CatmullRom);
        if self.turned {
            picture = imageops::rotate90(&picture);
        }
        if self.radius > 0.0 {
            picture = imageops::unsharpen(&picture, self.radius, 0);
        }
        let mut prepared = PreparedImage::prepare(picture);
        let contents = |grid: &rqrr::Grid<_>| {
            let mut bytes = Vec::new();
            grid.decode_to(&mut bytes).ok().map(|_| bytes)
        };
        prepared.detect_grids().iter().filter_map(contents).collect()
    }
}
