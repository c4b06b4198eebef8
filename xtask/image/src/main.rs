//! Builds what UEFI firmware boots: `tally-image disk|folder KERNEL RAMDISK OUT`.
//!
//! `disk` writes an image for a USB stick. `folder` writes the boot loader and the files that it
//! loads under the names that it expects. Only `cargo xtask` builds and calls this program.

use std::{env, ffi::OsString, path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let [kind, kernel, ramdisk, out] = words.as_slice() else {
        return usage();
    };
    let mut builder = bootloader::UefiBoot::new(kernel.as_ref());
    builder.set_ramdisk(ramdisk.as_ref());
    let out = PathBuf::from(out);
    let made = match kind.to_str() {
        Some("disk") => builder.create_disk_image(&out),
        Some("folder") => builder.create_pxe_tftp_folder(&out),
        _ => return usage(),
    };
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tally-image: cannot write {}: {error:#}", out.display());
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: tally-image disk|folder KERNEL RAMDISK OUT");
    ExitCode::from(64)
}
