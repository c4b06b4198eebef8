//! Makes what UEFI firmware boots: `tally-image disk|folder KERNEL RAMDISK OUT`.
//!
//! `disk` is an image for a USB stick; `folder` holds the boot loader and, under the names that it
//! looks for, the files that it loads. `cargo xtask` builds and calls it; nobody else needs to.

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
            eprintln!("tally-image: cannot make {}: {error:#}", out.display());
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("tally-image: call it as `tally-image disk|folder KERNEL RAMDISK OUT`");
    ExitCode::from(64)
}
