//! The ramdisk: a tar archive that the boot loader left in memory. Programs and their files.

use alloc::{collections::BTreeMap, string::String};

use spin::Once;
use tar_no_std::TarArchiveRef;

static FILES: Once<BTreeMap<String, &'static [u8]>> = Once::new();

/// Takes over the archive. A machine without one, or with one that cannot be read, has no files.
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
        Err(error) => log::error!("the ramdisk is not a tar archive: {error}"),
    }
}

/// The bytes of the file of that name, as [`plain`] gives it.
pub fn file(name: &str) -> Option<&'static [u8]> {
    FILES.get()?.get(name).copied()
}

/// The name that a path stands for: without any `/` and `./` that it begins with.
pub fn plain(path: &str) -> &str {
    let mut name = path;
    while let Some(rest) = name.strip_prefix('/').or_else(|| name.strip_prefix("./")) {
        name = rest;
    }
    name
}
