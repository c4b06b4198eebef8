//! Files of the host that are given to a machine (`--file`), and the program among them.

use std::{
    collections::BTreeSet,
    env, fs, io,
    path::{self, Component, Path, PathBuf},
    time::UNIX_EPOCH,
};

use serde::{Deserialize, Serialize};
use tally_abi::ExitStatus;
use tally_elf::Program;

use crate::{Failure, Result, project, shared_library::is_shared_library, visible::visible};

/// Maximum bytes of all files: QEMU's firmware-configuration device has 32 bits for a length.
const MAX_BYTES: u64 = 3 << 30;

/// A file or an empty folder of the host, and its path on the machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GuestFile {
    /// The path on the machine, without a leading `/`. An empty folder's path ends with `/`.
    pub guest: String,
    /// The path on the host.
    pub host: PathBuf,
    /// Whether the file has its date on the machine, by which Python, for example, knows whether
    /// its compiled modules are up to date. Tally's own have none, so that equal builds are equal.
    pub has_date: bool,
}

impl GuestFile {
    /// Makes a file with its name, without folders.
    pub fn by_name(host: &Path) -> GuestFile {
        let guest = host.file_name().unwrap_or_default().to_string_lossy().into_owned();
        GuestFile { guest, host: host.to_owned(), has_date: false }
    }

    /// Makes a file of the user, at a path.
    pub fn of_user(guest: String, host: &Path) -> GuestFile {
        GuestFile { guest, host: host.to_owned(), has_date: true }
    }

    /// Makes files with their names, without folders.
    pub fn by_names(hosts: &[PathBuf]) -> Vec<GuestFile> {
        hosts.iter().map(|host| GuestFile::by_name(host)).collect()
    }

    /// The date of the file's last change, in seconds since 1970; 0 if it has none.
    pub fn modified(&self) -> u64 {
        let metadata = fs::metadata(&self.host).ok().filter(|_| self.has_date);
        let date = metadata.and_then(|metadata| metadata.modified().ok());
        date.and_then(|date| date.duration_since(UNIX_EPOCH).ok())
            .map_or(0, |since| since.as_secs())
    }

    /// The bytes of the file; empty for a folder.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self) -> Result<Vec<u8>> {
        if self.guest.ends_with('/') { Ok(Vec::new()) } else { project::read(&self.host) }
    }
}

/// The files of the words of `--file`: `PATH` or `HOST:GUEST`, a file or a folder with its whole
/// content. A relative path without `..` is also the path on the machine; any other path is reduced
/// to its last name.
///
/// # Errors
/// A file is missing, is neither file nor folder, or has no path on the machine.
pub fn expand(words: &[String]) -> Result<Vec<GuestFile>> {
    let mut files = Vec::new();
    for word in words {
        let whole = Path::new(word);
        let (host, guest) = match word.rsplit_once(':') {
            Some((host, guest)) if !whole.exists() => (Path::new(host), Path::new(guest)),
            _ => (whole, whole),
        };
        let is_named = !std::ptr::eq(host, guest);
        let Some(guest) = guest_path(guest, is_named) else {
            let why = format!("--file {word}: '{}' is no path on the machine", guest.display());
            return Err(Failure::new(ExitStatus::Usage, why));
        };
        add(&mut files, host, guest, &[])?;
    }
    Ok(files)
}

/// The path on the machine, without `/` and `.`; `None` if it leaves the root or is not UTF-8. A
/// path outside the working folder is reduced to its last name, unless the user has given it as the
/// path on the machine (`is_named`).
fn guest_path(path: &Path, is_named: bool) -> Option<String> {
    let is_inside =
        path.is_relative() && !path.components().any(|part| part == Component::ParentDir);
    if !is_named && !is_inside {
        return Some(path.file_name()?.to_str()?.to_owned());
    }
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name.to_str()?),
            Component::ParentDir => return None,
            _ => {}
        }
    }
    Some(names.join("/"))
}

