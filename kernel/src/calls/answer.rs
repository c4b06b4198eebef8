//! The outcome of a system call: a result, a wait, or an error.

use tally_abi::{Error, syscall::errno};

use crate::{
    files::tree::PathError,
    measure::Refusal,
    memory::space::SpaceError,
    sched::table::Lookup,
    task::{call::Progress, thread::Wait},
};

/// The outcome of a step of a call.
pub(super) enum Answer {
    /// A result.
    Value(u64),
    /// The thread blocks; the event that wakes it determines the result.
    Wait(Wait),
    /// The thread blocks until another thread uses a descriptor, until the time `due`, or until the
    /// call's `deadline`, and then repeats the call. `left`: see [`Wait::Retry`].
    Retry { deadline: Option<u64>, due: Option<u64>, left: u64 },
    /// The call has transferred this many bytes and waits as for [`Self::Retry`]. A signal handler
    /// ends it with that count as its result.
    Partial(u64),
    /// The call has done a step of its work and has more to do: it continues from this progress, in
    /// the thread's next turn if the present one is over.
    Continue(Progress),
}

impl Answer {
    /// Makes the answer of a call that continues at this byte or page.
    pub(super) fn continue_at(at: u64) -> Answer {
        Answer::Continue(Progress { at, ..Progress::default() })
    }
}

/// A positive error number of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Errno(pub(super) i64);

impl From<SpaceError> for Errno {
    fn from(error: SpaceError) -> Self {
        match error {
            SpaceError::OutOfMemory => Errno(errno::ENOMEM),
            SpaceError::BadAddress | SpaceError::BehindFile => Errno(errno::EFAULT),
            SpaceError::Overlap => Errno(errno::EINVAL),
        }
    }
}

/// Error of a call that would block and is repeated. Programs do not see it.
pub(super) const RETRY: i64 = 512;
/// Error of a call on a name that another program has changed meanwhile: the call walks its path
/// again, as one more step. Programs do not see it.
pub(super) const CHANGED: i64 = 513;

impl From<PathError> for Errno {
    fn from(error: PathError) -> Self {
        Errno(match error {
            PathError::Missing => errno::ENOENT,
            PathError::Changed => CHANGED,
            PathError::NotFolder => errno::ENOTDIR,
            PathError::IsFolder => errno::EISDIR,
            PathError::Exists => errno::EEXIST,
            PathError::NotEmpty => errno::ENOTEMPTY,
            PathError::Links => errno::ELOOP,
            PathError::TooLong => errno::ENAMETOOLONG,
            PathError::Invalid => errno::EINVAL,
            PathError::Full => errno::ENOSPC,
            PathError::Fixed => errno::EBUSY,
        })
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

/// Reason for a call's missing result.
pub(super) enum Unanswered {
    /// The call failed.
    Error(Error),
    /// The call was refused, with a message for the user.
    Refused(Refusal),
    /// The program that the call inspects runs on the CPU with this APIC ID.
    Running(u32),
}

impl<E: Into<Error>> From<E> for Unanswered {
    fn from(error: E) -> Self {
        Unanswered::Error(error.into())
    }
}

impl From<Refusal> for Unanswered {
    fn from(refusal: Refusal) -> Self {
        Unanswered::Refused(refusal)
    }
}

pub(super) fn result_of<T>(found: Lookup<T>, unknown: Error) -> Result<T, Unanswered> {
    match found {
        Lookup::Parked(answer) => Ok(answer),
        Lookup::Running(lapic) => Err(Unanswered::Running(lapic)),
        Lookup::Ended | Lookup::Unknown => Err(unknown.into()),
    }
}
