//! The files that a dynamic program needs beside itself: its interpreter, and the libraries that
//! the interpreter takes on this machine.
//!
//! The interpreter itself lists them, so that search paths, caches and `$ORIGIN` have the meaning
//! that they have when the program runs here. On the machine the same interpreter searches in the
//! same order, among files at the same paths.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    path::{Component, Path, PathBuf},
    process::{Command, Output},
};

use tally_abi::ExitStatus;
use tally_elf::Program;

use crate::{Failure, Result, guest_files::GuestFile, process, project, visible::visible};

/// The list of libraries outside the default folders, by which glibc's interpreter finds them.
const CACHE: &str = "/etc/ld.so.cache";
/// The variable with further folders of libraries.
pub const FOLDERS: &str = "LD_LIBRARY_PATH";

/// The files that programs need besides themselves and the files `given`, of which they may load
/// the libraries later. `folders` returns the value of [`FOLDERS`]; it is asked if one of the
/// programs is dynamic.
///
/// # Errors
/// A program cannot be read, or an interpreter or a library is not on this machine.
pub fn needed(
    programs: &[GuestFile],
    given: &[GuestFile],
    folders: impl FnOnce() -> Option<String>,
) -> Result<Vec<GuestFile>> {
    let mut dynamic = Vec::new();
    for file in programs {
        dynamic.extend(interpreter(file)?.map(|interpreter| (file, interpreter)));
    }
    if dynamic.is_empty() {
        return Ok(Vec::new());
    }
    let folders = folders();
    let is_later = |file: &&GuestFile| is_library(&file.host) && !programs.contains(file);
    let later: Vec<GuestFile> = given.iter().filter(is_later).cloned().collect();
    let mut files = Vec::new();
    for (file, interpreter) in &dynamic {
        let (folders, later) = (folders.as_deref(), &*later);
        files.extend(Dynamic { file, interpreter, folders, later }.needs()?);
    }
    Ok(files)
}

/// The interpreter of a program; `None` if the file is static or no program.
fn interpreter(file: &GuestFile) -> Result<Option<String>> {
    let bytes = project::read(&file.host)?;
    let program = Program::parse(&bytes).ok();
    Ok(program.and_then(|program| program.interpreter).map(str::to_owned))
}

/// Returns whether a file is an x86-64 ELF file of the kind of libraries.
fn is_library(path: &Path) -> bool {
    // The magic number and the class, then the kind, ET_DYN, and the machine.
    let mut head = [0; 20];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(b"\x7fELF\x02") && head[16..] == [3, 0, 62, 0]
}

/// A dynamic program, and what decides which libraries it gets.
#[derive(Clone, Copy, Debug)]
struct Dynamic<'a> {
    /// The program's file.
    file: &'a GuestFile,
    /// Path of its interpreter.
    interpreter: &'a str,
    /// The value of [`FOLDERS`].
    folders: Option<&'a str>,
    /// Libraries that it may load later, whose own libraries it then needs too.
    later: &'a [GuestFile],
}

impl Dynamic<'_> {
    /// The files that the program needs, besides itself and those that it loads later.
    ///
    /// # Errors
    /// The interpreter or a library of the program is not on this machine.
    fn needs(self) -> Result<Vec<GuestFile>> {
        let Dynamic { file, interpreter, .. } = self;
        let refused = |why: String| {
            let why = format!("{}: {why}", file.host.display());
            Failure::new(ExitStatus::NotRunnable, why)
        };
        if !Path::new(interpreter).is_file() {
            let why = format!(
                "its interpreter {} is not on this machine: install the C library that has it, or \
                 link statically",
                visible(interpreter)
            );
            return Err(refused(why));
        }
        let output = self.list()?;
        let [listed, said] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        if let Some(name) = missing_library(&said).filter(|_| !output.status.success()) {
            let why = format!(
                "its library {} is not on this machine: install it, or name its folder with --env \
                 {FOLDERS}=DIR",
                visible(name)
            );
            return Err(refused(why));
        }
        if !output.status.success() {
            let line = said.lines().next().unwrap_or_default();
            return Err(refused(format!("{interpreter} cannot load it: {}", visible(line))));
        }
        let mut paths: Vec<PathBuf> = listed.lines().filter_map(path_of).map(Into::into).collect();
        // glibc loads its library of exceptions itself when a thread is cancelled or exits.
        let libc = paths.iter().find(|path| path.ends_with("libc.so.6"));
        let unwinder = libc.map(|path| path.with_file_name("libgcc_s.so.1"));
        let own = [interpreter, CACHE].map(PathBuf::from).into_iter().chain(unwinder);
        paths.extend(own.filter(|path| path.is_file()));
        self.at_their_paths(&paths)
    }

    /// Has the interpreter list the libraries.
    fn list(&self) -> Result<Output> {
        let mut call = Command::new(self.interpreter);
        let later = self.later.iter().filter_map(|file| whole(file).ok());
        // The option's value is a list, whose words blanks and colons separate.
        let is_word = |path: &String| !path.contains([' ', ':']);
        let later: Vec<String> = later
            .filter_map(|path| path.into_os_string().into_string().ok())
            .filter(is_word)
            .collect();
        if !later.is_empty() {
            call.arg("--preload").arg(later.join(":"));
        }
        // The interpreter takes `$ORIGIN` from the path that it is given.
        call.arg("--list").arg(whole(self.file)?).env_clear();
        call.envs(self.folders.map(|folders| (FOLDERS, folders)));
        let failed = |error: io::Error| Failure::io("run", Path::new(self.interpreter), &error);
        process::output(&mut call).map_err(failed)
    }

    /// Returns whether the interpreter finds a library because the list of folders has its own.
    fn searches_beside(&self, library: &Path) -> bool {
        let folders = self.folders.unwrap_or_default().split([':', ';']);
        folders.into_iter().any(|folder| library.parent() == Some(Path::new(folder)))
    }

    /// Libraries at their own paths on the machine. One that lies beside the program, or beside a
    /// library that it loads later, is also beside that there, where `$ORIGIN` finds it.
    fn at_their_paths(self, paths: &[PathBuf]) -> Result<Vec<GuestFile>> {
        let mut folders = BTreeSet::new();
        for file in self.later.iter().chain([self.file]) {
            let guest = Path::new(&file.guest).parent().unwrap_or(Path::new(""));
            folders.extend(whole(file)?.parent().map(|host| (host.to_owned(), guest.to_owned())));
        }
        let mut files = BTreeSet::new();
        let is_given = |path: &Path| self.later.iter().any(|file| is_same(file, path));
        for host in paths.iter().filter(|path| !is_given(path) || self.searches_beside(path)) {
            let beside =
                |(own, guest): &(PathBuf, PathBuf)| Some(guest.join(host.strip_prefix(own).ok()?));
            for guest in folders.iter().filter_map(beside).chain([host.clone()]) {
                files.insert(GuestFile::of_user(normal(&guest), host));
            }
        }
        Ok(files.into_iter().collect())
    }
}

