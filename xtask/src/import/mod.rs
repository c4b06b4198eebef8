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
    Failure, Result, check,
    machine::{self, Boot},
    output::{self, ProgramWriter},
    project,
    report::{Report, table::Detail},
    run,
};

/// Options of `cargo xtask import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Photographs of all codes, PNG, JPEG or PPM, in any order; several codes may be on one
    #[arg(required_unless_present = "messages", value_name = "PHOTO")]
    photos: Vec<PathBuf>,
    /// Messages that the machine sent by its second serial port, in place of photographs
    #[arg(long, value_name = "FILE", conflicts_with = "photos")]
    messages: Option<PathBuf>,
    /// Write the run's trace to this file, as far as the machine sent it, for `cargo xtask trace`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
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
    if let Some(path) = &args.trace {
        project::check_writable(path)?;
    }
    let messages = match &args.messages {
        Some(file) => project::read(file)?,
        None => messages(&args.photos)?,
    };
    let boot = machine::of_messages(&messages, &mut |_| {})?;
    if !check::is_check(&boot) {
        let mut writer = ProgramWriter::new(args.json);
        boot.transcript.output.iter().for_each(|said| writer.write(said.fd, &said.bytes));
        writer.end()?;
    }
    machine::warn(&boot);
    let report = Report::of(&boot);
    let shown = run::show(&boot, &report, args.json, Detail::All, None);
    // The trace is also written if the report cannot be printed.
    if let Some(path) = &args.trace {
        write_trace(&boot, &report, path)?;
    }
    shown
}

/// Writes the trace that came with the messages.
fn write_trace(boot: &Boot, report: &Report, path: &Path) -> Result<()> {
    if boot.transcript.trace.is_empty() {
        let why = if boot.transcript.rings.is_empty() {
            "the machine sent no trace: write its image with `cargo xtask image --trace`"
        } else {
            "the machine's screen has no room for a trace beside its other results: import what it sends by \
             its second serial port (`cargo xtask image --trace --wire`)"
        };
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    run::write_trace(boot, report, "", path)
}

/// The messages of the run whose codes are on these photographs.
///
/// # Errors
/// As [`Photographs::add`] and [`Photographs::messages`].
pub fn messages(files: &[PathBuf]) -> Result<Vec<u8>> {
    let mut photographs = Photographs::default();
    files.iter().try_for_each(|file| photographs.add(file))?;
    let messages = photographs.messages();
    if !photographs.joiner.is_empty() {
        for file in photographs.without {
            output::note(format_args!("xtask: {file}: no code of Tally"));
        }
    }
    messages
}

/// Photographs of one run's codes. Each is read only once, as reading takes most of the time.
#[derive(Debug, Default)]
pub struct Photographs {
    joiner: Joiner,
    /// The photographs without a code.
    without: Vec<String>,
}

impl Photographs {
    /// Reads the codes on another photograph.
    ///
    /// # Errors
    /// The file is no picture.
    pub fn add(&mut self, file: &Path) -> Result<()> {
        let codes = read(file)?.codes(join::is_of_tally);
        codes.iter().for_each(|code| self.joiner.add(code, file));
        if codes.is_empty() {
            self.without.push(file.display().to_string());
        }
        Ok(())
    }

    /// The messages in all codes together.
    ///
    /// # Errors
    /// No photograph has one of Tally's codes, codes are missing, or they are from several runs or
    /// another version.
    pub fn messages(&self) -> Result<Vec<u8>> {
        self.joiner.check()?;
        if self.joiner.is_empty() {
            let why = format!(
                "{}: no code of Tally: take the photograph from nearer, sharp, with the whole code \
                 and the white around it",
                self.without.join(", ")
            );
            return Err(Failure::new(ExitStatus::NoCodes, why));
        }
        self.joiner.messages()
    }
}

fn read(file: &Path) -> Result<Photo> {
    Photo::read(file).map_err(|why| match why {
        Unreadable::File(error) => Failure::io("read", file, &error),
        Unreadable::Picture(_) => {
            Failure::new(ExitStatus::NoCodes, format!("{}: {why}", file.display()))
        }
    })
}
