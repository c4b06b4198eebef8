//! Dynamic programs of the build machine, as files of a machine.

use std::path::{Path, PathBuf};

use xtask::{
    Failure, Result,
    build::programs::list::{Listed, Origin},
    guest_files::{self, GuestFile},
    libraries,
    machine::{Artefacts, Folder},
    project, ramdisk,
};

/// Returns whether the build machine has a program. All but those of [`Origin::Host`] are built.
pub(super) fn has(program: &Listed) -> bool {
    !matches!(program.from, Origin::Host { .. }) || Path::new(&program.name).is_file()
}

/// Artefacts whose ramdisk, in `folder`, has those of the programs that are the build machine's,
/// with their interpreters, libraries and files.
///
/// # Errors
/// A file cannot be read, or a library is missing.
pub(super) fn with_programs(
    artefacts: &Artefacts,
    programs: &[&Listed],
    folder: &Folder,
) -> Result<Artefacts> {
    let (mut started, mut given) = (Vec::new(), Vec::new());
    for program in programs {
        let Origin::Host { host } = &program.from else { continue };
        started.extend(guest_files::on_host(&program.name));
        let mut words = Vec::new();
        for pattern in host {
            let found = matching(pattern)?.into_iter();
            words.extend(found.map(|path| format!("{0}:{0}", path.display())));
        }
        given.extend(guest_files::expand(&words)?);
    }
    let mut artefacts = artefacts.clone();
    if started.is_empty() {
        return Ok(artefacts);
    }
    let mut files = libraries::needed(&started, &given, || None)?;
    files.extend(started);
    files.extend(given);
    files.sort();
    files.dedup_by(|a: &mut GuestFile, b| a.guest == b.guest);
    let path = folder.file("ramdisk-host");
    project::write(&path, &ramdisk::with(&artefacts.boot.ramdisk, &files)?)?;
    artefacts.boot.ramdisk = path;
    Ok(artefacts)
}

/// The existing paths of a pattern, whose last name may have one `*`, sorted.
fn matching(pattern: &str) -> Result<Vec<PathBuf>> {
    let path = Path::new(pattern);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (Some((before, after)), Some(parent)) = (name.split_once('*'), path.parent()) else {
        return Ok(if path.exists() { vec![path.to_owned()] } else { Vec::new() });
    };
    let Ok(entries) = parent.read_dir() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| Failure::io("read", parent, &error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let middle = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        if middle.is_some() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_of_a_pattern_may_have_a_star() {
        let here = env!("CARGO_MANIFEST_DIR");
        let names = |pattern: &str| matching(&format!("{here}/{pattern}")).unwrap();
        assert_eq!(names("Cargo.toml"), names("Car*toml"));
        assert_eq!(names("Car*toml").len(), 1);
        assert!(names("no-such").is_empty() && names("no/such*").is_empty());
        assert!(names("*").len() >= 3 && names("*").is_sorted());
    }
}
