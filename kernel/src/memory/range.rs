//! Addresses of a program's half, as types: what changes a program's mappings takes no other.

use core::ops::Range;

use super::frames::{FRAME_BYTES, OutOfMemory};

/// The first address above the program's half. The last page below the non-canonical addresses
/// stays unmapped: after a SYSCALL at its end, SYSRET would fault in ring 0.
pub const USER_END: u64 = 0x0000_7fff_ffff_0000;

/// Why an operation on a program's memory failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceError {
    /// No frame is left.
    OutOfMemory,
    /// The address is not in the program's half, not mapped, or not writable.
    BadAddress,
    /// A page is mapped at the address already.
    Overlap,
    /// The page of a file is behind its end.
    BehindFile,
}

impl From<OutOfMemory> for SpaceError {
    fn from(_: OutOfMemory) -> Self {
        SpaceError::OutOfMemory
    }
}

/// The address of a page in a program's half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserPage(u64);

impl UserPage {
    /// The page that contains an address.
    ///
    /// # Errors
    /// The address is not in the program's half.
    pub fn containing(address: u64) -> Result<UserPage, SpaceError> {
        if address >= USER_END {
            return Err(SpaceError::BadAddress);
        }
        Ok(UserPage(address - address % FRAME_BYTES))
    }

    /// Its first address.
    pub fn address(self) -> u64 {
        self.0
    }

    /// The address behind it.
    pub fn end(self) -> u64 {
        self.0 + FRAME_BYTES
    }

    /// The page alone.
    pub fn range(self) -> UserRange {
        UserRange { start: self.0, end: self.end() }
    }
}

/// Consecutive pages of a program's half: both ends are multiples of the page size, and the end is
/// at most [`USER_END`]. It may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserRange {
    start: u64,
    end: u64,
}

impl UserRange {
    /// Every page of the half.
    pub fn all() -> UserRange {
        UserRange { start: 0, end: USER_END }
    }

    /// The range of `bytes`, in whole pages, from `start` on.
    ///
    /// # Errors
    /// `start` is in the middle of a page, or the range leaves the program's half.
    pub fn new(start: u64, bytes: u64) -> Result<UserRange, SpaceError> {
        let bytes = bytes.checked_next_multiple_of(FRAME_BYTES);
        let end = bytes.and_then(|bytes| start.checked_add(bytes)).filter(|end| *end <= USER_END);
        match end {
            Some(end) if start.is_multiple_of(FRAME_BYTES) => Ok(UserRange { start, end }),
            _ => Err(SpaceError::BadAddress),
        }
    }

    /// Its first address.
    pub fn start(self) -> u64 {
        self.start
    }

    /// The address behind its last.
    pub fn end(self) -> u64 {
        self.end
    }

    /// Its length in bytes.
    pub fn bytes(self) -> u64 {
        self.end - self.start
    }

    /// Returns whether it has no page.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Its addresses.
    pub fn addresses(self) -> Range<u64> {
        self.start..self.end
    }

    /// Returns whether some page is in both.
    pub fn overlaps(self, other: UserRange) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Its pages, in order.
    pub fn pages(self) -> impl Iterator<Item = UserPage> {
        self.addresses().step_by(FRAME_BYTES as usize).map(UserPage)
    }

    /// Its part before the page `at`, and its part from there on; `at` outside of it stands for the
    /// end that is nearer.
    pub fn split(self, at: UserPage) -> (UserRange, UserRange) {
        let at = at.0.clamp(self.start, self.end);
        (UserRange { end: at, ..self }, UserRange { start: at, ..self })
    }

    /// Its part before `page`, or all of it.
    pub fn before(self, page: Option<UserPage>) -> UserRange {
        page.map_or(self, |page| self.split(page).0)
    }

    /// Its part from `page` on, or all of it.
    pub fn from(self, page: Option<UserPage>) -> UserRange {
        page.map_or(self, |page| self.split(page).1)
    }

    /// All but its first page.
    pub fn without_first(self) -> UserRange {
        UserRange { start: (self.start + FRAME_BYTES).min(self.end), ..self }
    }

    /// The page at the same distance from `to` as `page` from the start of this range, if it is in
    /// `to`.
    pub fn moved(self, page: UserPage, to: UserRange) -> Option<UserPage> {
        let at = to.start.checked_add(page.0.checked_sub(self.start)?)?;
        (at < to.end).then_some(UserPage(at))
    }
}
