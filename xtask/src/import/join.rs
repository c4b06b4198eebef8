//! Joins the codes of a run.

use std::path::{Path, PathBuf};

use tally_abi::{ExitStatus, wire::VERSION};
use tally_screen::{NotAPart, Part, Unpacked, unpack};

use crate::{Failure, Result};

/// Returns whether a code is one of Tally's, of any version.
pub(super) fn is_of_tally(code: &[u8]) -> bool {
    matches!(Part::read(code), Ok(_) | Err(NotAPart::OtherVersion(_)))
}

/// The codes that were read.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    /// Each part once, with the first file that shows it.
    parts: Vec<(Part, PathBuf)>,
    /// The first code of another version: its version and its file.
    other: Option<(u16, PathBuf)>,
}

impl Joiner {
    /// Adds one of Tally's codes, from a file.
    pub(super) fn add(&mut self, code: &[u8], file: &Path) {
        match Part::read(code) {
            Ok(part) if !self.parts.iter().any(|(known, _)| *known == part) => {
                self.parts.push((part, file.to_owned()));
            }
            Err(NotAPart::OtherVersion(version)) => {
                self.other.get_or_insert_with(|| (version, file.to_owned()));
            }
            _ => {}
        }
    }

    /// Returns whether no code of this version was read.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Checks that all codes belong together.
    ///
    /// # Errors
    /// A code is of another version, or there are codes of several runs.
    pub(super) fn check(&self) -> Result<()> {
        if let Some((version, file)) = &self.other {
            let why = format!(
                "{}: a code of version {version}, but this tool reads version {VERSION}: use the \
                 `cargo xtask import` of the clone that wrote the machine's image",
                file.display()
            );
            return Err(Failure::new(ExitStatus::OtherVersion, why));
        }
        let Some((first, first_file)) = self.parts.first() else { return Ok(()) };
        let is_other = |part: &Part| (part.run, part.count) != (first.run, first.count);
        match self.parts.iter().find(|(part, _)| is_other(part)) {
            None => Ok(()),
            Some((other, file)) => {
                let why = format!(
                    "codes of several runs: {} shows run {:08x}, {} run {:08x}: import the photographs \
                     of one run",
                    first_file.display(),
                    first.run,
                    file.display(),
                    other.run
                );
                Err(Failure::new(ExitStatus::SeveralRuns, why))
            }
        }
    }

    /// The messages in the codes.
    ///
    /// # Errors
    /// Codes are missing.
    pub(super) fn messages(&self) -> Result<Vec<u8>> {
        let parts: Vec<Part> = self.parts.iter().map(|(part, _)| part.clone()).collect();
        match unpack(&parts) {
            Unpacked::Messages(messages) => Ok(messages),
            Unpacked::Missing(missing) => {
                let numbers: Vec<String> = missing.iter().map(|n| (n + 1).to_string()).collect();
                let count = parts.first().map_or(0, |part| part.count);
                let why = format!(
                    "missing: code {} of {count}: photograph these again, sharp and as large as \
                     possible, and import all photographs together",
                    numbers.join(", ")
                );
                Err(Failure::new(ExitStatus::CodesMissing, why))
            }
            Unpacked::Damaged => {
                let why = "the codes together are not what the machine sent: photograph them again";
                Err(Failure::new(ExitStatus::MachineFailed, why))
            }
        }
    }
}
