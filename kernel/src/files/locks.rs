//! Advisory locks on parts of files (`fcntl`) and on whole files (`flock`).

use alloc::vec::Vec;
use core::ops::Range;

/// Maximum number of locks on a file.
const MAX_LOCKS: usize = 256;

/// The holder of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A program (`F_SETLK`).
    Program(u32),
    /// An open file, by its number (`F_OFD_SETLK`).
    OpenFile(u64),
    /// An open file, by its number, with `flock`: such locks never conflict with the others.
    Whole(u64),
}

/// A lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The lock's holder.
    pub holder: Holder,
    /// The locked bytes; an end of `u64::MAX` means all after the start.
    pub bytes: Range<u64>,
    /// Whether others may hold the same bytes too.
    pub shared: bool,
}

/// The locks on one file.
pub type Locks = Vec<Lock>;

/// Error: there are too many locks on the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyLocks;

/// The first lock that conflicts with `wanted`.
pub fn conflict<'a>(locks: &'a Locks, wanted: &Lock) -> Option<&'a Lock> {
    let sees = |other: &Lock| {
        let is_whole = |lock: &Lock| matches!(lock.holder, Holder::Whole(_));
        is_whole(other) == is_whole(wanted) && other.holder != wanted.holder
    };
    locks.iter().find(|other| {
        let overlap = other.bytes.start < wanted.bytes.end && wanted.bytes.start < other.bytes.end;
        sees(other) && overlap && !(other.shared && wanted.shared)
    })
}

/// Releases the bytes of a range that the holder has locked.
///
/// # Errors
/// The release would split a lock, and there would be too many; nothing has changed.
pub fn release(locks: &mut Locks, holder: Holder, bytes: &Range<u64>) -> Result<(), TooManyLocks> {
    let mut kept = Vec::new();
    for lock in locks.iter() {
        let Range { start, end } = lock.bytes;
        if lock.holder != holder || end <= bytes.start || bytes.end <= start {
            kept.push(lock.clone());
            continue;
        }
        if start < bytes.start {
            kept.push(Lock { bytes: start..bytes.start, ..lock.clone() });
        }
        if bytes.end < end {
            kept.push(Lock { bytes: bytes.end..end, ..lock.clone() });
        }
    }
    if kept.len() > MAX_LOCKS {
        return Err(TooManyLocks);
    }
    *locks = kept;
    Ok(())
}

/// Adds a lock without conflicts, replacing the holder's own locks on these bytes.
///
/// # Errors
/// There would be too many locks; nothing has changed.
pub fn add(locks: &mut Locks, lock: Lock) -> Result<(), TooManyLocks> {
    if locks.len() + 2 > MAX_LOCKS {
        return Err(TooManyLocks);
    }
    release(locks, lock.holder, &lock.bytes)?;
    locks.push(lock);
    Ok(())
}

/// Releases all locks of a holder.
pub fn release_all(locks: &mut Locks, holder: Holder) {
    locks.retain(|lock| lock.holder != holder);
}
