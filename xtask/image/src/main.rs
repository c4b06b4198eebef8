//! Builds an image for a USB stick that UEFI firmware boots: `tally-image KERNEL RAMDISK OUT`.
//!
//! Only `cargo xtask` builds and calls this program.

use std::{env, ffi::OsString, path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let [kernel, ramdisk, out] = words.as_slice() else {
        return usage();
    };
    let mut builder = bootloader::UefiBoot::new(kernel.as_ref());
    builder.set_ramdisk(ramdisk.as_ref());
    let out = PathBuf::from(out);
    match builder.create_disk_image(&out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tally-image: cannot write {}: {error:#}", out.display());
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: tally-image KERNEL RAMDISK OUT");
    ExitCode::from(64)
}
