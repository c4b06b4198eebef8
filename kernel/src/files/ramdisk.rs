//! The ramdisk: a tar archive in memory, from the boot loader, with programs and their files.

use spin::Once;
use tar_no_std::TarArchiveRef;

use super::names::Names;

static FILES: Once<Names<&'static [u8]>> = Once::new();

/// Reads the archive's directory. Without a readable archive there are no files.
pub fn init(bytes: &'static [u8]) {
    match TarArchiveRef::new(bytes) {
        Ok(archive) => {
            let mut files = Names::new();
            for entry in archive.entries() {
                if let Ok(name) = entry.filename().as_str() {
                    // Of two with one name, the last.
                    files.remove(plain(name));
                    files.insert(plain(name), entry.data());
                }
            }
            FILES.call_once(|| files);
        }
        Err(error) => log::error!("ramdisk is not a tar archive: {error}"),
    }
}

/// The bytes of the file with this name, in the form that [`plain`] returns.
pub fn file(name: &str) -> Option<&'static [u8]> {
    FILES.get()?.get(name).copied()
}

/// The files. The archive's first come first.
pub fn files() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.get().into_iter().flat_map(Names::iter).map(|(name, bytes)| (name, *bytes))
}

/// The file name of a path: the path without leading `/` and `./`.
pub fn plain(path: &str) -> &str {
    let mut name = path;
    while let Some(rest) = name.strip_prefix('/').or_else(|| name.strip_prefix("./")) {
        name = rest;
    }
    name
}
