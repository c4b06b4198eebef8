//! Chunks: records of one CPU in a trace.

use crate::Malformed;

/// The head of a chunk of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The CPU whose records follow.
    pub cpu: u16,
    /// Words of records that follow.
    pub words: u32,
    /// A time stamp within 2⁴⁷ ticks of the first record's. The stamps of successive records are
    /// as close, so a reader can extend each record's 48 bits to 64.
    pub near_tsc: u64,
}

impl Chunk {
    /// Words of the head.
    pub const WORDS: usize = 2;
    /// The last chunk of a trace.
    pub const END: Chunk = Chunk { cpu: u16::MAX, words: 0, near_tsc: 0 };
    const MARK: u64 = 0x7a11;

    /// Encodes the head. First word: bits 0 to 15 the mark 7A11H, bits 16 to 31 the CPU, bits 32
    /// to 63 the number of words. Second word: the time stamp.
    pub const fn to_words(self) -> [u64; Self::WORDS] {
        [Self::MARK | (self.cpu as u64) << 16 | (self.words as u64) << 32, self.near_tsc]
    }

    /// Decodes the words of [`Self::to_words`].
    ///
    /// # Errors
    /// The mark is wrong.
    pub const fn from_words([head, near_tsc]: [u64; Self::WORDS]) -> Result<Self, Malformed> {
        if head & 0xffff != Self::MARK {
            return Err(Malformed);
        }
        Ok(Chunk { cpu: (head >> 16) as u16, words: (head >> 32) as u32, near_tsc })
    }
}
