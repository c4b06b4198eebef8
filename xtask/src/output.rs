//! Output: results as text or as one JSON object on standard output, everything else on standard
//! error; and the output of a machine's programs.
//!
//! A terminal gets no control characters except the tool's own: foreign texts are escaped
//! ([`crate::visible`]), and the programs' output is marked ([`ProgramWriter`]). If standard output
//! is no terminal, it gets the bytes unchanged.
//!
//! A closed standard output is no failure: the reader has read enough. Any other write error on
//! standard output, such as a full disk, is one. Write errors on standard error are ignored, as
//! there is no other place to report them.

mod marked;

use std::{
    borrow::Cow,
    collections::BTreeSet,
    env,
    fmt::Display,
    io::{self, IsTerminal, Write},
    os::fd::AsFd,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::Serialize;
use tally_abi::ExitStatus;
use xtask_start::LABORATORY;

use self::marked::{Marked, Row, Terminal};
use crate::{Failure, Result, visible::visible_lines};

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

/// Writes `bytes` to standard output. If that is a terminal, they are text.
///
/// # Errors
/// As [`print`].
pub fn bytes(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout();
    let text = out.is_terminal().then(|| String::from_utf8_lossy(bytes));
    let bytes = text.as_ref().map_or(Cow::Borrowed(bytes), |text| {
        end_row();
        Cow::Owned(visible_lines(text).into_owned().into_bytes())
    });
    let bytes = &*bytes;
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

/// Prints a line on standard error as [`note`] does, unless it was printed before.
pub fn note_once(line: impl Display) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let line = line.to_string();
    if PRINTED.lock().unwrap_or_else(PoisonError::into_inner).insert(line.clone()) {
        note(line);
    }
}

/// The columns of text on standard output: those of a wide terminal, or 80.
pub fn columns() -> usize {
    let out = io::stdout();
    let columns = if out.is_terminal() { columns_of(&out) } else { COLUMNS };
    columns.max(COLUMNS).into()
}

/// The columns of a terminal.
fn columns_of(terminal: &impl AsFd) -> u16 {
    let size = rustix::termios::tcgetwinsize(terminal);
    size.ok().map(|size| size.ws_col).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
}

/// Prints the reason of a failure on standard error. The tool and its commands have the name in it
/// under which the tool was started.
pub fn error(line: impl Display) {
    end_row();
    let line = as_started(line.to_string(), typed());
    let _ = writeln!(io::stderr(), "{}", visible_lines(&line));
}

/// The name under which `cargo install --path xtask` installs the tool.
pub const TOOL: &str = "tally";
/// Beginning of the tool's messages in its clone.
const SPEAKER: &str = "xtask: ";
/// The words that start it in its clone.
const IN_CLONE: &str = "cargo xtask";

/// The words that the user typed to start this program: cargo sets a variable for programs it runs.
pub fn typed() -> &'static str {
    if env::var_os("CARGO_MANIFEST_DIR").is_some() { IN_CLONE } else { TOOL }
}

/// A message with the commands of the tool as `typed`; those of the laboratory are in the clone
/// alone.
fn as_started(message: String, typed: &str) -> String {
    let message = match message.strip_prefix(SPEAKER) {
        Some(rest) if typed == TOOL => format!("{TOOL}: {rest}"),
        _ => message,
    };
    let of_tool = |rest: &str| !LABORATORY.iter().any(|word| rest.starts_with(&format!(" {word}")));
    let mut parts = message.split(IN_CLONE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, rest| text + if of_tool(rest) { typed } else { IN_CLONE } + rest)
}

/// The row on which programs write on the terminal. Output and errors share it, if both are
/// terminals.
static ROW: Mutex<Row> = Mutex::new(Row(0));

fn row() -> MutexGuard<'static, Row> {
    ROW.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the row on which a program writes, if it has not ended: the tool writes on separate rows.
pub fn end_row() {
    if std::mem::take(&mut row().0) > 0 {
        // If the terminal is gone, it has no rows.
        let _ = io::stderr().write_all(b"\n");
    }
}

/// Escapes a text for standard output that contains foreign text.
pub fn shown(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { visible_lines(text) } else { Cow::Borrowed(text) }
}

/// Writes the output of a machine's programs to this process' standard output and error, marked if
/// that is a terminal.
#[derive(Default)]
pub struct ProgramWriter {
    /// Whether standard output is used for something else.
    is_taken: bool,
    failed: Option<io::Error>,
    /// State of the programs' output and errors on a terminal.
    output: Marked,
    errors: Marked,
}

impl ProgramWriter {
    /// Makes a writer. The programs' standard output goes to this process' standard output or, if
    /// that `is_taken`, to standard error.
    pub fn new(is_taken: bool) -> ProgramWriter {
        ProgramWriter { is_taken, ..ProgramWriter::default() }
    }

    /// Writes a program's output to the descriptor `fd`.
    pub fn write(&mut self, fd: u8, bytes: &[u8]) {
        let of = if fd == 1 { &mut self.output } else { &mut self.errors };
        if fd != 1 || self.is_taken {
            let mut to = io::stderr();
            // A closed standard error means that no output is wanted.
            let _ = to.write_all(&for_file(&to, of, bytes));
        } else if self.failed.is_none() {
            let mut to = io::stdout();
            let bytes = for_file(&to, of, bytes);
            self.failed = to.write_all(&bytes).and_then(|()| to.flush()).err();
        }
    }

    /// Ends writing.
    ///
    /// # Errors
    /// Standard output could not be written and is not closed.
    pub fn end(self) -> Result<()> {
        end_row();
        self.failed.map_or(Ok(()), unless_closed)
    }
}

/// Converts a program's bytes for this file: unchanged, or marked rows if it is a terminal.
fn for_file<'a>(
    file: &(impl AsFd + IsTerminal),
    of: &mut Marked,
    bytes: &'a [u8],
) -> Cow<'a, [u8]> {
    if !file.is_terminal() {
        return Cow::Borrowed(bytes);
    }
    let columns = columns_of(file);
    let has_colors = env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
    let terminal = Terminal { columns: columns.into(), has_colors };
    Cow::Owned(of.pass(bytes, &mut row(), terminal).into_bytes())
}

/// Columns of a terminal that does not say how many it has.
const COLUMNS: u16 = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_named_as_the_tool_was_started() {
        let message = "use `cargo xtask report t`, or cargo xtask study error; cargo xtask";
        let expected = "use `tally report t`, or cargo xtask study error; tally";
        assert_eq!(as_started(message.into(), TOOL), expected);
        assert_eq!(as_started(message.into(), IN_CLONE), message);
        let message = "xtask: a.c: no xtask: here";
        assert_eq!(as_started(message.into(), TOOL), "tally: a.c: no xtask: here");
        assert_eq!(as_started(message.into(), IN_CLONE), message);
    }

    #[test]
    fn a_closed_output_is_no_failure_and_a_full_disk_is() {
        assert_eq!(unless_closed(io::ErrorKind::BrokenPipe.into()), Ok(()));
        let full = unless_closed(io::ErrorKind::StorageFull.into()).unwrap_err();
        assert_eq!(full.status, ExitStatus::NoSpace);
    }
}
