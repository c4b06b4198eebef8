//! Exit statuses of `cargo xtask`.
//!
//! A program's exit status, 0 to 63, is the status of `cargo xtask run`. From 64 up each number is
//! one kind of failure, detected by a program, the kernel or the host.

/// Reason why a run did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// The command line is wrong.
    Usage = 64,
    /// See [`crate::Error::UnknownEvent`].
    UnknownEvent = 65,
    /// See [`crate::Error::TooManyEvents`].
    TooManyEvents = 66,
    /// See [`crate::Error::SliceOutOfRange`].
    SliceOutOfRange = 67,
    /// The program is not in the ramdisk.
    ProgramNotFound = 68,
    /// The program is not an x86-64 ELF file that can run, or one of its libraries is missing.
    NotRunnable = 69,
    /// See [`crate::Error::NoPmu`].
    NoPmu = 70,
    /// KVM was requested and cannot run a guest on this host.
    KvmUnusable = 71,
    /// QEMU or its firmware is missing or too old, and could not be downloaded.
    QemuUnavailable = 72,
    /// The disk has too little free space.
    NoSpace = 73,
    /// The kernel panicked.
    KernelPanic = 74,
    /// The machine did not stop within its time limit.
    TimedOut = 75,
    /// A program crashed; the kernel ended it and continued.
    ProgramFault = 76,
    /// A build failed.
    BuildFailed = 77,
    /// A system call was refused for another reason, which the program printed.
    CallRefused = 78,
    /// See [`crate::Error::EventNotSupported`].
    EventNotSupported = 79,
    /// The machine ended without a report, or its report could not be read.
    MachineFailed = 80,
    /// The host could not open a file or folder, or start a process.
    HostError = 81,
    /// A check of the results failed.
    CheckFailed = 82,
    /// The machine has too little memory for the program.
    OutOfMemory = 83,
    /// A file is not a trace, an incomplete one, or one that lacks what an export needs.
    BadTrace = 84,
    /// No photograph shows a code of Tally, or a file is no picture.
    NoCodes = 85,
    /// Not all codes of a run are in the photographs.
    CodesMissing = 86,
    /// The photographs show codes of several runs.
    SeveralRuns = 87,
    /// The messages are of another version of Tally.
    OtherVersion = 88,
    /// A counter stopped counting while programs ran, so that counts of that time are unreliable.
    CounterFailed = 89,
    /// A file is not the report of a check.
    NoReport = 92,
    /// The report of a check is of another version.
    OtherReport = 93,
    /// Two reports of checks differ beyond bounds.
    ReportsDiffer = 94,
    /// The processor has no events for a breakdown of lost cycles.
    NoBreakdown = 96,
    /// The program's run was too short for the requested result.
    TooShort = 97,
}

/// Fault of a program that touches a page for which no memory is left.
pub const OUT_OF_MEMORY: &str = "out of memory: give the machine more with --memory";

impl ExitStatus {
    /// The status of a program that ends by this fault.
    pub fn of_fault(fault: &str) -> ExitStatus {
        if fault == OUT_OF_MEMORY { ExitStatus::OutOfMemory } else { ExitStatus::ProgramFault }
    }
}

impl From<ExitStatus> for u8 {
    fn from(status: ExitStatus) -> u8 {
        status as u8
    }
}
