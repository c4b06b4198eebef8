//! CPUs of the machine, and moving between them.

use alloc::vec::Vec;

use tally::{Error, sys};

/// Bytes of a set of CPUs.
const SET_BYTES: u64 = 8;

/// Returns the CPUs that programs run on, after having moved to each: a program learns only of the
/// one that it runs on.
pub fn all() -> Vec<u32> {
    (0..u64::BITS).take_while(|cpu| move_to(*cpu).is_ok()).collect()
}

/// Restricts the program to this CPU from here on.
///
/// # Errors
/// The CPU does not exist.
pub fn move_to(cpu: u32) -> Result<(), Error> {
    let set = 1_u64 << cpu;
    let from = &raw const set as u64;
    // SAFETY: the word is valid for reading.
    match unsafe { sys::call(sys::SCHED_SETAFFINITY, [0, SET_BYTES, from, 0, 0, 0]) } {
        0 => Ok(()),
        _ => Err(Error::BadArgument),
    }
}
