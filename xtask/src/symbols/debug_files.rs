//! The files beside a program that have its debug information: the one that `objcopy
//! --only-keep-debug` made before the program was stripped, the one that `dwz` shared between
//! several, and those that `-gsplit-dwarf` left where the compiler ran.
//!
//! They are searched for where gdb does (GDB manual, "Debugging Information in Separate Files"),
//! and used only if they belong to the program by build id or checksum.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use addr2line::gimli::{Dwarf, EndianSlice, LittleEndian};
use object::{Object, ObjectSection};

use crate::{output, visible::visible};

/// Folder of the system's debug files.
pub(super) const SYSTEM: &str = "/usr/lib/debug";
/// The section of most debug information.
const INFO: &str = ".debug_info";

/// The separate debug file of a file that has no debug information itself: by build id, or by the
/// name and the checksum in `.gnu_debuglink`. `system` is the folder of the system's debug files.
pub(super) fn separate(path: &Path, file: &object::File<'_>, system: &Path) -> Option<PathBuf> {
    if file.section_by_name(INFO).is_some() {
        return None;
    }
    let id = file.build_id().ok().flatten().unwrap_or_default();
    let by_id = of_build_id(system, id).filter(|found| has_build_id(found, id));
    by_id.or_else(|| linked(path, file, system))
}

/// The file that `.gnu_debuglink` names.
fn linked(path: &Path, file: &object::File<'_>, system: &Path) -> Option<PathBuf> {
    let (name, checksum) = file.gnu_debuglink().ok()??;
    // The name has no folders, so that a damaged file leads nowhere else.
    let name = Path::new(OsStr::from_bytes(name)).file_name()?;
    let folder = path.parent()?;
    let below_system = folder.strip_prefix("/").map(|inside| system.join(inside));
    let folders = [folder.to_owned(), folder.join(".debug")].into_iter().chain(below_system.ok());
    let there = folders.map(|folder| folder.join(name)).filter(|found| found.is_file());
    let mut others = Vec::new();
    for found in there {
        if fs::read(&found).is_ok_and(|bytes| crc32fast::hash(&bytes) == checksum) {
            return Some(found);
        }
        others.push(found);
    }
    for other in others {
        output::note_once(format_args!(
            "xtask: {} is the debug file of another build than {}: its functions have no lines",
            shown(&other),
            shown(path)
        ));
    }
    None
}

/// The file that `dwz` shared between a debug file and others, which `.gnu_debugaltlink` names.
pub(super) fn shared(path: &Path, file: &object::File<'_>, system: &Path) -> Option<PathBuf> {
    let (name, id) = file.gnu_debugaltlink().ok()??;
    let named = path.parent()?.join(OsStr::from_bytes(name));
    let mut places = [Some(named.clone()), of_build_id(system, id)].into_iter().flatten();
    let found = places.find(|found| has_build_id(found, id));
    if found.is_none() {
        output::note_once(format_args!(
            "xtask: {} needs {}, the debug information that dwz shared, which is not there or of \
             another build: install it; without it functions may lack names and lines",
            shown(path),
            shown(&named)
        ));
    }
    found
}

/// Says which files of `-gsplit-dwarf` are missing: inlined functions are in these alone.
pub(super) fn note_missing_parts(path: &Path, file: &object::File<'_>) {
    // Parts refer to the program's addresses by this section.
    if file.section_by_name(".debug_addr").is_none() || packaged(path).is_file() {
        return;
    }
    let missing: Vec<PathBuf> =
        parts(file).unwrap_or_default().into_iter().filter(|part| !part.is_file()).collect();
    let Some(first) = missing.first() else { return };
    output::note_once(format_args!(
        "xtask: {}: {} of its files of split debug information, as {}, are not there: inlined \
         functions have no names; build again, or collect the files before they are removed: \
         dwp -e {}",
        shown(path),
        missing.len(),
        shown(first),
        shown(path),
    ));
}

/// Path of the package of a program's parts: the program's with `.dwp`.
fn packaged(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".dwp");
    name.into()
}

/// Paths of the files that `-gsplit-dwarf` left.
fn parts(file: &object::File<'_>) -> Option<Vec<PathBuf>> {
    let section = |id: addr2line::gimli::SectionId| {
        let section = file.section_by_name(id.name());
        let bytes = section.and_then(|section| section.uncompressed_data().ok());
        Ok::<_, addr2line::gimli::Error>(bytes.unwrap_or_default())
    };
    let sections = addr2line::gimli::DwarfSections::load(section).ok()?;
    let dwarf: Dwarf<_> = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let (mut units, mut parts) = (dwarf.units(), Vec::new());
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Ok(Some(name)) = unit.dwo_name() else { continue };
        let Ok(name) = dwarf.attr_string(&unit, name) else { continue };
        let folder = unit.comp_dir.map(|folder| OsStr::from_bytes(folder.slice()));
        let name = OsStr::from_bytes(name.slice());
        parts.push(folder.map_or_else(|| name.into(), |folder| Path::new(folder).join(name)));
    }
    Some(parts)
}

/// The system's debug file of a build: `.build-id/ab/cdef….debug`.
fn of_build_id(system: &Path, id: &[u8]) -> Option<PathBuf> {
    let hexadecimal = id.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        _ = write!(text, "{byte:02x}");
        text
    });
    let (first, rest) = hexadecimal.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
    Some(system.join(".build-id").join(first).join(format!("{rest}.debug")))
}

fn has_build_id(path: &Path, id: &[u8]) -> bool {
    let bytes = path.is_file().then(|| fs::read(path).ok()).flatten().unwrap_or_default();
    object::File::parse(&*bytes).is_ok_and(|file| file.build_id() == Ok(Some(id)))
}

fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy()).into_owned()
}
