//! The commands' processing of files and messages that other programs wrote, as functions of their
//! bytes. A test passes damaged ones: they must be refused or read, with memory and work in
//! proportion to their size.

use std::path::{Path, PathBuf};

use tally_photo::Photo;

use crate::{
    Result, check, diff, export,
    machine::{self, Boot},
    perf,
    recording::{Recording, Symbolizer},
    report::{
        Report,
        table::{self, Detail},
    },
    samples,
    symbols::CallGraph,
    trace,
    trace_file::{Bad, Stream},
};

/// Bytes that a [`Stream`] gets at a time.
const PIECE: usize = 1000;
/// Maximum events that are looked up in a table of perf.
const EVENTS: usize = 4;
/// Name of the results in comparisons with themselves.
const NAME: &str = "results";

/// Reads a trace as all commands on traces do. Returns the number of bytes that they print and
/// write.
///
/// # Errors
/// The bytes are no complete trace with a description of its run.
pub fn trace(bytes: &[u8]) -> Result<usize> {
    let printed = trace::printed(bytes).map(|text| text.len());
    let recording = Recording::of(bytes)?;
    let symbolizer = Symbolizer::of(&recording, &[], CallGraph::default())?;
    let exported = export::every(&recording, &symbolizer, bytes);
    Ok(printed? + exported + samples::printed::all(&recording, &symbolizer).len())
}

/// Reads a trace in pieces, as while it is being written. Returns the number of its slices.
///
/// # Errors
/// As [`Stream::push`].
pub fn stream(bytes: &[u8]) -> std::result::Result<usize, Bad> {
    let mut stream = Stream::default();
    bytes.chunks(PIECE).try_fold(0, |all, piece| Ok(all + stream.push(piece)?.slices.len()))
}

/// Reads a kernel's messages as `import --messages` does. Returns the number of bytes of the
/// report.
///
/// # Errors
/// The host refuses a file, or the messages are those of a check that did not end.
pub fn messages(bytes: &[u8]) -> Result<usize> {
    let boot: Boot = machine::of_messages(bytes, &mut |_| {})?;
    if check::is_check(&boot) {
        return check::CheckReport::of(&boot).map(|report| check::render(&report).len());
    }
    let report = Report::of(&boot);
    let failures: usize = boot.failures().iter().map(|why| why.to_string().len()).sum();
    Ok(table::render(&report, Detail::All).len() + failures)
}

/// Reads a program's file for the samples of a trace. Returns the number of bytes that commands
/// make.
///
/// # Errors
/// The file is no program, or `trace` is no complete trace.
pub fn program(path: &Path, trace: &[u8]) -> Result<usize> {
    let recording = Recording::of(trace)?;
    let paths: [PathBuf; 1] = [path.to_owned()];
    Symbolizer::check(&paths)?;
    let mut all = 0;
    for by in [CallGraph::Dwarf, CallGraph::Fp] {
        let symbolizer = Symbolizer::of(&recording, &paths, by)?;
        all += samples::printed::all(&recording, &symbolizer).len();
        all += export::every(&recording, &symbolizer, trace);
    }
    Ok(all)
}

/// Reads the results of a run and compares them with themselves. Returns the number of bytes of the
/// table.
///
/// # Errors
/// The bytes are no results.
pub fn results(bytes: &[u8]) -> Result<usize> {
    let read = || diff::Run::of_bytes(bytes, Path::new(NAME));
    Ok(diff::render(&diff::Diff::of(read()?, read()?)?).len())
}

/// Reads the report of a check and compares it with itself. Returns the number of bytes of both
/// texts.
///
/// # Errors
/// The bytes are no report.
pub fn check_report(bytes: &[u8]) -> Result<usize> {
    let report = check::CheckReport::of_bytes(bytes, Path::new(NAME))?;
    let diff = check::diff::CheckDiff::of(&report, &report);
    Ok(check::render(&report).len() + check::diff::render(&diff).len())
}

/// Reads perf's table of counts. Returns the number of counts.
pub fn counts(bytes: &[u8]) -> usize {
    let counts = perf::counts(&String::from_utf8_lossy(bytes), EVENTS);
    counts.map_or(0, |counts| counts.len())
}

/// Reads the virtual PMU's counts of blocks of code for a trace. Returns the number of bytes of the
/// table.
///
/// # Errors
/// The bytes are no such counts, or `trace` has no samples of what cycles are lost to.
pub fn blocks(bytes: &[u8], trace: &[u8]) -> Result<usize> {
    let recording = Recording::of(trace)?;
    samples::printed::with_truth(&recording, &String::from_utf8_lossy(bytes)).map(|text| text.len())
}

/// Reads a photograph. Returns whether the file is a picture.
pub fn photograph(path: &Path) -> bool {
    Photo::read(path).is_ok()
}
