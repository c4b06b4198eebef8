//! The Linux guest's file system: busybox, perf, its libraries and the command, as a cpio archive.

use std::{io, path::Path};

use cpio::{NewcBuilder, newc};

use crate::{Failure, Result, project, setup::Linux};

/// The line before the command's output.
pub(super) const BEGIN: &str = "---- tally: command ----";
/// The text before the command's status: at the start of a line, or behind the output's last line
/// if that has no newline.
pub(super) const STATUS: &str = "---- tally: status ";

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;

/// The init script. Perf needs /proc, /sys and the trace file system. The kernel's command line
/// turns off the watchdog, which would use a counter.
fn init(verbose: bool) -> String {
    let quiet = if verbose { "" } else { "echo 1 > /proc/sys/kernel/printk\n" };
    format!(
        "#!/bin/busybox sh\n\
         /bin/busybox --install -s /bin\n\
         export PATH=/bin HOME=/root TERM=dumb LD_LIBRARY_PATH=/lib\n\
         mount -t proc proc /proc\n\
         mount -t sysfs sys /sys\n\
         mount -t devtmpfs dev /dev\n\
         mount -t tmpfs tmp /tmp\n\
         mount -t tracefs trace /sys/kernel/tracing\n\
         echo -1 > /proc/sys/kernel/perf_event_paranoid\n\
         echo 0 > /proc/sys/kernel/kptr_restrict\n\
         {quiet}\
         cd /root\n\
         echo '{BEGIN}'\n\
         sh /command\n\
         echo \"{STATUS}$?\"\n\
         poweroff -f\n"
    )
}

/// Builds the archive.
///
/// # Errors
/// A file cannot be read.
pub(super) fn make(linux: &Linux, command: &str, verbose: bool) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "lib", "lib64", "proc", "root", "sys", "tmp"] {
        archive.add(folder, DIRECTORY, &[])?;
    }
    archive.add("init", EXECUTABLE, init(verbose).as_bytes())?;
    archive.add("command", EXECUTABLE, format!("{command}\n").as_bytes())?;
    archive.copy("bin/busybox", &linux.busybox)?;
    archive.copy("bin/perf", &linux.perf)?;
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
        let length = u32::try_from(content.len()).expect("files of a guest are small");
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
