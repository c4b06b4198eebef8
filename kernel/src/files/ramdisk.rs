//! The ramdisk: a tar archive that the boot loader left in memory. Programs and their files.

use spin::Once;
use tar_no_std::TarArchiveRef;

static ARCHIVE: Once<TarArchiveRef<'static>> = Once::new();

/// Takes over the archive. A machine without one, or with one that cannot be read, has no files.
pub fn init(bytes: &'static [u8]) {
    match TarArchiveRef::new(bytes) {
        Ok(archive) => {
            ARCHIVE.call_once(|| archive);
        }
        Err(error) => log::error!("the ramdisk is not a tar archive: {error}"),
    }
}

/// The bytes of the file `path`; a leading `/` or `./` does not matter.
pub fn file(path: &str) -> Option<&'static [u8]> {
    let plain = |path: &str| path.trim_start_matches("./").trim_start_matches('/').len();
    let wanted = &path[path.len() - plain(path)..];
    ARCHIVE.get()?.entries().find_map(|entry| {
        let name = entry.filename();
        let name = name.as_str().ok()?;
        (&name[name.len() - plain(name)..] == wanted).then(|| entry.data())
    })
}
