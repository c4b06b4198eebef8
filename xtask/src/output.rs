//! What we say: results on standard output, a text for people or one JSON object, alone; all else on
//! standard error.
//!
//! Somebody who closes one of them wants no more of it, which is no failure. That standard output takes no
//! results for another reason, such as a full disk, is one; of standard error nobody could be told.

use std::{
    fmt::Display,
    io::{self, Write},
    path::Path,
};

use serde::Serialize;
use tally_abi::ExitStatus;

use crate::{Failure, Result};

/// Prints `object` as JSON, or else `text`, which ends with a new line.
///
/// # Errors
/// Standard output takes nothing, and is not closed.
pub fn print(json: bool, object: &impl Serialize, text: &str) -> Result<()> {
    if !json {
        return self::text(text);
    }
    let json = serde_json::to_string(object).map_err(|error| {
        Failure::new(ExitStatus::HostError, format!("cannot print the results: {error}"))
    })?;
    self::text(&(json + "\n"))
}

/// Prints `text`, which ends with a new line.
///
/// # Errors
/// As [`print`].
pub fn text(text: &str) -> Result<()> {
    let mut out = io::stdout();
    // It holds back what has no new line yet, and would lose it in silence at our end.
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).or_else(unless_closed)
}

/// What to make of a refusal of standard output's.
///
/// # Errors
/// Any, but that it is closed.
pub fn unless_closed(error: io::Error) -> Result<()> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failure::io("write", Path::new("standard output"), &error)),
    }
}

/// Says a line on standard error.
pub fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_closed_output_is_no_failure() {
        assert_eq!(unless_closed(io::ErrorKind::BrokenPipe.into()), Ok(()));
        let full = unless_closed(io::ErrorKind::StorageFull.into()).unwrap_err();
        assert_eq!(full.status, ExitStatus::NoSpace);
    }
}
