//! Results on standard output: a text for people, or one JSON object, alone.

use std::{io::Write, path::Path};

use serde::Serialize;
use tally_abi::ExitStatus;

use crate::{Failure, Result};

/// Prints `object` as JSON, or else `text`, which ends with a new line.
///
/// # Errors
/// Standard output takes nothing.
pub fn print(json: bool, object: &impl Serialize, text: &str) -> Result<()> {
    let text = match json {
        true => serde_json::to_string(object).map(|text| text + "\n").map_err(|error| {
            Failure::new(ExitStatus::HostError, format!("cannot print the results: {error}"))
        })?,
        false => text.to_owned(),
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::io("write", Path::new("standard output"), &error))
}
