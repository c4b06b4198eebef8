//! Reads the codes on a photograph. A crate of its own, so that tests compile it with optimization:
//! photographs have millions of pixels.

#![forbid(unsafe_code)]

pub mod shot;
mod spots;

use std::{error::Error, fmt, io, path::Path};

use image::{
    GrayImage,
    imageops::{self, FilterType},
};
use rqrr::PreparedImage;

use self::spots::{Spot, spots};

/// How a picture of a code is changed before it is read: the pixels of its longer side, and the
/// radius in which it is sharpened, or 0. A reading fails where it takes one module for another;
/// another picture has other errors, and most codes are read by one of the first.
const ATTEMPTS: [(u32, f32); 7] =
    [(700, 0.0), (1000, 0.0), (1000, 4.0), (1400, 0.0), (1400, 6.0), (500, 0.0), (1000, 8.0)];

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
        let reader = image::ImageReader::open(file)
            .and_then(|reader| reader.with_guessed_format())
            .map_err(Unreadable::File)?;
        Ok(Photo(reader.decode().map_err(Unreadable::Picture)?.to_luma8()))
    }

    /// The contents of the codes that can be read and that `is_wanted`.
    pub fn codes(&self, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let spots = spots(&self.0);
        let read = |spot: &Spot| {
            let picture = imageops::crop_imm(&self.0, spot.x, spot.y, spot.width, spot.height);
            let picture = picture.to_image();
            ATTEMPTS.iter().find_map(|(side, radius)| {
                let codes = read(&picture, *side as f32 / spot.side() as f32, *radius);
                codes.into_iter().find(|code| is_wanted(code))
            })
        };
        spots.iter().filter_map(read).collect()
    }
}

/// The contents of the codes that are found on a picture, scaled and sharpened.
fn read(picture: &GrayImage, scale: f32, radius: f32) -> Vec<Vec<u8>> {
    let scaled = |side: u32| ((side as f32 * scale) as u32).max(1);
    let (width, height) = (scaled(picture.width()), scaled(picture.height()));
    let mut picture = imageops::resize(picture, width, height, FilterType::CatmullRom);
    if radius > 0.0 {
        picture = imageops::unsharpen(&picture, radius, 0);
    }
    let mut prepared = PreparedImage::prepare(picture);
    let contents = |grid: &rqrr::Grid<_>| {
        let mut bytes = Vec::new();
        grid.decode_to(&mut bytes).ok().map(|_| bytes)
    };
    prepared.detect_grids().iter().filter_map(contents).collect()
}
