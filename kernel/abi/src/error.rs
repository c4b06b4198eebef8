//! Errors that Tally's system calls return to programs.

use core::fmt;

use crate::ExitStatus;

/// Reason for which the kernel refused a call: the program's mistake, or something that this
/// machine lacks.
///
/// RAX has the negative of the number. The numbers lie within Linux's error range (1 to 4095) and
/// above every number that Linux uses, so that the two cannot be confused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Error {
    /// An event's name is not in this processor's catalogue.
    UnknownEvent = 2001,
    /// More events than any plan can hold.
    TooManyEvents = 2002,
    /// The slice is shorter than the engine supports, or longer than a counter can hold.
    SliceOutOfRange = 2003,
    /// Tally has no driver for the machine's PMU, or the machine has none.
    NoPmu = 2004,
    /// No counter of this machine can count the event, although the event exists.
    EventNotSupported = 2005,
    /// The list of events is empty.
    NoEvents = 2006,
    /// An argument has the wrong form.
    BadArgument = 2007,
    /// A buffer does not lie in the program's own memory.
    BadPointer = 2008,
    /// No session has this number.
    NoSession = 2009,
    /// The session's state does not allow the call: for example a start when started.
    WrongState = 2010,
    /// The program already has a session, or is in direct mode.
    Busy = 2011,
    /// The machine has too little free memory for the call.
    NoMemory = 2012,
    /// No program has this number, or the program is not the caller's.
    NoProgram = 2013,
    /// The file is not a program that can run on Tally.
    NotAProgram = 2014,
    /// The kernel's command line does not permit the call.
    NotPermitted = 2015,
    /// The limit of sessions on other programs is reached.
    TooManySessions = 2017,
    /// The limit of loaded programs that were not waited for is reached.
    TooManyPrograms = 2018,
    /// The kernel is not Tally. The user library returns this error without making a call.
    NotTally = 2019,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl core::error::Error for Error {}

impl Error {
    const ALL: [Error; 18] = [
        Error::UnknownEvent,
        Error::TooManyEvents,
        Error::SliceOutOfRange,
        Error::NoPmu,
        Error::EventNotSupported,
        Error::NoEvents,
        Error::BadArgument,
        Error::BadPointer,
        Error::NoSession,
        Error::WrongState,
        Error::Busy,
        Error::NoMemory,
        Error::NoProgram,
        Error::NotAProgram,
        Error::NotPermitted,
        Error::TooManySessions,
        Error::TooManyPrograms,
        Error::NotTally,
    ];

    /// The error whose result is `rax`; `None` if it is not one of Tally's.
    pub fn from_return(rax: i64) -> Option<Error> {
        Self::ALL.into_iter().find(|error| error.to_return() == rax)
    }

    /// The result in RAX: the negative of the error's number.
    pub fn to_return(self) -> i64 {
        -i64::from(self as u16)
    }

    /// The message for users, with the remedy.
    pub const fn message(self) -> &'static str {
        match self {
            Error::UnknownEvent => "this processor's catalogue has no such event",
            Error::TooManyEvents => "more events than a plan can hold; ask for fewer",
            Error::SliceOutOfRange => "the slice is out of range",
            Error::NoPmu => {
                "this machine shows no performance counters; run under the virtual PMU, pass the \
                 PMU through to the guest, or boot on a processor that has one"
            }
            Error::EventNotSupported => "no counter of this machine can count the event",
            Error::NoEvents => "the list of events is empty; name at least one",
            Error::BadArgument => "an argument of the call has the wrong form",
            Error::BadPointer => "a buffer does not lie in the program's own memory",
            Error::NoSession => "there is no such session",
            Error::WrongState => "the session is already started or stopped",
            Error::Busy => {
                "this program has a session that cannot be beside another; close one first"
            }
            Error::NoMemory => "out of memory; end other programs or give the machine more",
            Error::NoProgram => "there is no such program, or it is not the caller's",
            Error::NotPermitted => "the kernel's command line does not permit it",
            Error::NotAProgram => "the file is not a program that can run here",
            Error::TooManySessions => {
                "session limit reached: 8 on a program, 8 of a program on others; close one first"
            }
            Error::TooManyPrograms => {
                "program limit reached: 32 loaded and not waited for per program; wait for one first"
            }
            Error::NotTally => {
                "this kernel is not Tally: start the program with \
                 `cargo xtask run --file PROGRAM -- PROGRAM`"
            }
        }
    }

    /// The exit status of a program that ends because of this error.
    pub fn exit_status(self) -> ExitStatus {
        match self {
            Error::UnknownEvent => ExitStatus::UnknownEvent,
            Error::TooManyEvents => ExitStatus::TooManyEvents,
            Error::SliceOutOfRange => ExitStatus::SliceOutOfRange,
            Error::NoPmu => ExitStatus::NoPmu,
            Error::EventNotSupported => ExitStatus::EventNotSupported,
            Error::NoProgram => ExitStatus::ProgramNotFound,
            Error::NotAProgram => ExitStatus::NotRunnable,
            _ => ExitStatus::CallRefused,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn returns_round_trip_and_are_distinct() {
        for error in Error::ALL {
            assert_eq!(Error::from_return(error.to_return()), Some(error));
            assert!((-4095..=-1).contains(&error.to_return()));
        }
        assert_eq!(Error::from_return(-14), None);
        assert_eq!(Error::from_return(3), None);
    }

    #[test]
    fn messages_have_subject_failure_and_remedy() {
        let limits = [Error::TooManySessions, Error::TooManyPrograms];
        let text = limits.map(Error::message).join("\n");
        expect_test::expect![[r#"
            session limit reached: 8 on a program, 8 of a program on others; close one first
            program limit reached: 32 loaded and not waited for per program; wait for one first"#]]
        .assert_eq(&text);
    }
}
