//! Makes a UEFI disk image, and writes the boot loader to include in it:
//!
//! - `tally-image boot-loader OUT`
//! - `tally-image disk KERNEL RAMDISK FIRST OUT`, where FIRST is the application started by the
//!   firmware, which includes the boot loader
//!
//! Only `cargo xtask` builds and calls this program.

mod boot_loader;

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    io::Write,
    path::Path,
    process::ExitCode,
};

use boot_loader::Result;

/// File that the firmware starts from a removable disk (UEFI specification 2.10, section 3.5.1.1).
const FIRST: &str = "efi/boot/bootx64.efi";

fn main() -> ExitCode {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let words: Vec<&Path> = words.iter().map(Path::new).collect();
    let (made, out) = match words.as_slice() {
        [what, out] if *what == "boot-loader" => (write_boot_loader(out), out),
        [what, kernel, ramdisk, first, out] if *what == "disk" => {
            (disk(kernel, ramdisk, first, out), out)
        }
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

/// Writes the boot loader.
fn write_boot_loader(out: &Path) -> Result<()> {
    Ok(fs::write(out, boot_loader::laid_out()?)?)
}

/// Writes a disk image, and replaces its boot loader by `first`. The crate refuses files of that
/// name; it leaves a megabyte of the file system free.
fn disk(kernel: &Path, ramdisk: &Path, first: &Path, out: &Path) -> Result<()> {
    let mut builder = bootloader::UefiBoot::new(kernel);
    builder.set_ramdisk(ramdisk);
    builder.create_disk_image(out)?;
    let gpt = gpt::GptConfig::new().writable(false).open(out)?;
    let partition = gpt.partitions().values().next().ok_or("the image has no partition")?;
    let block = *gpt.logical_block_size();
    let start = partition.bytes_start(block)?;
    let end = start + partition.bytes_len(block)?;
    let image = File::options().read(true).write(true).open(out)?;
    let partition = fscommon::StreamSlice::new(image, start, end)?;
    let files = fatfs::FileSystem::new(partition, fatfs::FsOptions::new())?;
    let mut file = files.root_dir().open_file(FIRST)?;
    file.truncate()?;
    file.write_all(&fs::read(first)?)?;
    file.flush()?;
    drop(file);
    files.unmount()?;
    Ok(())
}

fn usage() -> ExitCode {
    eprintln!("usage: tally-image boot-loader OUT");
    eprintln!("       tally-image disk KERNEL RAMDISK FIRST OUT");
    ExitCode::from(64)
}
