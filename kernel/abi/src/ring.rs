//! The layout of a trace ring in memory, and of a record's header.
//!
//! All words are 64-bit and little-endian. A ring is [`CONTROL_WORDS`] followed by slots of one
//! page each. A page is [`PAGE_HEADER_WORDS`] followed by records, which do not cross the page's
//! end. Page numbers start at 0 and never wrap: page `n` lies in slot `n` modulo the number of
//! slots. The number of slots and the length of a page are powers of two. The crate `tally_ring`
//! has the rules for writers and readers; a program that maps a ring reads it with that crate.

/// Control words before the pages: two cache lines. Writers write the first, the reader the second.
pub const CONTROL_WORDS: usize = 16;
/// Control word: the end of the last reserved record. Bits 16 to 63 are its position, in bytes from
/// the start of page 0; bits 0 to 15 are the number of records in the page of the byte before it.
pub const RESERVED: usize = 0;
/// Control word: the highest value that [`RESERVED`] may take in its page. It may still be the
/// previous page's.
pub const END: usize = 1;
/// Control word: twice the number of pages that were cleared for records; plus 1 while a writer
/// clears the next.
pub const READY: usize = 2;
/// Control word: the number of lost records.
pub const LOST: usize = 3;
/// Control word: what happens to a record without room. 0: the record is lost. 1: the oldest page
/// is overwritten.
pub const MODE: usize = 4;
/// Control word: the most pages that hold records which the reader has not finished. Unused if the
/// oldest page is overwritten.
pub const CAPACITY: usize = 5;
/// Control word: the number of pages that the reader has finished. Unused if the oldest page is
/// overwritten.
pub const TAIL: usize = 8;

/// Words before the records of a page.
pub const PAGE_HEADER_WORDS: usize = 3;
/// Word of a page: the number of records in all earlier pages.
pub const PAGE_START: usize = 0;
/// Word of a page: the value of [`LOST`] at the page's start.
pub const PAGE_LOST: usize = 1;
/// Word of a page: a time stamp of the page's start. The first record's time stamp is within 2⁴⁷
/// ticks of it (13 hours at 3 GHz); every other record's is within 2⁴⁷ ticks of the previous one.
pub const PAGE_TSC: usize = 2;

/// The most words of a record, its header included.
pub const MAX_RECORD_WORDS: usize = 255;

/// The first word of a record: bits 0 to 7 its length in words, header included; 8 to 15 its kind;
/// 16 to 63 the low 48 bits of its time stamp. 0 means that no record has been written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header(pub u64);

impl Header {
    /// Builds a header; `words` is at most [`MAX_RECORD_WORDS`].
    #[inline(always)]
    pub const fn new(kind: u8, words: usize, tsc: u64) -> Header {
        Header::stamped(kind, words, tsc << 16)
    }

    /// Builds a header from a time stamp that is already shifted left by 16 bits.
    #[inline(always)]
    pub const fn stamped(kind: u8, words: usize, stamp: u64) -> Header {
        // The low 16 bits of `stamp` are 0, so a sum is the same as an OR. The compiler can merge
        // the sum with the one that joins RDTSC's halves.
        Header(stamp + ((kind as u64) << 8 | words as u64))
    }

    /// The kind of the record.
    pub const fn kind(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// The record's length in words, header included.
    pub const fn words(self) -> usize {
        self.0 as u8 as usize
    }

    /// The record's time stamp in 64 bits: the one within 2⁴⁷ ticks of `near`.
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
