//! Reasons why the kernel refuses to count, for programs and for people.

use alloc::string::{String, ToString};

use tally_abi::Error;
use tally_pmu::ResolveError;

/// Reason for a refused request: the error and a text for people.
pub struct Refusal {
    /// The error.
    pub error: Error,
    /// Subject, failure and remedy.
    pub detail: String,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal { error, detail: error.message().into() }
    }
}

impl From<ResolveError> for Refusal {
    fn from(refused: ResolveError) -> Self {
        Refusal { error: refused.error, detail: refused.to_string() }
    }
}
