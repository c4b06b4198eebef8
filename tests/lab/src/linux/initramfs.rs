//! The Linux guest's file system: busybox, perf, its libraries, the user's files and the command,
//! as a cpio archive.

use std::{
    io,
    path::{Path, PathBuf},
};

use cpio::{NewcBuilder, newc};

use tally_abi::ExitStatus;
use xtask::{Failure, Result, project, setup::Linux};

/// The line before the command's output.
pub(super) const BEGIN: &str = "---- tally: command ----";
/// The text before the command's status: at the start of a line, or after the output's last line if
/// that has no newline.
pub(super) const STATUS: &str = "---- tally: status ";

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;
/// The folder of the user's files, in which the command runs.
const HOME: &str = "root";
/// Maximum bytes of the user's files. The guest has 1 GiB of memory, which holds the archive and
/// its unpacked files at the same time.
const MAX_FILES_BYTES: u64 = 384 << 20;

/// The init script. Perf needs /proc, /sys and the trace file system. The kernel's command line
/// turns off the watchdog, which would use a counter.
///
/// The shell itself switches the machine off: no process starts after the command, so none gets the
/// page tables of a process of the command and with them its address space in the truth.
fn init(verbose: bool) -> String {
    let quiet = if verbose { "" } else { "echo 1 > /proc/sys/kernel/printk\n" };
    format!(
        "#!/bin/busybox sh\n\
         /bin/busybox --install -s /bin\n\
         export PATH=/bin HOME=/{HOME} TERM=dumb LD_LIBRARY_PATH=/lib\n\
         mount -t proc proc /proc\n\
         mount -t sysfs sys /sys\n\
         mount -t devtmpfs dev /dev\n\
         mount -t tmpfs tmp /tmp\n\
         mount -t tracefs trace /sys/kernel/tracing\n\
         echo -1 > /proc/sys/kernel/perf_event_paranoid\n\
         echo 0 > /proc/sys/kernel/kptr_restrict\n\
         {quiet}\
         cd /{HOME}\n\
         export PATH=/{HOME}:/bin\n\
         echo '{BEGIN}'\n\
         /bin/sh /command\n\
         echo \"{STATUS}$?\"\n\
         echo o > /proc/sysrq-trigger || /bin/poweroff -f\n\
         while :; do :; done\n"
    )
}

/// Checks that the guest's memory can hold the user's files.
///
/// # Errors
/// The files are too large, or cannot be read.
pub(super) fn check_size(files: &[PathBuf]) -> Result<()> {
    let mut bytes = 0;
    for path in files {
        let metadata = path.metadata().map_err(|error| Failure::io("read", path, &error))?;
        bytes += metadata.len();
    }
    if bytes <= MAX_FILES_BYTES {
        return Ok(());
    }
    let why = format!(
        "--file: {bytes} bytes are more than the guest's memory can hold: use files of \
         {MAX_FILES_BYTES} bytes or less in all"
    );
    Err(Failure::new(ExitStatus::OutOfMemory, why))
}

/// Builds the archive.
///
/// # Errors
/// A file cannot be read, or the user's files are too large.
pub(super) fn make(
    linux: &Linux,
    files: &[PathBuf],
    command: &str,
    verbose: bool,
) -> Result<Vec<u8>> {
    check_size(files)?;
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "lib", "lib64", "proc", HOME, "sys", "tmp"] {
        archive.add(folder, DIRECTORY, &[])?;
    }
    archive.add("init", EXECUTABLE, init(verbose).as_bytes())?;
    archive.add("command", EXECUTABLE, format!("{command}\n").as_bytes())?;
    archive.copy("bin/busybox", &linux.busybox)?;
    archive.copy("bin/perf", &linux.perf)?;
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        archive.copy(&format!("{HOME}/{name}"), file)?;
    }
    for (index, library) in linux.libraries.iter().enumerate() {
        let name = library.file_name().unwrap_or_default().to_string_lossy();
        // Programs name the dynamic linker by this path.
        let folder = if index == 0 { "lib64" } else { "lib" };
        archive.copy(&format!("{folder}/{name}"), library)?;
    }
    archive.finish()
}

#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    inodes: u32,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, content: &[u8]) -> Result<()> {
        self.inodes += 1;
        let length = u32::try_from(content.len())
            .expect("busybox, perf and what check_size admits are small");
        let builder = NewcBuilder::new(name).ino(self.inodes).mode(mode).nlink(1);
        let mut writer = builder.write(&mut self.bytes, length);
        io::Write::write_all(&mut writer, content)
            .and_then(|()| writer.finish().map(|_| ()))
            .map_err(|error| Failure::io("archive", Path::new(name), &error))
    }

    fn copy(&mut self, name: &str, from: &Path) -> Result<()> {
        self.add(name, EXECUTABLE, &project::read(from)?)
    }

    fn finish(mut self) -> Result<Vec<u8>> {
        newc::trailer(&mut self.bytes)
            .map_err(|error| Failure::io("archive", Path::new("the end"), &error))?;
        Ok(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn files_that_exceed_the_memory_are_refused() {
        let folder = std::env::temp_dir().join(format!("xtask-initramfs-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let files = ["a", "b"].map(|name| folder.join(name));
        // Sparse files, of which the host stores nothing.
        files.iter().for_each(|file| {
            File::create(file).unwrap().set_len(MAX_FILES_BYTES / 2).unwrap();
        });
        assert_eq!(check_size(&files), Ok(()));
        File::create(&files[1]).unwrap().set_len(MAX_FILES_BYTES / 2 + 1).unwrap();
        let refused = check_size(&files).unwrap_err();
        assert_eq!(refused.status, ExitStatus::OutOfMemory);
        fs::remove_dir_all(&folder).unwrap();
    }
}