/// Adds a file, or the content of a folder that the folders `above` contain, in the order of names.
/// A link is what it leads to; one in a folder that leads nowhere is left out.
fn add(files: &mut Vec<GuestFile>, host: &Path, guest: String, above: &[PathBuf]) -> Result<()> {
    let refused = |why: &str| {
        let why = format!("{}: {why}", host.display());
        Err(Failure::new(ExitStatus::Usage, why))
    };
    let Ok(metadata) = fs::metadata(host) else {
        let why = format!("{}: no such file", host.display());
        return Err(Failure::new(ExitStatus::ProgramNotFound, why));
    };
    if metadata.is_file() {
        files.push(GuestFile::of_user(guest, host));
        return Ok(());
    }
    if !metadata.is_dir() {
        return refused("neither a file nor a folder");
    }
    let failed = |error: io::Error| Failure::io("read", host, &error);
    let whole = fs::canonicalize(host).map_err(failed)?;
    if above.contains(&whole) {
        return refused("a link to a folder that contains it");
    }
    let above = [above, &[whole]].concat();
    let entries = fs::read_dir(host).map_err(failed)?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(failed)?;
    names.sort();
    if names.is_empty() && !guest.is_empty() {
        files.push(GuestFile::of_user(format!("{guest}/"), host));
    }
    for name in names {
        let path = host.join(&name);
        let Some(name) = name.to_str() else { return refused("a name in it is no UTF-8") };
        let inner = if guest.is_empty() { name.to_owned() } else { format!("{guest}/{name}") };
        if path.exists() {
            add(files, &path, inner, &above)?;
        }
    }
    Ok(())
}

/// The sum of the bytes of files.
pub fn bytes(files: &[GuestFile]) -> u64 {
    files.iter().map(|file| fs::metadata(&file.host).map_or(0, |metadata| metadata.len())).sum()
}

/// Checks that the files' paths differ from each other and from the machine's `own`, and returns
/// the sum of their bytes.
///
/// # Errors
/// Two paths are equal, or there are more bytes than a machine can get.
pub fn check(files: &[GuestFile], own: &[&str]) -> Result<u64> {
    let mut paths: BTreeSet<&str> = own.iter().copied().collect();
    let bytes = bytes(files);
    for file in files {
        if !paths.insert(&file.guest) {
            return Err(taken(file));
        }
    }
    let above = |path: &str| path.match_indices('/').any(|(at, _)| paths.contains(&path[..at]));
    if let Some(file) = files.iter().find(|file| above(&file.guest)) {
        return Err(taken(file));
    }
    if bytes > MAX_BYTES {
        let why =
            format!("--file: {bytes} bytes are more than a machine gets: {MAX_BYTES} at most");
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    Ok(bytes)
}

/// The failure that a file's path equals another's, or goes through another file.
pub fn taken(file: &GuestFile) -> Failure {
    let GuestFile { guest, host, .. } = file;
    let why = format!(
        "{}: the machine has another file named '{guest}', or one for its folder: name it otherwise \
         with --file {0}:PATH",
        host.display()
    );
    Failure::new(ExitStatus::Usage, why)
}

/// The file of the program that the user calls `name`: the file with this path on the machine or on
/// the host, or the only one with this name in any folder. `None` if there is none.
///
/// # Errors
/// Several files have this name.
pub fn find<'a>(files: &'a [GuestFile], name: &str) -> Result<Option<&'a GuestFile>> {
    let path = guest_path(Path::new(name), true);
    let is_it = |file: &&GuestFile| path.as_ref() == Some(&file.guest);
    let is_on_host = |file: &&GuestFile| file.host == Path::new(name);
    let found = files.iter().find(is_it).or_else(|| files.iter().find(is_on_host));
    if found.is_some() {
        return Ok(found);
    }
    let mut named = files.iter().filter(|file| file.guest.rsplit('/').next() == Some(name));
    match (named.next(), named.next()) {
        (_, Some(_)) => {
            let why =
                format!("{name}: the machine has several programs of this name: give its path");
            Err(Failure::new(ExitStatus::Usage, why))
        }
        (found, None) => Ok(found),
    }
}

