//! Tests with photographs of pages of codes as the kernel draws them: rotated, blurred, noisy,
//! shuffled.

use std::{fs, path::PathBuf};

use image::{GrayImage, imageops};
use tally_abi::{ExitStatus, wire::Message};
use tally_photo::{
    Photo,
    shot::{STRAIGHT, Shot, photograph},
};
use tally_screen::{Layout, Part, Parts, Sheet, Surface};

use super::messages;

/// Messages with the variety of a run's, enough for some pages.
fn run(seed: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut state = seed;
    for pid in 0..32 {
        let noise: [u8; 32] = std::array::from_fn(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        let message = Message::Output { pid, fd: 1, bytes: &noise };
        bytes.extend_from_slice(message.encode(&mut [0; 64]).unwrap());
    }
    bytes
}

/// The pages that a screen of this size shows for these messages.
fn pages(messages: &[u8], width: usize, height: usize) -> Vec<GrayImage> {
    let parts = Parts::of(messages).unwrap();
    let layout = Layout { width, height, stride: width, pixel_bytes: 1 };
    let mut bytes = vec![0; width * height];
    let sheet = Sheet::of(&Surface::new(&mut bytes, layout).unwrap(), &parts).unwrap();
    let draw = |page| {
        let mut bytes = vec![0; width * height];
        sheet.draw(&mut Surface::new(&mut bytes, layout).unwrap(), &parts, page, "footer");
        GrayImage::from_raw(width as u32, height as u32, bytes).unwrap()
    };
    (0..sheet.pages(&parts)).map(draw).collect()
}

/// A folder of photographs. Dropping it removes the folder.
struct Album(PathBuf);

impl Album {
    fn new(name: &str) -> Album {
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Album(folder)
    }

    fn add(&self, name: &str, photo: &GrayImage) -> PathBuf {
        let file = self.0.join(name);
        photo.save(&file).unwrap();
        file
    }
}

impl Drop for Album {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refused(files: &[PathBuf]) -> (ExitStatus, String) {
    let failure = messages(files).unwrap_err();
    assert!(!failure.message.contains('\n'), "one line: {failure}");
    (failure.status, failure.message)
}

#[test]
fn crooked_and_blurred_photographs_in_any_order_give_the_messages() {
    let run = run(1);
    let pages = pages(&run, 800, 600);
    assert!(pages.len() > 1);
    let shots = [
        ("jpg", Shot { turned: 174.0, slanted: -0.1, scale: 1.5, blur: 0.8 }),
        ("ppm", Shot { turned: -31.0, slanted: 0.15, scale: 1.6, blur: 0.0 }),
    ];
    for (kind, shot) in shots {
        let album = Album::new(&format!("crooked-{}", shot.turned));
        let photo = |(i, page)| album.add(&format!("{i}.{kind}"), &photograph(page, shot));
        let mut files: Vec<PathBuf> = pages.iter().enumerate().map(photo).collect();
        files.reverse();
        let read = messages(&files).unwrap_or_else(|failure| panic!("{}: {failure}", shot.turned));
        assert_eq!(read, run, "{}", shot.turned);
    }
}

#[test]
fn a_photograph_that_one_code_fills_is_read() {
    // A page that has room for one code.
    let page = &pages(&run(2), 320, 360)[0];
    let photo = photograph(page, Shot { turned: 12.0, slanted: 0.08, scale: 3.0, blur: 0.6 });
    let of_side = |percent| photo.width() * percent / 100;
    let (x, y, side) = (of_side(24), of_side(21), of_side(46));
    let near = imageops::crop_imm(&photo, x, y, side, side);
    let album = Album::new("filled");
    let file = album.add("near.png", &near.to_image());
    let codes = Photo::read(&file).unwrap().codes(|_| true);
    assert_eq!(codes.iter().map(|code| Part::read(code).unwrap().index).collect::<Vec<_>>(), [0]);
}

#[test]
fn codes_that_are_missing_are_numbered() {
    let album = Album::new("missing");
    let pages = pages(&run(2), 800, 600);
    let file = album.add("last.png", pages.last().unwrap());
    let (status, why) = refused(&[file]);
    assert_eq!(status, ExitStatus::CodesMissing);
    assert!(why.starts_with("missing: code 1, 2, 3"), "{why}");
}

#[test]
fn codes_of_two_runs_and_photographs_without_codes_are_named() {
    let album = Album::new("foreign");
    let first = album.add("first.png", &pages(&run(3), 800, 600)[0]);
    let second = album.add("second.png", &pages(&run(4), 800, 600)[0]);
    let (status, why) = refused(&[first.clone(), second.clone()]);
    assert_eq!(status, ExitStatus::SeveralRuns);
    assert!(why.contains("first.png") && why.contains("second.png"), "{why}");

    let blank = album.add("blank.png", &GrayImage::new(300, 200));
    let (status, why) = refused(&[blank]);
    assert_eq!(status, ExitStatus::NoCodes);
    assert!(why.contains("blank.png: no code"), "{why}");

    let text = album.0.join("text.png");
    fs::write(&text, "no picture").unwrap();
    let (status, why) = refused(&[first, text]);
    assert_eq!(status, ExitStatus::NoCodes);
    assert!(why.contains("text.png: no PNG"), "{why}");
    assert_eq!(refused(&[album.0.join("none.png")]).0, ExitStatus::HostError);
}

#[test]
fn a_photograph_beside_complete_ones_may_lack_codes() {
    let album = Album::new("beside");
    let run = run(5);
    let photo = |(i, page)| album.add(&format!("{i}.png"), &photograph(page, STRAIGHT));
    let pages = pages(&run, 800, 600);
    let mut files: Vec<PathBuf> = pages.iter().enumerate().map(photo).collect();
    files.push(album.add("blank.png", &GrayImage::new(300, 200)));
    assert_eq!(messages(&files).unwrap(), run);
}
