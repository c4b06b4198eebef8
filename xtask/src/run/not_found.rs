//! The files of this machine that a program which failed had looked for in vain: they were not
//! given to the machine.

use std::path::{Path, PathBuf};

/// Folders that every system has, with files of their own.
const OF_THE_SYSTEM: [&str; 6] =
    ["/dev", "/etc", "/proc", "/sys", "/usr/lib/locale", "/usr/share/locale"];
/// The folder of all libraries, which is too large to be given as a whole.
const LIBRARIES: &str = "x86_64-linux-gnu";
/// Number of files that are named.
const NAMED: usize = 3;
/// Minimum number of names in the path of a folder that is given as a whole.
const DEEP: usize = 3;

/// The line about the files that a program looked for in vain and that exist on this machine;
/// `None` if there are none.
pub(super) fn hint(program: &str, paths: &[&str]) -> Option<String> {
    let is_here = |path: &&Path| {
        !OF_THE_SYSTEM.iter().any(|folder| path.starts_with(folder)) && path.exists()
    };
    let mut found: Vec<&Path> = paths.iter().map(Path::new).filter(is_here).collect();
    // Loaders ask for each folder of libraries: one that is needed has files beside it.
    let files: Vec<&Path> = found.iter().copied().filter(|path| path.is_file()).collect();
    let is_needed =
        |path: &&Path| path.is_file() || files.iter().any(|file| file.parent() == path.parent());
    found.retain(is_needed);
    let first = found.first()?;
    let common = found.iter().fold(first.to_path_buf(), |common, path| shared(&common, path));
    let is_of_libraries = common.ends_with(LIBRARIES);
    let given = if common.components().count() > DEEP && !is_of_libraries {
        vec![common.as_path()]
    } else {
        found.iter().copied().take(NAMED).collect()
    };
    let options = given.iter().map(|path| format!("--file {0}:{0}", path.display()));
    Some(format!(
        "{program} looked for {}, which the machine does not have: add {}",
        first.display(),
        options.collect::<Vec<_>>().join(" ")
    ))
}

/// The folder that contains both paths, or the path if they are equal.
fn shared(one: &Path, other: &Path) -> PathBuf {
    let pairs = one.components().zip(other.components());
    pairs.take_while(|(one, other)| one == other).map(|(one, _)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_folder_are_given_with_it() {
        let folder = env!("CARGO_MANIFEST_DIR");
        let file = |name: &str| format!("{folder}/src/{name}");
        let [run, stat, missing] = ["run.rs", "stat_files.rs", "no.rs"].map(file);
        let hint = |paths: &[&str]| hint("p", paths);
        let of = |path: &str| format!("--file {path}:{path}");
        let both = hint(&[&missing, folder, &run, "/etc/passwd", &file("run"), &stat]).unwrap();
        assert!(both.starts_with(&format!("p looked for {run}, which")), "{both}");
        assert!(both.ends_with(&of(&format!("{folder}/src"))), "{both}");
        assert!(hint(&[&run]).unwrap().ends_with(&of(&run)));
        let far = hint(&["/bin/sh", &run]).unwrap();
        assert!(far.ends_with(&format!("{} {}", of("/bin/sh"), of(&run))), "{far}");
        assert_eq!(hint(&[&missing, "/etc/passwd"]), None);
    }
}
