//! Errors of tasks: a message for the user and an exit status.

use std::{fmt, io, path::Path};

use tally_abi::ExitStatus;

use crate::visible::visible;

/// A result whose error is a message for the user.
pub type Result<T> = std::result::Result<T, Failure>;

/// Failure of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The status to exit with.
    pub status: ExitStatus,
    /// Message: subject, failure, remedy.
    pub message: String,
}

impl Failure {
    /// Makes a failure with this exit status and message.
    pub fn new(status: ExitStatus, message: impl Into<String>) -> Self {
        Failure { status, message: message.into() }
    }

    /// Makes the failure that the host refused to `action` (such as `write`) the file `path`.
    pub fn io(action: &str, path: &Path, error: &io::Error) -> Self {
        let status = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ExitStatus::NoSpace,
            _ => ExitStatus::HostError,
        };
        let path = path.display().to_string();
        Failure::new(status, format!("cannot {action} {}: {error}", visible(&path)))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_has_its_own_status() {
        let full = Failure::io("write", Path::new("x"), &io::ErrorKind::StorageFull.into());
        assert_eq!(full.status, ExitStatus::NoSpace);
        let denied = Failure::io("write", Path::new("x"), &io::ErrorKind::PermissionDenied.into());
        assert_eq!(denied.status, ExitStatus::HostError);
        assert!(denied.message.starts_with("cannot write x: "));
    }
}
