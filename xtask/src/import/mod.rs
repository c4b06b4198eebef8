//! `cargo xtask import`: the results of a machine without a serial port, from photographs of the
//! codes on its screen.

mod join;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use clap::Args;
use tally_abi::ExitStatus;
use tally_photo::{Photo, Unreadable};

use self::join::Joiner;
use crate::{
    Failure, Result, check, machine,
    output::{self, ProgramWriter},
    report::Report,
    run,
};

/// Options of `cargo xtask import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Photographs of all codes, PNG, JPEG or PPM, in any order; several codes may be on one
    #[arg(required = true, value_name = "PHOTO")]
    photos: Vec<PathBuf>,
    /// Print one JSON object, alone on standard output; what programs wrote there goes to standard
    /// error
    #[arg(long)]
    json: bool,
}

/// Prints the results; the status is the run's.
///
/// # Errors
/// As [`messages`].
pub fn main(args: &ImportArgs) -> Result<u8> {
    let messages = messages(&args.photos)?;
    let boot = machine::of_messages(&messages, &mut |_| {})?;
    if !check::is_check(&boot) {
        let mut writer = ProgramWriter::new(args.json);
        boot.transcript.output.iter().for_each(|said| writer.write(said.fd, &said.bytes));
        writer.end()?;
    }
    machine::warn(&boot);
    run::show(&boot, &Report::of(&boot), args.json, None)
}

/// The messages of the run whose codes are on these photographs.
///
/// # Errors
/// A file is no picture, no photograph has one of Tally's codes, codes are missing, or are those of
/// several runs or of another version.
pub fn messages(files: &[PathBuf]) -> Result<Vec<u8>> {
    let mut joiner = Joiner::default();
    let mut without = Vec::new();
    for file in files {
        let codes = read(file)?.codes(join::is_of_tally);
        codes.iter().for_each(|code| joiner.add(code, file));
        if codes.is_empty() {
            without.push(file.display().to_string());
        }
    }
    joiner.check()?;
    if without.len() == files.len() {
        let why = format!(
            "{}: no code of Tally: take the photograph from nearer, sharp, with the whole code and \
             the white around it",
            without.join(", ")
        );
        return Err(Failure::new(ExitStatus::NoCodes, why));
    }
    for file in without {
        output::note(format_args!("xtask: {file}: no code of Tally"));
    }
    joiner.messages()
}

fn read(file: &Path) -> Result<Photo> {
    Photo::read(file).map_err(|why| match why {
        Unreadable::File(error) => Failure::io("read", file, &error),
        Unreadable::Picture(_) => {
            Failure::new(ExitStatus::NoCodes, format!("{}: {why}", file.display()))
        }
    })
}
