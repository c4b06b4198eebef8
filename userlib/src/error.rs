//! Error of a refused system call: the error code, and the kernel's text.

use alloc::string::String;
use core::fmt;

use tally_abi::Error;

/// Refusal to open a session, or to load a program.
#[derive(Clone, PartialEq, Eq)]
pub struct OpenError {
    /// Error code, for the program.
    pub error: Error,
    /// Explanation for people: the failure, its place, and the remedy.
    pub detail: String,
}

impl OpenError {
    /// Makes the error with the kernel's text in the buffer `detail`, up to its first zero byte. If
    /// the kernel wrote none, uses the error's own message.
    pub(crate) fn new(error: Error, detail: &[u8]) -> OpenError {
        match text_of(detail) {
            "" => error.into(),
            text => OpenError { error, detail: text.into() },
        }
    }
}

/// Returns the kernel's text in the buffer `detail`, up to its first zero byte.
pub(crate) fn text_of(detail: &[u8]) -> &str {
    let text = detail.split(|byte| *byte == 0).next().unwrap_or_default();
    core::str::from_utf8(text).unwrap_or_default()
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// Prints the detail, which is the output for an error that `main` returns.
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
