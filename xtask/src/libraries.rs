//! The files that a dynamic program needs beside itself: its interpreter, and the libraries that the
//! interpreter takes on this machine.
//!
//! The interpreter itself lists them, so that search paths, caches and `$ORIGIN` have the meaning
//! that they have when the program runs here. On the machine the same interpreter searches in the
//! same order, among files at the same paths.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path},
    process::{Command, Output},
};

use tally_abi::ExitStatus;

use crate::{Failure, Result, guest_files::GuestFile, process, visible::visible};

/// The list of libraries outside the default folders, by which glibc's interpreter finds them.
const CACHE: &str = "/etc/ld.so.cache";
/// The variable with further folders of libraries.
pub const FOLDERS: &str = "LD_LIBRARY_PATH";

/// The files that a program needs with this interpreter; `folders` is the value of [`FOLDERS`].
///
/// # Errors
/// The interpreter or a library is not on this machine.
pub fn needed(
    file: &GuestFile,
    interpreter: &str,
    folders: Option<&str>,
) -> Result<Vec<GuestFile>> {
    let refused = |why: String| {
        let why = format!("{}: {why}", file.host.display());
        Failure::new(ExitStatus::NotRunnable, why)
    };
    if !Path::new(interpreter).is_file() {
        let why = format!(
            "its interpreter {} is not on this machine: install the C library that has it, or link \
             statically",
            visible(interpreter)
        );
        return Err(refused(why));
    }
    let output = list(&file.host, interpreter, folders)?;
    let texts = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    if let Some(name) = texts.iter().find_map(|text| missing_library(text)) {
        let why = format!(
            "its library {} is not on this machine: install it, or name its folder with --env \
             {FOLDERS}=DIR",
            visible(name)
        );
        return Err(refused(why));
    }
    if !output.status.success() {
        let line = texts[1].lines().next().unwrap_or_default();
        return Err(refused(format!("{interpreter} cannot load it: {}", visible(line))));
    }
    let own = [interpreter, CACHE].into_iter().filter(|path| Path::new(path).is_file());
    Ok(at_their_paths(file, own.chain(texts[0].lines().filter_map(path_of))))
}

/// The files that a library needs which programs load later, as far as they are on this machine: a
/// program may have others itself. The arguments are those of [`needed`].
pub fn needed_later(file: &GuestFile, interpreter: &str, folders: Option<&str>) -> Vec<GuestFile> {
    let listed = list(&file.host, interpreter, folders).map(|output| output.stdout);
    let listed = listed.unwrap_or_default();
    at_their_paths(file, String::from_utf8_lossy(&listed).lines().filter_map(path_of))
}

/// Has the interpreter list the libraries of a file.
fn list(host: &Path, interpreter: &str, folders: Option<&str>) -> Result<Output> {
    // The interpreter takes `$ORIGIN` from the path that it is given.
    let host = fs::canonicalize(host).map_err(|error| Failure::io("read", host, &error))?;
    let mut call = Command::new(interpreter);
    call.arg("--list").arg(host).env_clear().envs(folders.map(|folders| (FOLDERS, folders)));
    process::output(&mut call).map_err(|error| Failure::io("run", Path::new(interpreter), &error))
}

/// Libraries at their own paths on the machine. One that lies beside `file` is also beside it there,
/// where `$ORIGIN` finds it.
fn at_their_paths<'a>(file: &GuestFile, paths: impl Iterator<Item = &'a str>) -> Vec<GuestFile> {
    let host = fs::canonicalize(&file.host).unwrap_or_default();
    let folder = Path::new(&file.guest).parent().unwrap_or(Path::new(""));
    let mut files = BTreeSet::new();
    for path in paths.map(Path::new) {
        let beside = host.parent().and_then(|own| path.strip_prefix(own).ok());
        let guests = beside.map(|rest| folder.join(rest)).into_iter().chain([path.to_owned()]);
        files.extend(guests.map(|guest| GuestFile { guest: normal(&guest), host: path.into() }));
    }
    files.into_iter().collect()
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
        let glibc = line.trim().strip_suffix(" => not found");
        let musl = line.strip_prefix("Error loading shared library ");
        glibc.or(musl.and_then(|rest| rest.split(": ").next()))
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
        assert_eq!(missing_library("\tlibx.so => not found\n"), Some("libx.so"));
        let musl = "Error loading shared library libx.so: No such file (needed by p)\n";
        assert_eq!(missing_library(musl), Some("libx.so"));
        assert_eq!(normal(Path::new("/a/../../b/./c")), "b/c");
    }

    #[test]
    fn a_dynamic_program_needs_its_interpreter_and_its_libraries() {
        let this = std::env::current_exe().unwrap();
        let file = GuestFile { guest: "bin/prog".into(), host: this };
        let files = needed(&file, "/lib64/ld-linux-x86-64.so.2", None).unwrap();
        for name in ["lib64/ld-linux-x86-64.so.2", "libc.so.6"] {
            assert!(files.iter().any(|file| file.guest.ends_with(name)), "{name}: {files:?}");
        }
        assert!(files.iter().all(|file| file.host.is_file()), "{files:?}");
        let refused = needed(&file, "/nonexistent/ld.so", None).unwrap_err();
        assert_eq!(refused.status, ExitStatus::NotRunnable);
        assert!(refused.message.contains("interpreter /nonexistent/ld.so is not"), "{refused}");
    }
}
