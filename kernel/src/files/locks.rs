//! Locks on parts of files (`fcntl`) and on whole files (`flock`), which programs observe as they
//! agree.

use alloc::vec::Vec;
use core::ops::Range;

/// The most locks on one file.
const MAX_LOCKS: usize = 256;

/// The holder of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A program (`F_SETLK`).
    Program(u32),
    /// An open file, by its number (`F_OFD_SETLK`).
    OpenFile(u64),
    /// An open file, by its number: `flock`, whose locks and the others do not see each other.
    Whole(u64),
}

/// A lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its holder.
    pub holder: Holder,
    /// The bytes, up to `u64::MAX` for all behind the start.
    pub bytes: Range<u64>,
    /// Whether others may hold it too.
    pub shared: bool,
}

/// The locks on one file.
pub type Locks = Vec<Lock>;

/// There are too many locks on the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyLocks;

/// The first lock that is in the way of another.
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
/// It would split a lock, and there would be too many; nothing has changed.
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

/// Adds a lock with which none conflicts, in place of the holder's own on these bytes.
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
