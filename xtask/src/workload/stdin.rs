//! The standard input of the programs: a file of the host, or what this command's own input has.

use std::{
    fs::{self, File},
    io::{self, IsTerminal, Read, Seek},
    os::{
        fd::{AsFd, AsRawFd},
        unix::fs::{FileExt, FileTypeExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, memfd_create},
};
use tally_abi::ExitStatus;

use crate::{Failure, Result, machine, output};

/// The word of `--stdin` for this command's own input.
const OWN: &str = "-";
/// Time that a pipe as this command's input has for its first text: the input of a command that
/// something else started may be a pipe that never has any.
const FIRST_TEXT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A file for the programs to read as their input.
#[derive(Clone, Debug)]
pub(super) struct Input {
    /// Path of the file.
    pub path: PathBuf,
    /// A copy of what can be read once only, as of a pipe. It is open as long as the path is used.
    copy: Option<Arc<File>>,
}

impl Input {
    /// The input for the word of `--stdin`: a file, a pipe, or `-`. Without the word, the file or
    /// pipe that is this command's input. `None` for an empty input.
    ///
    /// # Errors
    /// There is no such file, or it cannot be read.
    pub(super) fn of(word: Option<&Path>) -> Result<Option<Input>> {
        let Some(path) = word else { return Input::implied() };
        if path == Path::new(OWN) {
            return Input::copied(&mut io::stdin().lock(), path).map(Some);
        }
        let kind = fs::metadata(path).map_err(|_| no_file(path))?.file_type();
        if kind.is_file() {
            return Ok(Some(Input { path: path.to_owned(), copy: None }));
        }
        if kind.is_dir() {
            let why = format!("--stdin {}: a folder is no input", path.display());
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        if path == Path::new("/dev/null") {
            return Ok(None);
        }
        let mut file = File::open(path).map_err(|error| Failure::io("read", path, &error))?;
        if kind.is_char_device() && !file.is_terminal() {
            let why = format!("--stdin {}: a device without an end is no input", path.display());
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        Input::copied(&mut file, path).map(Some)
    }

    /// Path of the file on the machine.
    pub(super) fn name(&self) -> String {
        let name = if self.copy.is_some() { None } else { self.path.file_name() };
        name.map_or_else(|| "stdin".into(), |name| name.to_string_lossy().into_owned())
    }

    /// The rest of a regular file that is this command's input, whose position stays where it is,
    /// so that a loop over the lines of a file can call this command; or all of a pipe, if it has
    /// text soon.
    fn implied() -> Result<Option<Input>> {
        let path = Path::new("the standard input");
        let failed = |error: io::Error| Failure::io("read", path, &error);
        let owned = io::stdin().as_fd().try_clone_to_owned();
        let Ok(mut file) = owned.map(File::from) else { return Ok(None) };
        let Ok(kind) = file.metadata().map(|metadata| metadata.file_type()) else {
            return Ok(None);
        };
        if kind.is_file() {
            let from = file.stream_position().map_err(failed)?;
            return Input::copied(&mut Rest { file: &file, from }, path).map(Some);
        }
        if !kind.is_fifo() && !kind.is_socket() {
            return Ok(None);
        }
        if !has_text_soon(&file) {
            output::error(
                "xtask: the input is a pipe that had no text within 1 s: to wait, add --stdin -",
            );
            return Ok(None);
        }
        let input = Input::copied(&mut file, path)?;
        let is_empty = input
            .copy
            .as_ref()
            .is_some_and(|copy| copy.metadata().is_ok_and(|metadata| metadata.len() == 0));
        Ok((!is_empty).then_some(input))
    }

    fn copied(from: &mut impl Read, path: &Path) -> Result<Input> {
        let failed = |error: io::Error| Failure::io("read", path, &error);
        let memory = memfd_create("stdin", MemfdFlags::CLOEXEC);
        let mut copy = File::from(memory.map_err(|error| failed(error.into()))?);
        let most = machine::memory_of_host() << 20;
        if io::copy(&mut from.take(most), &mut copy).map_err(failed)? == most {
            let why =
                format!("{}: no machine has the memory for its {} MiB", path.display(), most >> 20);
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        let path = PathBuf::from(format!("/proc/self/fd/{}", copy.as_raw_fd()));
        Ok(Input { path, copy: Some(Arc::new(copy)) })
    }
}

/// The rest of a file, read without a change of its position.
struct Rest<'a> {
    file: &'a File,
    from: u64,
}

impl Read for Rest<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(buffer, self.from)?;
        self.from += bytes as u64;
        Ok(bytes)
    }
}

/// Returns whether a pipe has text, or its end, within a second.
fn has_text_soon(pipe: &File) -> bool {
    let mut polled = [PollFd::new(pipe, PollFlags::IN)];
    poll(&mut polled, Some(&FIRST_TEXT)).is_ok_and(|ready| ready > 0)
}

fn no_file(path: &Path) -> Failure {
    Failure::new(ExitStatus::ProgramNotFound, format!("{}: no such file", path.display()))
}
