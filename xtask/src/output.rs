//! Output: results as text or as one JSON object on standard output, everything else on standard
//! error; and what programs of a machine write.
//!
//! A closed standard output is no failure: the reader has read enough. Any other write error on
//! standard output, such as a full disk, is one. Write errors on standard error are ignored, as
//! there is no other place to report them.

use std::{
    fmt::Display,
    io::{self, Write},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use serde::Serialize;
use tally_abi::ExitStatus;

use crate::{Failure, Result};

/// Prints `object` as JSON if `json` is set, else `text`, which ends with a newline.
///
/// # Errors
/// Standard output cannot be written and is not closed.
pub fn print(json: bool, object: &impl Serialize, text: &str) -> Result<()> {
    if !json {
        return self::text(text);
    }
    bytes(&json_line(object)?)
}

/// A line of JSON.
///
/// # Errors
/// The object has no form in JSON.
pub fn json_line(object: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(object).map_err(|error| {
        Failure::new(ExitStatus::HostError, format!("cannot print the results: {error}"))
    })?;
    line.push(b'\n');
    Ok(line)
}

/// Prints `text`, which ends with a newline.
///
/// # Errors
/// As [`print`].
pub fn text(text: &str) -> Result<()> {
    bytes(text.as_bytes())
}

/// Writes `bytes` to standard output.
///
/// # Errors
/// As [`print`].
pub fn bytes(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout();
    // Standard output buffers an unfinished line, and would drop it at exit without an error.
    out.write_all(bytes).and_then(|()| out.flush()).or_else(unless_closed)
}

/// Converts a write error of standard output.
///
/// # Errors
/// Every error except that standard output is closed.
pub fn unless_closed(error: io::Error) -> Result<()> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failure::io("write", Path::new("standard output"), &error)),
    }
}

/// Whether notes are printed. Relaxed: it is set once, before any.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Prints no notes from now on.
pub fn silence_notes() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Returns whether notes are printed.
pub fn has_notes() -> bool {
    !IS_QUIET.load(Ordering::Relaxed)
}

/// Prints a line on standard error, unless notes are silenced.
pub fn note(line: impl Display) {
    if has_notes() {
        error(line);
    }
}

/// Prints a line on standard error: why the command failed.
pub fn error(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes what the programs of a machine write to this process' standard output and error.
#[derive(Debug)]
pub struct ProgramWriter {
    /// Whether standard output has something else.
    is_taken: bool,
    failed: Option<io::Error>,
}

impl ProgramWriter {
    /// Their standard output is this process' one; if that `is_taken`, its standard error.
    pub fn new(is_taken: bool) -> ProgramWriter {
        ProgramWriter { is_taken, failed: None }
    }

    /// Writes what a program wrote to the descriptor `fd`.
    pub fn write(&mut self, fd: u8, bytes: &[u8]) {
        if fd != 1 || self.is_taken {
            // A closed standard error means that no output is wanted.
            let _ = io::stderr().write_all(bytes);
        } else if self.failed.is_none() {
            let mut out = io::stdout();
            self.failed = out.write_all(bytes).and_then(|()| out.flush()).err();
        }
    }

    /// Ends writing.
    ///
    /// # Errors
    /// Standard output could not be written and is not closed.
    pub fn end(self) -> Result<()> {
        self.failed.map_or(Ok(()), unless_closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_output_is_no_failure_and_a_full_disk_is() {
        assert_eq!(unless_closed(io::ErrorKind::BrokenPipe.into()), Ok(()));
        let full = unless_closed(io::ErrorKind::StorageFull.into()).unwrap_err();
        assert_eq!(full.status, ExitStatus::NoSpace);
    }
}