/// The path of a file without links.
fn whole(file: &GuestFile) -> Result<PathBuf> {
    fs::canonicalize(&file.host).map_err(|error| Failure::io("read", &file.host, &error))
}

/// Returns whether the file is the one at this path.
fn is_same(file: &GuestFile, path: &Path) -> bool {
    whole(file).is_ok_and(|own| own == path)
}

/// The path of a library in a line of the list, `NAME => PATH (ADDRESS)` or `PATH (ADDRESS)`.
fn path_of(line: &str) -> Option<&str> {
    let named = line.split_once(" => ").map_or(line, |(_, path)| path);
    let (path, _) = named.trim().rsplit_once(" (0x")?;
    path.contains('/').then_some(path)
}

/// The name of a library that is missing, as glibc's or musl's interpreter says it.
fn missing_library(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let glibc = line.split_once("error while loading shared libraries: ");
        let glibc = glibc.filter(|_| line.contains("cannot open")).map(|(_, rest)| rest);
        let rest = glibc.or_else(|| line.strip_prefix("Error loading shared library "))?;
        rest.split(": ").next()
    })
}

/// A path on the machine, without `/` at its start and without `..`.
fn normal(path: &Path) -> String {
    let mut names: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => drop(names.pop()),
            _ => (),
        }
    }
    names.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_both_interpreters_are_read() {
        let glibc = "\tlinux-vdso.so.1 (0x00007fff)\n\tlibc.so.6 => /lib/a b/libc.so.6 (0x00007f)\n\
                     \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\tstatically linked\n";
        let paths: Vec<_> = glibc.lines().filter_map(path_of).collect();
        assert_eq!(paths, ["/lib/a b/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
        assert_eq!(missing_library(glibc), None);
        let missing = "/a: error while loading shared libraries: libx.so: cannot open shared object \
                       file: No such file or directory\n";
        assert_eq!(missing_library(missing), Some("libx.so"));
        let musl = "Error loading shared library libx.so: No such file (needed by p)\n";
        assert_eq!(missing_library(musl), Some("libx.so"));
        assert_eq!(normal(Path::new("/a/../../b/./c")), "b/c");
    }

    #[test]
    fn a_dynamic_program_needs_its_interpreter_and_its_libraries() {
        let this = std::env::current_exe().unwrap();
        let file = &GuestFile::of_user("bin/prog".into(), &this);
        let interpreter = "/lib64/ld-linux-x86-64.so.2";
        let dynamic = Dynamic { file, interpreter, folders: None, later: &[] };
        let files = dynamic.needs().unwrap();
        for name in ["lib64/ld-linux-x86-64.so.2", "libc.so.6"] {
            assert!(files.iter().any(|file| file.guest.ends_with(name)), "{name}: {files:?}");
        }
        assert!(files.iter().all(|file| file.host.is_file()), "{files:?}");
        let refused = Dynamic { interpreter: "/nonexistent/ld.so", ..dynamic }.needs().unwrap_err();
        assert_eq!(refused.status, ExitStatus::NotRunnable);
        assert!(refused.message.contains("interpreter /nonexistent/ld.so is not"), "{refused}");
    }
}
