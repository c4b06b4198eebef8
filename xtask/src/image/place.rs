//! The destination of a disk image: a file, or a whole stick.

use std::{
    fs::File,
    io::{Seek, SeekFrom},
    path::Path,
};

use tally_abi::ExitStatus;

use crate::{Failure, Result, project};

/// Size of an image below which none is: kernel, loader and Tally's programs have more, in bytes.
const LEAST_BYTES: u64 = 6 << 20;
/// The kernel's list of mounts: a line for each, with the device first.
const MOUNTS: &str = "/proc/self/mounts";

/// Parses the size of a stick: MiB, or with the suffix `M` or `G`; returns bytes.
pub(super) fn size(text: &str) -> std::result::Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['G', 'g']) {
        Some(digits) => (digits, 1 << 30),
        None => (text.strip_suffix(['M', 'm']).unwrap_or(text), 1 << 20),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|amount| amount.checked_mul(unit));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "use a size such as 64M or 2G".to_owned())
}

/// Checks before long work that an image can be written to `out`.
///
/// # Errors
/// The host refuses, or `out` is a device whose data is in use.
pub(super) fn check(out: &Path) -> Result<()> {
    if project::is_block_device(out) {
        let mounts = String::from_utf8_lossy(&project::read(Path::new(MOUNTS))?).into_owned();
        if let Some((device, folder)) = mounted(out, &mounts) {
            let why = format!(
                "{}: {device} is in use as {folder}: unmount it, or choose another device",
                out.display()
            );
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        let opened = std::fs::OpenOptions::new().write(true).open(out);
        return opened.map(drop).map_err(|error| Failure::io("write", out, &error));
    }
    project::check_writable(out)
}

/// The device or its partition that is mounted, and the folder.
fn mounted<'a>(device: &Path, mounts: &'a str) -> Option<(&'a str, &'a str)> {
    let device = device.to_string_lossy();
    let lines = mounts.lines().filter_map(|line| {
        let (device, rest) = line.split_once(' ')?;
        Some((device, rest.split(' ').next()?))
    });
    let is_of = |mounted: &str| {
        let rest = mounted.strip_prefix(&*device);
        // `sda1` is a part of `sda`, `nvme0n1p2` of `nvme0n1`.
        rest.map(|rest| rest.strip_prefix('p').unwrap_or(rest))
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    lines.into_iter().find(|(mounted, _)| is_of(mounted))
}

/// Copies the image to `out`, if it fits: into `size` bytes, if given, and into a device.
///
/// # Errors
/// The image is too large, or the host refuses.
pub(super) fn write(image: &Path, out: &Path, size: Option<u64>) -> Result<()> {
    let bytes = std::fs::metadata(image).map_err(|error| Failure::io("read", image, &error))?.len();
    if let Some(room) = room(out, size)?.filter(|room| bytes > *room) {
        return Err(does_not_fit(out, &format!("{} MiB", bytes.div_ceil(1 << 20)), room));
    }
    project::copy(image, out)
}

/// Checks before an image is built that it can fit, with files that have this number of bytes.
///
/// # Errors
/// As [`write`], for an image that is too large whatever its other parts have.
pub(super) fn check_room(out: &Path, size: Option<u64>, file_bytes: u64) -> Result<()> {
    let least = LEAST_BYTES.saturating_add(file_bytes);
    let Some(room) = room(out, size)?.filter(|room| least > *room) else { return Ok(()) };
    Err(does_not_fit(out, &format!("more than {} MiB", least >> 20), room))
}

/// The bytes that an image may have, if there is a limit.
fn room(out: &Path, size: Option<u64>) -> Result<Option<u64>> {
    let of_device = if project::is_block_device(out) { Some(length(out)?) } else { None };
    Ok([size, of_device].into_iter().flatten().min())
}

fn does_not_fit(out: &Path, image: &str, room: u64) -> Failure {
    let why = format!(
        "{}: the image has {image}, and the stick {}: use a larger one, or give the machine fewer or \
         smaller files",
        out.display(),
        room >> 20
    );
    Failure::new(ExitStatus::NoSpace, why)
}

/// The size of a device in bytes.
fn length(device: &Path) -> Result<u64> {
    File::open(device)
        .and_then(|mut file| file.seek(SeekFrom::End(0)))
        .map_err(|error| Failure::io("read", device, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!((size("3"), size("3M"), size("2g")), (Ok(3 << 20), Ok(3 << 20), Ok(2 << 30)));
        assert!(["", "0", "x", "1T", "99999999999999G"].iter().all(|text| size(text).is_err()));
    }

    #[test]
    fn a_device_is_in_use_if_a_part_of_it_is_mounted() {
        let mounts = "/dev/sda2 / ext4 rw 0 0\n/dev/nvme0n1p1 /boot vfat rw 0 0\nproc /proc proc";
        let of = |device: &str| mounted(Path::new(device), mounts).map(|(_, folder)| folder);
        assert_eq!((of("/dev/sda"), of("/dev/sda2")), (Some("/"), Some("/")));
        assert_eq!((of("/dev/nvme0n1"), of("/dev/nvme0n1p1")), (Some("/boot"), Some("/boot")));
        assert_eq!((of("/dev/sdb"), of("/dev/sd"), of("/dev/nvme0")), (None, None, None));
    }

    #[test]
    fn an_image_that_is_too_large_is_not_written() {
        let folder = std::env::temp_dir().join(format!("xtask-stick-{}", std::process::id()));
        project::make_folder(&folder).unwrap();
        let (image, out) = (folder.join("image"), folder.join("out"));
        project::write(&image, &vec![7; (3 << 20) + 1]).unwrap();
        let refused = write(&image, &out, Some(3 << 20)).unwrap_err();
        assert_eq!(refused.status, ExitStatus::NoSpace);
        assert!(refused.message.contains("has 4 MiB, and the stick 3: use"), "{refused}");
        assert!(!out.exists());
        let early = |size, files| check_room(&out, size, files).map_err(|why| why.message);
        assert!(early(Some(1 << 20), 0).unwrap_err().contains("more than 6 MiB, and the stick 1:"));
        assert!(early(Some(16 << 20), 10 << 20).is_ok() && early(None, u64::MAX).is_ok());
        assert!(early(Some(16 << 20), 11 << 20).is_err());
        write(&image, &out, Some(4 << 20)).unwrap();
        assert_eq!(project::read(&out).unwrap(), project::read(&image).unwrap());
        assert!(check(&folder).is_err() && check(&folder.join("none/out")).is_err());
        assert_eq!(
            write(&image, Path::new("/dev/full"), None).unwrap_err().status,
            ExitStatus::NoSpace
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
