//! The files of `stat -o FILE`. The machine has each under a name in its root, and sends it at the
//! end; the host writes it to FILE.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use tally_abi::command::Command;

use crate::{
    Failure, Result,
    machine::{self, Boot},
    program_words::{name_of_output, tally},
    project,
};

/// A file that `stat` writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatFile {
    path: PathBuf,
    /// Name in the root of the machine.
    name: String,
    /// Whether the text follows what the file has.
    appends: bool,
}

impl StatFile {
    /// The files of these programs, each with its arguments. Of programs that write to the same
    /// file, the first says whether the file is replaced.
    pub fn all(programs: &[Vec<String>]) -> Vec<StatFile> {
        let mut all: Vec<StatFile> = Vec::new();
        for words in programs.iter().filter_map(|words| tally(words)) {
            let Ok(command) = Command::parse(&words) else { continue };
            let Some(file) = command.stat.output else { continue };
            let (path, name) = (PathBuf::from(file), name_of_output(file));
            if all.iter().all(|other| other.path != path) {
                all.push(StatFile { path, name, appends: command.stat.appends });
            }
        }
        all
    }

    /// Checks that the file can be written, before anything is built.
    ///
    /// # Errors
    /// The host refuses the file.
    pub fn check(&self) -> Result<()> {
        project::check_writable(&self.path)
    }

    /// Moves the file out of `folder`, which has the files of the programs. A program that could
    /// not be started has written none.
    fn take_from(&self, folder: &Path) -> Result<()> {
        let sent = folder.join(&self.name);
        let failed = |error: io::Error| Failure::io("write", &self.path, &error);
        match fs::read(&sent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
            Ok(text) if self.appends => {
                let to = File::options().append(true).create(true).open(&self.path);
                to.and_then(|mut to| to.write_all(&text)).map_err(failed)?;
            }
            Ok(text) => project::write(&self.path, &text)?,
        }
        fs::remove_file(&sent).map_err(|error| Failure::io("remove", &sent, &error))
    }
}

/// Writes the files that the programs created or changed into `out`, if it is given, and `files`
/// to their own paths.
///
/// # Errors
/// The kernel did not send all files, or the host refuses one.
pub fn write(boot: &Boot, out: Option<&Path>, files: &[StatFile]) -> Result<()> {
    if out.is_none() && files.is_empty() {
        return Ok(());
    }
    let own = boot.folder.file("files");
    let folder = out.unwrap_or(&own);
    if out.is_none() {
        machine::prepare_files(folder)?;
    }
    let written = boot.write_files(folder);
    let taken = files.iter().try_for_each(|file| file.take_from(folder));
    if out.is_none() {
        fs::remove_dir_all(folder).map_err(|error| Failure::io("remove", folder, &error))?;
    }
    written.and(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_moved_to_their_paths_and_added_to() {
        let root = std::env::temp_dir().join(format!("xtask-stat-{}", std::process::id()));
        fs::create_dir_all(root.join("sent")).unwrap();
        let path = root.join("a%b.txt");
        let words = |options: &str| -> Vec<String> {
            let words = format!("stat -o {} {options}-e cycles prog -o x", path.display());
            words.split(' ').map(str::to_owned).collect()
        };
        let (new, more) = (words(""), words("--append "));
        let all = StatFile::all(&[new.clone(), more.clone(), vec!["prog".into()]]);
        assert_eq!(all.len(), 1);
        let take = |files: &[StatFile], text: &str| {
            let sent = root.join("sent").join(&files[0].name);
            fs::write(&sent, text).unwrap();
            files[0].take_from(&root.join("sent")).unwrap();
            assert!(!sent.exists());
            fs::read_to_string(&path).unwrap()
        };
        assert_eq!(take(&all, "one\n"), "one\n");
        assert_eq!(take(&StatFile::all(&[more]), "two\n"), "one\ntwo\n");
        assert_eq!(take(&all, "three\n"), "three\n");
        assert_eq!(all[0].take_from(&root.join("sent")), Ok(()), "nothing came");
        fs::remove_dir_all(root).unwrap();
    }
}