/// The program of the host that a shell would start as `name`: the file at this path, or, without
/// a folder, the first one in the folders of `PATH`. The machine has it at the same path; a path
/// that leaves the working folder becomes absolute.
pub fn on_host(name: &str) -> Option<GuestFile> {
    let path = Path::new(name);
    if !name.contains('/') {
        let folders = env::var_os("PATH")?;
        let mut all = env::split_paths(&folders).map(|folder| folder.join(name));
        let host = path::absolute(all.find(|path| path.is_file())?).ok()?;
        return Some(GuestFile::of_user(guest_path(&host, true)?, &host));
    }
    if !path.is_file() {
        return None;
    }
    let leaves = path.components().any(|part| part == Component::ParentDir);
    let whole = if leaves { fs::canonicalize(path).ok()? } else { path.to_owned() };
    Some(GuestFile::of_user(guest_path(&whole, true)?, path))
}

/// The word by which the machine starts the program that the user calls `name`: the same word if
/// it is the program's path. `None` if the program is one of the machine's `own`.
///
/// # Errors
/// There is no such program, or it is not an x86-64 ELF file.
pub fn program(files: &[GuestFile], own: &[&str], name: &str) -> Result<Option<String>> {
    let path = guest_path(Path::new(name), true).unwrap_or_default();
    let Some(file) = find(files, name)? else {
        if own.contains(&&*path) {
            return Ok(None);
        }
        let folder = format!("{path}/");
        let is_folder = Path::new(name).is_dir() && name.contains('/')
            || files.iter().any(|file| file.guest.starts_with(&folder));
        let why = match () {
            () if is_folder => "a folder, not a program: name the program in it",
            () if name.contains('/') && Path::new(name).exists() => "neither a file nor a folder",
            () if name.contains('/') => "no such file",
            () if Path::new(name).is_file() => {
                "no such program in PATH or given with --file: for the file here add ./ before it"
            }
            () => "no such program in PATH or given with --file",
        };
        return Err(Failure::new(ExitStatus::ProgramNotFound, format!("{name}: {why}")));
    };
    check_program(&file.host)?;
    Ok((file.guest != path).then(|| format!("/{}", file.guest)))
}

