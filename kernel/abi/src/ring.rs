//! How a trace ring lies in memory, and how a record begins.
//!
//! All words are 64-bit and little-endian. [`CONTROL_WORDS`] come first, then pages, each of
//! [`PAGE_HEADER_WORDS`] and records, which never cross a page's end. Pages are numbered from 0 for
//! ever; page `n` lies in slot `n` modulo the number of slots, a power of two, as is a page's
//! length. Which of it may be read when is said in `tally_ring`; a program that maps a ring needs
//! no more than a reader of that crate.

/// Control words before the pages: two cache lines, the first the writer's, the second the
/// reader's.
pub const CONTROL_WORDS: usize = 16;
/// Control word: bits 16 and up the position, in bytes from page 0, behind the last record, whose
/// page is that of the byte before; the low 16 bits how many records are in that page.
pub const RESERVED: usize = 0;
/// Control word: the highest value that [`RESERVED`] may take in its page; may be a former page's.
pub const END: usize = 1;
/// Control word: twice the number of pages that were made ready for records, and 1 while the next
/// is.
pub const READY: usize = 2;
/// Control word: records for which there was no room.
pub const LOST: usize = 3;
/// Control word: 0 if what there is no room for is lost, 1 if it takes the place of the oldest
/// page.
pub const MODE: usize = 4;
/// Control word: pages that the reader is through with; where nothing is overwritten.
pub const TAIL: usize = 8;

/// Words before the records of a page.
pub const PAGE_HEADER_WORDS: usize = 3;
/// Word of a page: records in all pages before it.
pub const PAGE_START: usize = 0;
/// Word of a page: what [`LOST`] was when it began.
pub const PAGE_LOST: usize = 1;
/// Word of a page: a time stamp from when it began. Its first record's is within 2⁴⁷ ticks of it
/// (13 hours at 3 GHz), and each other's of that of the record before.
pub const PAGE_TSC: usize = 2;

/// The most words of a record, its header among them.
pub const MAX_RECORD_WORDS: usize = 255;

/// The first word of a record: bits 0 to 7 its length in words, this one among them; 8 to 15 its
/// kind; 16 to 63 the low 48 bits of its time stamp. 0 is no header: nothing is there, or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header(pub u64);

impl Header {
    /// Puts one together; `words` is at most [`MAX_RECORD_WORDS`].
    #[inline(always)]
    pub const fn new(kind: u8, words: usize, tsc: u64) -> Header {
        Header::stamped(kind, words, tsc << 16)
    }

    /// The same with a time stamp that is shifted by 16 bits already.
    #[inline(always)]
    pub const fn stamped(kind: u8, words: usize, stamp: u64) -> Header {
        // A sum, as the low 16 bits of the stamp are 0: it takes one instruction with that of the
        // stamp's parts.
        Header(stamp + ((kind as u64) << 8 | words as u64))
    }

    /// The kind of the record.
    pub const fn kind(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Its length in words.
    pub const fn words(self) -> usize {
        self.0 as u8 as usize
    }

    /// Its whole time stamp, within 2⁴⁷ ticks of `near`.
    pub const fn tsc(self, near: u64) -> u64 {
        let away = (self.0 >> 16 << 16).wrapping_sub(near << 16) as i64 >> 16;
        near.wrapping_add_signed(away)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_keep_what_they_are_made_of() {
        for (near, tsc) in
            [(0, 5), (1 << 48, (1 << 48) - 1), (u64::MAX - 9, u64::MAX), (7 << 50, 7 << 50)]
        {
            let header = Header::new(200, MAX_RECORD_WORDS, tsc);
            assert_eq!((header.kind(), header.words()), (200, MAX_RECORD_WORDS));
            assert_eq!(header.tsc(near), tsc);
        }
        assert_ne!(Header::new(0, 1, 0).0, 0);
    }
}
