//! Errors as people meet them: what went wrong, where, what to do, and an exit status.

use std::{fmt, io, path::Path};

use tally_abi::ExitStatus;

/// A result whose error can be shown to people as it is.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a task could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The status to exit with.
    pub status: ExitStatus,
    /// What went wrong, where, and what to do about it.
    pub message: String,
}

impl Failure {
    /// A failure that ends with `status` and says `message`.
    pub fn new(status: ExitStatus, message: impl Into<String>) -> Self {
        Failure { status, message: message.into() }
    }

    /// The host would not `action` (such as `write`) `path`.
    pub fn io(action: &str, path: &Path, error: &io::Error) -> Self {
        let status = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ExitStatus::NoSpace,
            _ => ExitStatus::HostError,
        };
        Failure::new(status, format!("cannot {action} {}: {error}", path.display()))
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
