//! `cargo xtask docs`: draws the diagrams of the pages.
//!
//! The source of a diagram is a text picture in `docs/diagrams`, which is also the diagram's
//! alternative for readers of plain text. The drawing beside it, in SVG, is made from it and
//! nothing else; a test compares the two.

mod picture;

use std::{fs, path::PathBuf};

use crate::{
    Failure, Result, output,
    project::{self, Project},
};

/// Where pictures and drawings are.
const FOLDER: &str = "docs/diagrams";

/// Does the task: draws every picture.
///
/// # Errors
/// A picture cannot be read or a drawing not written.
pub fn main(project: &Project) -> Result<u8> {
    for path in pictures(project)? {
        let drawing = picture::draw(&String::from_utf8_lossy(&project::read(&path)?));
        let to = path.with_extension("svg");
        project::write(&to, drawing.as_bytes())?;
        output::note(format_args!("xtask: {} is drawn", to.display()));
    }
    Ok(0)
}

/// The pictures, in the order of their names.
fn pictures(project: &Project) -> Result<Vec<PathBuf>> {
    let folder = project.root.join(FOLDER);
    let entries = fs::read_dir(&folder).map_err(|error| Failure::io("read", &folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawing_is_that_of_its_picture() {
        let paths = pictures(&Project::here()).unwrap();
        assert!(!paths.is_empty());
        for path in paths {
            let picture = fs::read_to_string(&path).unwrap();
            let drawing = fs::read_to_string(path.with_extension("svg")).unwrap_or_default();
            let is_drawn = picture::draw(&picture) == drawing;
            assert!(is_drawn, "{} has changed: run `cargo xtask docs`", path.display());
            let width = picture.lines().map(|line| line.chars().count()).max();
            assert!(width <= Some(80), "{} has lines over 80 columns", path.display());
        }
    }
}
