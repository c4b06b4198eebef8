//! Parsing of a study's options from words, for tests.

use clap::{Args, Command};
use tally_abi::ExitStatus;
use xtask::{Failure, Result};

/// Parses options from words separated by blanks.
///
/// # Errors
/// A word is wrong.
pub(super) fn parse<T: Args>(words: &str) -> Result<T> {
    let command = T::augment_args(Command::new("study").no_binary_name(true));
    let parsed = command.try_get_matches_from(words.split_whitespace());
    let parsed = parsed.and_then(|mut parsed| T::from_arg_matches_mut(&mut parsed));
    parsed.map_err(|error| Failure::new(ExitStatus::Usage, error.to_string()))
}
