//! The ramdisk: a tar archive in memory, from the boot loader, with programs and their files.

use alloc::{collections::BTreeMap, string::String};

use spin::Once;
use tar_no_std::TarArchiveRef;

static FILES: Once<BTreeMap<String, &'static [u8]>> = Once::new();

/// Reads the archive's directory. Without a readable archive there are no files.
pub fn init(bytes: &'static [u8]) {
    match TarArchiveRef::new(bytes) {
        Ok(archive) => {
            let mut files = BTreeMap::new();
            for entry in archive.entries() {
                if let Ok(name) = entry.filename().as_str() {
                    files.insert(plain(name).into(), entry.data());
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

/// The files, by name.
pub fn files() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.get().into_iter().flatten().map(|(name, bytes)| (name.as_str(), *bytes))
}

/// The file name of a path: the path without leading `/` and `./`.
pub fn plain(path: &str) -> &str {
    let mut name = path;
    while let Some(rest) = name.strip_prefix('/').or_else(|| name.strip_prefix("./")) {
        name = rest;
    }
    name
}
