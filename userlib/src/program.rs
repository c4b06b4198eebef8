//! Child programs: loading, measuring, running, waiting.

use alloc::vec::Vec;

use tally_abi::{
    Error,
    session::MAX_DETAIL_BYTES,
    syscall::errno::{EINTR, ETIMEDOUT},
    usage::{Usage, UsageWords},
};

use crate::{
    error::{OpenError, check},
    sys,
};

/// A program of the ramdisk that this one loaded. A started program keeps running when this value
/// is dropped.
#[derive(Debug)]
pub struct Program {
    number: u64,
}

/// Returns the resource usage of all programs that this one loaded and waited for.
///
/// # Errors
/// The kernel is not Tally.
pub fn children_usage() -> Result<Usage, Error> {
    usage_of(0)
}

/// Returns the resource usage of a program, or with 0 of all that were waited for.
fn usage_of(number: u64) -> Result<Usage, Error> {
    let mut words = UsageWords::default();
    let arguments = [number, words.as_mut_ptr() as u64, 0, 0, 0, 0];
    // SAFETY: the buffer is of the call's size.
    check(unsafe { sys::tally_call(sys::PROGRAM_USAGE, arguments) })?;
    Ok(Usage::from_words(words))
}

impl Program {
    /// Loads a program: `words` are its name in the ramdisk and its arguments. [`Self::run`] starts
    /// it.
    ///
    /// # Errors
    /// The program does not exist, is not a static x86-64 ELF, or memory is short; the detail names
    /// the reason.
    pub fn load(words: &[&str]) -> Result<Program, OpenError> {
        let words: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
        let mut detail = [0_u8; MAX_DETAIL_BYTES];
        let arguments = [
            words.as_ptr() as u64,
            words.len() as u64,
            detail.as_mut_ptr() as u64,
            detail.len() as u64,
            0,
            0,
        ];
        // SAFETY: the words are valid for reading, the detail for writing.
        let result = check(unsafe { sys::tally_call(sys::PROGRAM_LOAD, arguments) });
        result.map(|number| Program { number }).map_err(|error| OpenError::new(error, &detail))
    }

    /// Starts the program.
    ///
    /// # Errors
    /// The program was started before.
    pub fn run(&self) -> Result<(), Error> {
        self.call(sys::PROGRAM_RUN).map(|_| ())
    }

    /// Waits for the program's end and returns its status. Signals do not end the wait.
    ///
    /// # Errors
    /// The program was not started.
    pub fn wait(self) -> Result<u8, Error> {
        loop {
            match self.raw_call(sys::PROGRAM_WAIT) {
                interrupted if interrupted == -EINTR => {}
                status => break check(status).map(|status| status as u8),
            }
        }
    }

    /// Waits like [`Self::wait`], but only up to a time limit. Returns the status, or `None` if the
    /// program has not ended by then. The kernel checks every 10 ms.
    ///
    /// # Errors
    /// The program was not started, or was waited for before.
    pub fn wait_for(&self, nanoseconds: u64) -> Result<Option<u8>, Error> {
        let (call, arguments) = (sys::PROGRAM_WAIT_FOR, [self.number, nanoseconds, 0, 0, 0, 0]);
        // SAFETY: the call has no buffer.
        match unsafe { sys::tally_call(call, arguments) } {
            over if over == -ETIMEDOUT || over == -EINTR => Ok(None),
            status => check(status).map(|status| Some(status as u8)),
        }
    }

    /// Returns the program's resource usage so far.
    ///
    /// # Errors
    /// The program was waited for.
    pub fn usage(&self) -> Result<Usage, Error> {
        usage_of(self.number)
    }

    /// Ends the program by `SIGKILL`: its status is 137.
    ///
    /// # Errors
    /// The program was waited for.
    pub fn kill(&self) -> Result<(), Error> {
        self.call(sys::PROGRAM_KILL).map(|_| ())
    }

    /// Returns the program's number, an argument of [`sys::SESSION_OPEN`] and
    /// [`sys::SCHED_SETAFFINITY`].
    pub fn number(&self) -> u64 {
        self.number
    }

    fn call(&self, number: u64) -> Result<u64, Error> {
        check(self.raw_call(number))
    }

    fn raw_call(&self, number: u64) -> i64 {
        // SAFETY: the call has no buffer.
        unsafe { sys::tally_call(number, [self.number, 0, 0, 0, 0, 0]) }
    }
}