/// Checks that a program is an x86-64 ELF file, as the kernel does, and no shared library.
///
/// # Errors
/// The file is another, or cannot be read.
fn check_program(path: &Path) -> Result<()> {
    let refused = |what: &str| {
        let why = format!("{}: {}", path.display(), visible(what));
        Failure::new(ExitStatus::NotRunnable, why)
    };
    let bytes = project::read(path)?;
    Program::parse(&bytes).map_err(|what| refused(&what))?;
    if is_shared_library(&bytes) {
        return Err(refused("a shared library, not a program: name a program that uses it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_on_the_machine_are_those_below_the_working_folder_or_names() {
        for (path, is_named, guest) in [
            ("data/in", false, Some("data/in")),
            ("./a//b/.", false, Some("a/b")),
            ("/home/u/prog", false, Some("prog")),
            ("../x/prog", false, Some("prog")),
            (".", false, Some("")),
            ("..", false, None),
            ("/etc/x", true, Some("etc/x")),
            ("a/../b", true, None),
        ] {
            assert_eq!(guest_path(Path::new(path), is_named).as_deref(), guest, "{path}");
        }
    }

    #[test]
    fn folders_are_walked_and_renamed() {
        let root = std::env::temp_dir().join(format!("xtask-guest-{}", std::process::id()));
        fs::create_dir_all(root.join("in/a")).unwrap();
        project::write(&root.join("in/b:c"), b"1").unwrap();
        project::write(&root.join("in/a/x"), b"22").unwrap();
        fs::create_dir(root.join("in/empty")).unwrap();
        let words = |guest: &str| vec![format!("{}{guest}", root.join("in").display())];
        let guests = |words: &[String]| {
            expand(words).unwrap().into_iter().map(|file| file.guest).collect::<Vec<_>>()
        };
        assert_eq!(guests(&words("")), ["in/a/x", "in/b:c", "in/empty/"]);
        assert_eq!(guests(&words(":/d/e")), ["d/e/a/x", "d/e/b:c", "d/e/empty/"]);
        assert_eq!(guests(&words("/b:c")), ["b:c"]);
        assert_eq!(guests(&words(":/")), ["a/x", "b:c", "empty/"]);
        let status = |words: &[String]| expand(words).unwrap_err().status;
        assert_eq!(status(&["/no such:x".into()]), ExitStatus::ProgramNotFound);
        assert_eq!(status(&words(":../x")), ExitStatus::Usage);
        assert_eq!(status(&["/dev/null".into()]), ExitStatus::Usage);
        let link = |to: &Path, at: &str| std::os::unix::fs::symlink(to, root.join(at)).unwrap();
        link(&root.join("in/a"), "in/linked");
        link(Path::new("nowhere"), "in/broken");
        let linked = ["in/a/x", "in/b:c", "in/empty/", "in/linked/x"];
        assert_eq!(guests(&words("")), linked);
        link(&root, "in/loop");
        let refused = expand(&words("")).unwrap_err();
        assert_eq!(refused.status, ExitStatus::Usage);
        assert!(refused.message.contains("a link to a folder that contains it"), "{refused}");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn equal_paths_are_refused() {
        let files = |guests: &[&str]| -> Vec<GuestFile> {
            let file = |guest: &&str| GuestFile::of_user((*guest).into(), Path::new("h"));
            guests.iter().map(file).collect()
        };
        assert_eq!(check(&files(&["a", "b/a", "b/c/"]), &["corpus.txt"]), Ok(0));
        for wrong in [&["a", "a"][..], &["corpus.txt"], &["a", "a/b"], &["b/c/d", "b/c"]] {
            let refused = check(&files(wrong), &["corpus.txt"]).unwrap_err();
            assert_eq!(refused.status, ExitStatus::Usage, "{wrong:?}");
        }
    }

    #[test]
    fn a_program_is_found_by_its_path_or_name() {
        let this = env::current_exe().unwrap();
        let file = |guest: &str, host: &Path| GuestFile::of_user(guest.into(), host);
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let files = [file("bin/prog", &this), file("a/two", &this), file("b/two", &this)];
        let status = |name: &str| program(&files, &["deflate"], name).unwrap_err().status;
        let found = |name: &str| program(&files, &["deflate"], name);
        for same in ["deflate", "./bin//prog", "/bin/prog", "bin/prog"] {
            assert_eq!(found(same), Ok(None), "{same}");
        }
        assert_eq!(found("prog"), Ok(Some("/bin/prog".into())));
        assert_eq!(found(this.to_str().unwrap()), Ok(Some("/bin/prog".into())));
        assert_eq!(
            (status("other"), status("two")),
            (ExitStatus::ProgramNotFound, ExitStatus::Usage)
        );
        let text = program(&[file("text", &manifest)], &[], "/text").unwrap_err();
        assert_eq!(text.status, ExitStatus::NotRunnable);
        for (name, why) in [
            ("./nobody", "./nobody: no such file"),
            ("/dev/null", "neither a file nor a folder"),
            ("./src", "a folder, not a program"),
            ("Cargo.toml", "for the file here add ./ before it"),
            ("nobody", "no such program in PATH or given with --file"),
        ] {
            let refused = program(&files, &[], name).unwrap_err();
            assert!(refused.message.contains(why), "{refused}");
        }
    }

    #[test]
    fn a_program_of_the_host_keeps_its_path_below_the_working_folder() {
        let guest = |name: &str| on_host(name).map(|file| file.guest);
        assert_eq!(
            guest("./src/../Cargo.toml").as_deref(),
            guest("../xtask/Cargo.toml").as_deref()
        );
        assert_eq!(guest("./Cargo.toml").as_deref(), Some("Cargo.toml"));
        assert!(guest("../xtask/Cargo.toml").unwrap().ends_with("/xtask/Cargo.toml"));
        assert_eq!(guest("/bin/sh").as_deref(), Some("bin/sh"));
        assert!(guest("sh").unwrap().ends_with("bin/sh"));
        assert_eq!((guest("Cargo.toml"), guest("./src"), guest("./nobody")), (None, None, None));
    }
}
