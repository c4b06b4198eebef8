//! Exit statuses that mean something of Tally's own.
//!
//! A program's own status, 0 to 63, is the status of `cargo xtask run`. From 64 up each number is
//! one failure, whether the guest, the kernel or the host noticed it.

/// Why a run did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// The command line could not be understood.
    Usage = 64,
    /// See [`crate::Error::UnknownEvent`].
    UnknownEvent = 65,
    /// See [`crate::Error::TooManyEvents`].
    TooManyEvents = 66,
    /// See [`crate::Error::SliceOutOfRange`].
    SliceOutOfRange = 67,
    /// The program is not in the ramdisk.
    ProgramNotFound = 68,
    /// The program is not a static x86-64 ELF.
    NotStaticElf = 69,
    /// See [`crate::Error::NoPmu`].
    NoPmu = 70,
    /// KVM was asked for and cannot run a guest here.
    KvmUnusable = 71,
    /// QEMU or its firmware is missing or too old, and could not be fetched.
    QemuUnavailable = 72,
    /// The disk is full, or would be.
    NoSpace = 73,
    /// The kernel panicked.
    KernelPanic = 74,
    /// The machine did not come to an end within its time limit.
    TimedOut = 75,
    /// A program crashed; the kernel ended it and went on.
    ProgramFault = 76,
    /// Something did not build.
    BuildFailed = 77,
    /// A system call was refused for another reason; the program said why.
    CallRefused = 78,
    /// See [`crate::Error::EventNotSupported`].
    EventNotSupported = 79,
    /// The machine ended without a report, or its report could not be read.
    MachineFailed = 80,
    /// The host refused a file, process or folder.
    HostError = 81,
    /// A check of the results failed.
    CheckFailed = 82,
    /// There is not enough memory for what the program asks.
    OutOfMemory = 83,
    /// A file is no trace, or not all of one.
    BadTrace = 84,
}

impl From<ExitStatus> for u8 {
    fn from(status: ExitStatus) -> u8 {
        status as u8
    }
}
