//! The files of this machine that a program which failed had looked for in vain: they were not
//! given to the machine. The kernel sends absolute paths only; relative ones are most likely among
//! the program's arguments.

use std::path::{Component, Path, PathBuf};

use crate::{guest_files::GuestFile, program_words::program_index, report::ExitReport};

/// Folders that every system has, with files of their own.
const OF_THE_SYSTEM: [&str; 6] =
    ["/dev", "/etc", "/proc", "/sys", "/usr/lib/locale", "/usr/share/locale"];
/// The folder of all libraries, which is too large to be given as a whole.
const LIBRARIES: &str = "x86_64-linux-gnu";
/// Number of files that are named.
const NAMED: usize = 3;
/// Minimum number of names in the path of a folder that is given as a whole.
const DEEP: usize = 3;

/// The line about the files that a program looked for in vain and that exist on this machine, at
/// the same path or below the working folder; `None` if there are none.
pub(super) fn hint(program: &str, paths: &[&str]) -> Option<String> {
    let paths = paths.iter().map(Path::new);
    let paths: Vec<&Path> =
        paths.filter(|path| !OF_THE_SYSTEM.iter().any(|of| path.starts_with(of))).collect();
    // The machine's root stands for the working folder: a relative path was looked for there.
    let is_relative = |path: &&Path| !path.as_os_str().is_empty() && path.exists();
    let missing = paths.iter().filter(|path| !path.exists());
    let below = missing.filter_map(|path| path.strip_prefix("/").ok()).filter(is_relative);
    let below: Vec<&Path> = below.take(NAMED).collect();
    let (first, given) = given_whole(&paths).unzip();
    let options = below.iter().map(|path| format!("--file {}", path.display()));
    let given = given.into_iter().flatten();
    let given = given.map(|path| format!("--file {0}:{0}", path.display()));
    Some(format!(
        "{program} looked for {}, which the machine does not have: add {}",
        below.first().copied().or(first)?.display(),
        options.chain(given).collect::<Vec<_>>().join(" ")
    ))
}

/// The lines about arguments of programs that failed which are files below this machine's working
/// folder, and not among the `files` that the machine had.
pub(super) fn arguments(
    programs: &[Vec<String>],
    exits: &[ExitReport],
    files: &[GuestFile],
) -> Vec<String> {
    let name = |path: &str| Path::new(path).file_name().map(|name| name.to_owned());
    let has_failed =
        |program: &str| exits.iter().any(|it| it.status != 0 && name(&it.program) == name(program));
    let is_missing = |path: &&Path| {
        let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
        let has = |file: &GuestFile| Path::new(&file.guest).starts_with(path);
        is_below && path.exists() && !files.iter().any(has)
    };
    let line = |words: &Vec<String>| {
        let (program, arguments) = words.get(program_index(words)..)?.split_first()?;
        let arguments = arguments.iter().filter(|_| has_failed(program));
        let paths = arguments.map(|word| Path::new(word.strip_prefix("./").unwrap_or(word)));
        let paths: Vec<&Path> = paths.filter(is_missing).take(NAMED).collect();
        let first = paths.first()?.display();
        let options: Vec<String> =
            paths.iter().map(|path| format!("--file {}", path.display())).collect();
        Some(format!(
            "{program} has the argument {first}, a file that the machine does not have: add {}",
            options.join(" ")
        ))
    };
    programs.iter().filter_map(line).collect()
}

/// The first of the paths that is a file of this machine, and the files or the folder that give all
/// of them to the machine.
fn given_whole<'a>(paths: &[&'a Path]) -> Option<(&'a Path, Vec<PathBuf>)> {
    let mut found: Vec<&Path> = paths.iter().copied().filter(|path| path.exists()).collect();
    // Loaders ask for each folder of libraries: one that is needed has files beside it.
    let files: Vec<&Path> = found.iter().copied().filter(|path| path.is_file()).collect();
    let is_needed =
        |path: &&Path| path.is_file() || files.iter().any(|file| file.parent() == path.parent());
    found.retain(is_needed);
    let first = *found.first()?;
    let common = found.iter().fold(first.to_path_buf(), |common, path| shared(&common, path));
    let is_of_libraries = common.ends_with(LIBRARIES);
    let is_whole = common.components().count() > DEEP && !is_of_libraries;
    let some = || found.iter().take(NAMED).map(|path| path.to_path_buf()).collect();
    Some((first, if is_whole { vec![common] } else { some() }))
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
    #[test]
    fn a_file_of_the_working_folder_is_given_under_its_own_path() {
        assert!(!Path::new("/Cargo.toml").exists() && Path::new("Cargo.toml").exists());
        let of = |paths: &[&str]| hint("perl", paths);
        let said = of(&["/etc/perl", "/Cargo.toml", "/src/lib.rs", "/nowhere.pl"]).unwrap();
        let begin = "perl looked for Cargo.toml, which the machine does not have: ";
        assert_eq!(said, format!("{begin}add --file Cargo.toml --file src/lib.rs"));
        let both = of(&["/bin/sh", "/Cargo.toml"]).unwrap();
        assert_eq!(both, format!("{begin}add --file Cargo.toml --file /bin/sh:/bin/sh"));
        assert_eq!(of(&["/", "/nowhere.pl"]), None);
    }
    #[test]
    fn an_argument_of_a_program_that_failed_is_given_if_it_is_a_file() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let exits = |status| [ExitReport { program: "usr/bin/cat".into(), status }];
        let given = [GuestFile::of_user("src/lib.rs".into(), Path::new("src/lib.rs"))];
        let of = |text: &str, status| arguments(&[words(text)], &exits(status), &given).join("\n");
        let said = "cat has the argument Cargo.toml, a file that the machine does not have: add";
        assert_eq!(of("cat -n ./Cargo.toml no.c", 1), format!("{said} --file Cargo.toml"));
        let two = of("stat -e cycles cat Cargo.toml tests", 1);
        assert_eq!(two, format!("{said} --file Cargo.toml --file tests"));
        for (text, status) in [
            ("cat Cargo.toml", 0),
            ("sort Cargo.toml", 1),
            ("cat src/lib.rs src", 1),
            ("cat /bin/sh ../Cargo.toml .. no.c", 1),
            ("cat", 1),
        ] {
            assert_eq!(of(text, status), "", "{text}");
        }
    }
}
