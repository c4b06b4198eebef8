//! The ramdisk: a tar archive in memory, from the boot loader, with programs and their files.

use core::ops::Range;

use spin::Once;
use tar_no_std::TarArchiveRef;

use super::names::Names;
use crate::machine::clock::SECOND_NS;

/// Bytes of an entry's header, which is right before its content.
const HEADER_BYTES: usize = 512;
/// The header's field `mtime`.
const MODIFIED: Range<usize> = 136..148;

static FILES: Once<Names<&'static [u8]>> = Once::new();
/// The archive.
static ARCHIVE: Once<&'static [u8]> = Once::new();

/// Reads the archive's directory, and hands each file to `add`. Without an archive that can be
/// read, there are no files.
pub(super) fn init(bytes: &'static [u8], add: impl Fn(&str, &'static [u8])) {
    let archive = match TarArchiveRef::new(bytes) {
        Ok(archive) => archive,
        Err(error) => return log::error!("ramdisk is not a tar archive: {error}"),
    };
    ARCHIVE.call_once(|| bytes);
    let mut files = Names::new();
    for entry in archive.entries() {
        let name = entry.filename();
        let Ok(name) = name.as_str().map(plain) else { continue };
        if files.get(name).is_none() {
            files.insert(name, entry.data());
            add(name, entry.data());
        }
    }
    FILES.call_once(|| files);
}

/// The offset in the archive of a file's content.
pub(super) fn offset(content: &'static [u8]) -> u64 {
    let start = ARCHIVE.get().map_or(0, |archive| archive.as_ptr().addr());
    content.as_ptr().addr().wrapping_sub(start) as u64
}

/// The date of a file with this content, in nanoseconds since 1970; 0 if the archive has none. The
/// header before the content has it in octal seconds (POSIX.1-1988, ustar).
pub(super) fn modified_ns(content: &'static [u8]) -> u64 {
    let seconds = || {
        let header = usize::try_from(offset(content)).ok()?.checked_sub(HEADER_BYTES)?;
        let field = ARCHIVE.get()?.get(header + MODIFIED.start..header + MODIFIED.end)?;
        let digits = str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
        u64::from_str_radix(digits, 8).ok()
    };
    seconds().unwrap_or(0).saturating_mul(SECOND_NS)
}

/// The bytes of the file with this name, in the form that [`plain`] returns.
pub fn file(name: &str) -> Option<&'static [u8]> {
    FILES.get()?.get(name).copied()
}

/// The bytes of the file at this path.
pub fn file_at(path: &str) -> Option<&'static [u8]> {
    file(plain(path))
}

/// The file name of a path: the path without leading `/` and `./`.
pub fn plain(path: &str) -> &str {
    let mut name = path;
    while let Some(rest) = name.strip_prefix('/').or_else(|| name.strip_prefix("./")) {
        name = rest;
    }
    name
}
