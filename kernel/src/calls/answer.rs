//! The outcome of a system call: a result, a wait, or an error.

use tally_abi::{Error, syscall::errno};

use crate::{memory::space::SpaceError, task::thread::Wait};

/// The outcome of a call of Linux's.
pub(super) enum Answer {
    /// A result.
    Value(u64),
    /// The thread blocks; what wakes it determines the result.
    Wait(Wait),
}

/// An error number of Linux's, positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Errno(pub(super) i64);

impl From<SpaceError> for Errno {
    fn from(error: SpaceError) -> Self {
        match error {
            SpaceError::OutOfMemory => Errno(errno::ENOMEM),
            SpaceError::BadAddress => Errno(errno::EFAULT),
            SpaceError::Overlap => Errno(errno::EINVAL),
        }
    }
}

/// A buffer of a Tally call is not in the program's memory.
pub(super) struct BadPointer;

impl From<SpaceError> for BadPointer {
    fn from(_: SpaceError) -> Self {
        BadPointer
    }
}

impl From<BadPointer> for Error {
    fn from(_: BadPointer) -> Self {
        Error::BadPointer
    }
}
