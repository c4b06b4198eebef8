//! `utimensat`: the date of a file's last change, the only one that files have.

use tally_abi::syscall::{self, errno::EINVAL};

use super::{
    answer::Errno,
    files::descriptor,
    paths::{HERE, LINK_ITSELF, place},
};
use crate::{
    files::{open::Descriptor, tree::Node},
    machine::clock::{self, SECOND_NS},
    task::Process,
};

/// `UTIME_NOW`.
const NOW: u64 = (1 << 30) - 1;
/// `UTIME_OMIT`.
const OMIT: u64 = (1 << 30) - 2;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [fd, path, times, flags, ..]: [u64; 6],
) -> Option<Result<u64, Errno>> {
    (number == syscall::UTIMENSAT).then(|| set(process, [fd, path, times, flags]))
}

/// `utimensat`: the second of the `times` is set; without any, the present date. Has no effect on
/// what is no file.
fn set(process: &mut Process, [fd, path, times, flags]: [u64; 4]) -> Result<u64, Errno> {
    let date = match times {
        0 => Some(clock::date_ns()),
        times => date(process, times)?,
    };
    let file = if path == 0 && fd as i32 != HERE as i32 {
        match descriptor(process, fd)? {
            Descriptor::File(open) => Some(open.lock().file.clone()),
            _ => None,
        }
    } else {
        match place(process, fd, path, flags & LINK_ITSELF == 0)?.existing()? {
            Node::File(file) => Some(file),
            _ => None,
        }
    };
    if let (Some(file), Some(date)) = (file, date) {
        file.set_modified_ns(date);
    }
    Ok(0)
}

/// The second of two `struct timespec` at an address, in nanoseconds since 1970; `None` if it is to
/// stay. Dates before 1970 become 1970.
fn date(process: &mut Process, times: u64) -> Result<Option<u64>, Errno> {
    let [_, accessed, seconds, modified] = process.memory.read_words::<4>(times)?;
    let is_valid = |nanoseconds| nanoseconds < SECOND_NS || [NOW, OMIT].contains(&nanoseconds);
    if !is_valid(accessed) || !is_valid(modified) {
        return Err(Errno(EINVAL));
    }
    Ok(match modified {
        OMIT => None,
        NOW => Some(clock::date_ns()),
        nanoseconds => {
            let seconds = u64::try_from(seconds as i64).unwrap_or(0);
            Some(seconds.saturating_mul(SECOND_NS).saturating_add(nanoseconds))
        }
    })
}
