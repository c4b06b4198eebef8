//! Disk images: the one that runs and tests boot, and, as `cargo xtask image`, one for a USB stick.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    build::{self, Built},
    process::Child,
    project::{self, Project},
    ramdisk,
    run::Job,
    setup,
};

/// Options of `cargo xtask image`.
#[derive(Args, Debug)]
pub struct ImageArgs {
    /// The file to write
    #[arg(long, default_value = "tally.img", value_name = "PATH")]
    out: PathBuf,
    #[command(flatten)]
    job: Job,
}

/// Does the task.
///
/// # Errors
/// Something is missing or does not build, or the image cannot be written.
pub fn main(project: &Project, args: &ImageArgs) -> Result<u8> {
    args.job.check()?;
    let library = setup::library(project)?;
    let built = build::all(project, &library)?;
    let line = args.job.command_line("");
    let image = make(project, &built, &built.programs, &library, Some(&line), "stick")?;
    fs::copy(&image, &args.out).map_err(|error| Failure::io("write", &args.out, &error))?;
    println!("{}: boots by UEFI and runs `{line}`", args.out.display());
    Ok(0)
}

/// The image that runs and tests boot: with every program, and its command line from outside.
///
/// # Errors
/// A file cannot be read or written, or the image maker fails.
pub fn for_machine(project: &Project, built: &Built, library: &Path) -> Result<PathBuf> {
    let programs: Vec<PathBuf> = built.programs.iter().chain(&built.test_guests).cloned().collect();
    make(project, built, &programs, library, None, "machine")
}

fn make(
    project: &Project,
    built: &Built,
    programs: &[PathBuf],
    library: &Path,
    command_line: Option<&str>,
    name: &str,
) -> Result<PathBuf> {
    let file = |extension| project.images().join(name).with_extension(extension);
    let (image, ramdisk_file, stamp_file) = (file("img"), file("tar"), file("stamp"));
    let ramdisk = ramdisk::make(programs, library, command_line)?;
    let stamp =
        stamp([&project::read(&built.kernel)?, &ramdisk, &project::read(&built.image_maker)?]);
    if image.is_file() && fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        return Ok(image);
    }
    project::write(&ramdisk_file, &ramdisk)?;
    // A stamp must never stand beside an image that is not its own.
    let _ = fs::remove_file(&stamp_file);
    let mut maker = Command::new(&built.image_maker);
    let part = file("img-part");
    let made = Child::spawn(maker.arg(&built.kernel).arg(&ramdisk_file).arg(&part))
        .and_then(|mut child| child.wait())
        .map_err(|error| Failure::io("run", &built.image_maker, &error))?;
    if !made.success() {
        return Err(Failure::new(
            ExitStatus::BuildFailed,
            format!("the image maker could not write {}", image.display()),
        ));
    }
    // Renamed, not rewritten: another run may be booting from the old one.
    fs::rename(&part, &image).map_err(|error| Failure::io("write", &image, &error))?;
    project::write(&stamp_file, stamp.as_bytes())?;
    Ok(image)
}

/// Changes when one of `inputs` does; nobody is expected to forge it.
fn stamp(inputs: [&[u8]; 3]) -> String {
    let mut hasher = DefaultHasher::new();
    inputs.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_tells_where_one_input_ends() {
        assert_eq!(stamp([b"a", b"b", b""]), stamp([b"a", b"b", b""]));
        assert_ne!(stamp([b"a", b"b", b""]), stamp([b"ab", b"", b""]));
    }
}
