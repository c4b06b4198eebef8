//! What a refused system call means: the error code, and the kernel's text.

use alloc::string::String;
use core::fmt;

use tally_abi::Error;

/// A session could not be opened, or a program not loaded.
#[derive(Clone, PartialEq, Eq)]
pub struct OpenError {
    /// The error, for the program.
    pub error: Error,
    /// What failed, where, and what to do: for people.
    pub detail: String,
}

impl OpenError {
    /// The error with the kernel's text from the buffer `detail`, up to its first zero byte. If the
    /// kernel wrote none, the error's own message.
    pub(crate) fn new(error: Error, detail: &[u8]) -> OpenError {
        let text = detail.split(|byte| *byte == 0).next().unwrap_or_default();
        match core::str::from_utf8(text) {
            Ok(text) if !text.is_empty() => OpenError { error, detail: text.into() },
            _ => error.into(),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// The detail: what `main` prints of an error that it returns.
impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl core::error::Error for OpenError {}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        OpenError { error, detail: error.message().into() }
    }
}

/// Splits the return value of one of Tally's system calls into result and error.
pub(crate) fn check(result: i64) -> Result<u64, Error> {
    u64::try_from(result).map_err(|_| Error::from_return(result).unwrap_or(Error::BadArgument))
}
