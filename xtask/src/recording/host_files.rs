//! The files on this host of those that ran: the files of `--symbols`, and those that the run names
//! and that have not changed since.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    code_files::{self, CodeFile, KernelFile},
    output, project, symbols,
    visible::visible,
};

/// A file of `--symbols`.
struct Given {
    path: PathBuf,
    identity: String,
    /// Whether it has no code: the separate debug file of another one.
    is_debug_only: bool,
    is_used: bool,
}

/// The host's files of one that ran.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    /// The file itself, or if it is not there the one with its symbols.
    pub(super) path: PathBuf,
    /// The separate debug file, if `--symbols` has it.
    pub(super) debug: Option<PathBuf>,
}

impl From<PathBuf> for Chosen {
    fn from(path: PathBuf) -> Chosen {
        Chosen { path, debug: None }
    }
}

/// The files of `--symbols`, and what was chosen.
pub(super) struct HostFiles {
    given: Vec<Given>,
    /// Choices by the offset in the ramdisk.
    chosen: BTreeMap<u64, Option<Chosen>>,
}

impl HostFiles {
    /// Reads the identities of the files of `--symbols`.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn of(paths: &[PathBuf]) -> Result<HostFiles> {
        let given = |path: &PathBuf| {
            let bytes = project::read(path)?;
            let is_debug_only =
                object::File::parse(&*bytes).is_ok_and(|file| symbols::is_debug_only(&file));
            let identity = code_files::identity(&bytes);
            Ok(Given { path: path.clone(), identity, is_debug_only, is_used: false })
        };
        let given = paths.iter().map(given).collect::<Result<_>>()?;
        Ok(HostFiles { given, chosen: BTreeMap::new() })
    }

    /// Says which files of `--symbols` no program has.
    pub(super) fn note_unused(&self) {
        for Given { path, .. } in self.given.iter().filter(|given| !given.is_used) {
            output::note(format_args!(
                "xtask: --symbols {}: no file of the programs that were sampled",
                path.display()
            ));
        }
    }

    /// The host's files with the code and the symbols of a file that ran, if they are the same
    /// build.
    pub(super) fn choose(&mut self, known: &CodeFile) -> Result<Option<Chosen>> {
        if let Some(chosen) = self.chosen.get(&known.ramdisk_offset) {
            return Ok(chosen.clone());
        }
        let chosen = match self.choose_given(known)? {
            Some(given) => Some(given),
            None => unchanged_or_noted(&known.host, &known.identity).map(Chosen::from),
        };
        self.chosen.insert(known.ramdisk_offset, chosen.clone());
        Ok(chosen)
    }

    /// The host's file with the kernel's symbols, if it is the same build.
    pub(super) fn choose_kernel(&mut self, known: &KernelFile) -> Option<Chosen> {
        let mut given = self.given.iter_mut();
        let path = match given.find(|given| given.identity == known.identity) {
            Some(same) => {
                same.is_used = true;
                Some(same.path.clone())
            }
            None => unchanged_or_noted(&known.host, &known.identity),
        };
        path.map(Chosen::from)
    }

    /// The file of `--symbols` of the same build.
    fn choose_given(&mut self, known: &CodeFile) -> Result<Option<Chosen>> {
        if let Some(same) = self.given.iter_mut().find(|given| given.identity == known.identity) {
            same.is_used = true;
            let failed = |error| Failure::io("read", &same.path, &error);
            let given = same.path.canonicalize().map_err(failed)?;
            let code =
                same.is_debug_only.then(|| unchanged(&known.host, &known.identity).ok()).flatten();
            return Ok(Some(match code {
                Some(path) => Chosen { path, debug: Some(given) },
                None => given.into(),
            }));
        }
        let has_name = |given: &&Given| given.path.file_name().is_some_and(|n| n == known.name());
        let Some(Given { path, identity, .. }) = self.given.iter().find(has_name) else {
            return Ok(None);
        };
        let why = format!(
            "--symbols {}: another build than the one that ran: it has {identity}, the one that \
             ran {}; give the file that ran, or record again",
            path.display(),
            known.identity
        );
        Err(Failure::new(ExitStatus::Usage, why))
    }

    /// The file of `--symbols` with a program's name, or the only one for the only program: of a
    /// trace that does not say which files ran.
    pub(super) fn by_name(&mut self, name: &str, is_only: bool) -> Option<PathBuf> {
        let own = Path::new(name).file_name();
        let is_the_only = is_only && self.given.len() == 1;
        let mut given = self.given.iter_mut();
        let found = given.find(|given| is_the_only || given.path.file_name() == own)?;
        found.is_used = true;
        Some(found.path.clone())
    }
}

/// The file on this host of one that ran, or the reason why its functions have no names. A trace
/// from elsewhere may name any path, and only a file's content ends.
fn unchanged(host: &Path, identity: &str) -> std::result::Result<PathBuf, &'static str> {
    if !host.is_file() {
        return Err(if host.exists() { "is no file" } else { "is gone" });
    }
    let bytes = fs::read(host).map_err(|_| "cannot be read")?;
    if code_files::identity(&bytes) != identity {
        return Err("has changed since it ran");
    }
    host.canonicalize().map_err(|_| "cannot be read")
}

/// The file on this host of one that ran, if it is still the same build; otherwise says why its
/// functions have no names.
fn unchanged_or_noted(host: &Path, identity: &str) -> Option<PathBuf> {
    let noted = |why: &str| {
        output::note(format_args!(
            "xtask: {} {why}: its functions have no names; record again, or give the file that ran \
             with --symbols",
            visible(&host.to_string_lossy())
        ));
    };
    unchanged(host, identity).map_err(noted).ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_debug_file_is_given_beside_the_file_that_ran_or_instead_of_it() {
        let folder = std::env::temp_dir().join(format!("tally-given-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let folder = folder.canonicalize().unwrap();
        fs::write(folder.join("a.c"), "void _start(void) { for (;;) ; }").unwrap();
        for words in [
            "cc -g -nostdlib -static -Wl,--build-id -o ran a.c",
            "objcopy --only-keep-debug ran a.debug",
            "objcopy --strip-all ran",
        ] {
            let mut words = words.split(' ');
            let mut call = Command::new(words.next().unwrap());
            assert!(call.args(words).current_dir(&folder).status().unwrap().success());
        }
        let (host, debug) = (folder.join("ran"), folder.join("a.debug"));
        let identity = code_files::identity(&fs::read(&host).unwrap());
        let known =
            CodeFile { guest: "bin/ran".into(), host: host.clone(), ramdisk_offset: 7, identity };
        let chosen = || {
            let mut files = HostFiles::of(std::slice::from_ref(&debug)).unwrap();
            files.choose(&known).unwrap().unwrap()
        };
        assert_eq!((chosen().path, chosen().debug), (host.clone(), Some(debug.clone())));
        assert_eq!(unchanged(&host, &known.identity), Ok(host.clone()));
        assert_eq!(unchanged(&host, "another"), Err("has changed since it ran"));
        assert_eq!(unchanged(&folder, &known.identity), Err("is no file"));
        fs::remove_file(&host).unwrap();
        assert_eq!(unchanged(&host, &known.identity), Err("is gone"));
        assert_eq!((chosen().path, chosen().debug), (debug.clone(), None));
        fs::remove_dir_all(&folder).unwrap();
    }
}
