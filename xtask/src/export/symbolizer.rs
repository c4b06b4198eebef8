//! The functions in which samples were taken, by the files of `--symbols`.

use std::path::{Path, PathBuf};

use tally_abi::trace::SampleRecord;

use super::recording::Recording;
use crate::{Result, symbols::Symbols};

/// A sample whose address is not known.
const NO_ADDRESS: &str = "[no address]";
/// A sample in ring 0.
const KERNEL: &str = "[kernel]";

/// The files of programs.
#[derive(Default)]
pub(super) struct Symbolizer {
    /// The names of the files, without their folders.
    files: Vec<(String, Symbols)>,
}

impl Symbolizer {
    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be read or is no program.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Symbolizer> {
        let read = |path: &PathBuf| Ok((name(path), Symbols::of_program(path)?));
        Ok(Symbolizer { files: paths.iter().map(read).collect::<Result<_>>()? })
    }

    /// The file of a program: the one of its name, or the only one if the trace has samples of one
    /// program.
    fn file(&self, of: &Recording, program: &str) -> Option<&Symbols> {
        let own = name(Path::new(program));
        if let Some((_, symbols)) = self.files.iter().find(|(file, _)| *file == own) {
            return Some(symbols);
        }
        let mut programs = of.records.samples.iter().map(|sample| of.program_of(sample.session).0);
        let first = programs.next()?;
        match &self.files[..] {
            [(_, only)] if programs.all(|program| program == first) => Some(only),
            _ => None,
        }
    }

    /// The functions of a sample, from the outermost that was inlined into to the innermost.
    pub(super) fn functions(&self, of: &Recording, sample: &SampleRecord) -> Vec<String> {
        if sample.address == 0 {
            return vec![NO_ADDRESS.to_owned()];
        }
        if !sample.user {
            return vec![KERNEL.to_owned()];
        }
        let (_, program) = of.program_of(sample.session);
        let places = self.file(of, program).map(|file| file.places(sample.address));
        let mut names: Vec<String> =
            places.unwrap_or_default().into_iter().map(|place| place.function).collect();
        names.reverse();
        if names.is_empty() {
            names.push(format!("{:#x}", sample.address));
        }
        names
    }

    /// The innermost function of a sample.
    pub(super) fn function(&self, of: &Recording, sample: &SampleRecord) -> String {
        self.functions(of, sample).pop().unwrap_or_default()
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
