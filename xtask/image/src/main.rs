//! Makes a UEFI disk image: `tally-image KERNEL RAMDISK IMAGE`.
//!
//! `cargo xtask` builds and calls it; nobody else needs to.

use std::{env, path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    let paths: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [kernel, ramdisk, image] = paths.as_slice() else {
        eprintln!("tally-image: call it as `tally-image KERNEL RAMDISK IMAGE`");
        return ExitCode::from(64);
    };
    let mut builder = bootloader::UefiBoot::new(kernel);
    builder.set_ramdisk(ramdisk);
    match builder.create_disk_image(image) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tally-image: cannot make {}: {error:#}", image.display());
            ExitCode::FAILURE
        }
    }
}
