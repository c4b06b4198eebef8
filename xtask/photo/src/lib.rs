//! Reads the codes on a photograph. A crate of its own, so that tests compile it with optimization:
//! photographs have millions of pixels.

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

/// Bytes of a picture for each byte of its file: the most that deflate, which PNG uses, packs into
/// one. Pictures have more than a file says in its head only if it is damaged.
const BYTES_A_BYTE: u64 = 1032;
/// Bytes of a picture that any file may give.
const LEAST_BYTES: u64 = 1 << 20;

/// How a picture of a code is changed before it is read.
struct Attempt {
    /// Whether it is turned by a quarter.
    turned: bool,
    /// The pixels of its longer side.
    side: u32,
    /// The radius in which it is sharpened, or 0.
    radius: f32,
}

/// A reading fails where it takes one module for another; another picture has other errors, and
/// most codes are read by one of the first attempts. The library searches row by row, and a picture
/// that it reads in no size is often one that it reads turned.
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

/// Why a file is no photograph.
#[derive(Debug)]
pub enum Unreadable {
    /// The file cannot be read.
    File(io::Error),
    /// It is no PNG, JPEG or PPM picture.
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

    /// The contents of the codes that can be read and that `is_wanted`.
    pub fn codes(&self, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let spots: Vec<Spot> = SIDES.iter().flat_map(|side| spots(&self.0, *side)).collect();
        let mut read: Vec<(Spot, Vec<u8>)> = Vec::new();
        for (attempt, spot) in ATTEMPTS.iter().flat_map(|it| spots.iter().map(move |s| (it, s))) {
            // What is dark around the codes of a screen is a spot, and so are parts of large codes.
            if !read.iter().any(|(known, _)| spot.is_about(*known)) {
                let code = attempt.read(&self.0, *spot).into_iter().find(|code| is_wanted(code));
                read.extend(code.map(|code| (*spot, code)));
            }
        }
        read.into_iter().map(|(_, code)| code).collect()
    }
}

impl Attempt {
    /// The contents of the codes at a spot of a photograph.
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
