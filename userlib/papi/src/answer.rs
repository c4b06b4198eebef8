//! Results of PAPI's functions: codes, their texts, and the reaction to errors that
//! `PAPI_set_debug` selects. Numbers and texts are those of PAPI 7.0.

use core::{
    ffi::{CStr, c_int},
    fmt::Write,
    sync::atomic::{AtomicI32, Ordering},
};

use tally_abi::Error;
use tally_rust::{io::Output, sys};

macro_rules! codes {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        /// Error code of PAPI.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(dead_code, reason = "the list is PAPI's; Tally gives only some of them")]
        #[repr(i32)]
        pub(crate) enum Code { $($name = $number,)* }

        /// Returns the text of a code, including the code for success.
        pub(crate) fn text(code: c_int) -> Option<&'static CStr> {
            match code {
                0 => Some(c"No error"),
                $($number => Some($text),)*
                _ => None,
            }
        }
    };
}

codes! {
    Inval = -1, c"Invalid argument";
    NoMem = -2, c"Insufficient memory";
    Sys = -3, c"A System/C library call failed";
    Cmp = -4, c"Not supported by component";
    CLost = -5, c"Access to the counters was lost or interrupted";
    Bug = -6, c"Internal error, please send mail to the developers";
    NoEvnt = -7, c"Event does not exist";
    Cnflct = -8, c"Event exists, but cannot be counted due to hardware resource limits";
    NotRun = -9, c"EventSet is currently not running";
    IsRun = -10, c"EventSet is currently counting";
    NoEvst = -11, c"No such EventSet available";
    NotPreset = -12, c"Event in argument is not a valid preset";
    NoCntr = -13, c"Hardware does not support performance counters";
    Misc = -14, c"Unknown error code";
    Perm = -15, c"Permission level does not permit operation";
    NoInit = -16, c"PAPI hasn't been initialized yet";
    NoCmp = -17, c"Component Index isn't set";
    NoSupp = -18, c"Not supported";
    NoImpl = -19, c"Not implemented";
    Buf = -20, c"Buffer size exceeded";
    InvalDom = -21, c"EventSet domain is not supported for the operation";
    Attr = -22, c"Invalid or missing event attributes";
    Count = -23, c"Too many events or attributes";
    Combo = -24, c"Bad combination of features";
    CmpDisabled = -25, c"Component containing event is disabled";
    DelayInit = -26, c"Delayed initialization component";
    MulPass = -27,
        c"Event exists, but cannot be counted due to multiple passes required by hardware";
}

/// Result of a call: a number that is not negative, or an error.
pub(crate) type Answer = Result<c_int, Code>;

/// Success without a number.
pub(crate) const OK: Answer = Ok(0);

/// Code of the last call that reported one, for `PAPI_perror`.
pub(crate) static LAST: AtomicI32 = AtomicI32::new(0);
/// Reaction to errors: nothing, a report, or a report and the end of the program.
pub(crate) static LEVEL: AtomicI32 = AtomicI32::new(QUIET);
pub(crate) const QUIET: c_int = 0;
pub(crate) const STOP: c_int = 2;

/// Exit status of a program that ends at an error: that of `abort` as shells report it.
const ABORTED: c_int = 134;

impl Code {
    /// Returns the code for one of Tally's errors.
    pub(crate) fn of(error: Error) -> Code {
        match error {
            Error::UnknownEvent | Error::EventNotSupported => Code::NoEvnt,
            Error::TooManyEvents => Code::Count,
            Error::NoPmu => Code::NoCntr,
            Error::NoMemory => Code::NoMem,
            Error::NotPermitted => Code::Perm,
            Error::Busy | Error::TooManySessions => Code::Cnflct,
            Error::NotTally => Code::NoSupp,
            Error::BadArgument | Error::NoEvents => Code::Inval,
            _ => Code::Bug,
        }
    }
}

/// Returns the number of an answer for the C program, after the selected reaction to errors.
pub(crate) fn give(answer: Answer) -> c_int {
    let code = match answer {
        Ok(number) => {
            LAST.store(0, Ordering::Relaxed);
            return number;
        }
        Err(code) => code as c_int,
    };
    LAST.store(code, Ordering::Relaxed);
    let level = LEVEL.load(Ordering::Relaxed);
    if level != QUIET {
        let text = text(code).and_then(|text| text.to_str().ok()).unwrap_or_default();
        // An error that cannot be printed is still returned.
        let _ = writeln!(Output::Err, "PAPI Error {code}: {text}");
    }
    if level == STOP {
        sys::exit(ABORTED);
    }
    code
}
