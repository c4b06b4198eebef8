//! Reads a trace while it is written: whole chunks, as they arrive.

use tally_abi::{record::MAGIC, trace::Chunk};

use super::{
    file::{Bad, Trace},
    records::Records,
};

/// The end of a trace's head.
const HEAD_END: &[u8] = b"\n\n";
/// Bytes of the words before a chunk's records.
const CHUNK_HEAD: usize = 16;

/// A trace that is still growing.
#[derive(Debug, Default)]
pub struct Stream {
    /// The head; empty until it is complete.
    head: Vec<u8>,
    /// Bytes after the head that are in no complete chunk yet.
    rest: Vec<u8>,
}

impl Stream {
    /// The records of the chunks that `bytes` complete.
    ///
    /// # Errors
    /// The bytes are no trace, or are corrupt. Offsets are then counted from the beginning of a
    /// chunk.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Records, Bad> {
        self.rest.extend_from_slice(bytes);
        if self.head.is_empty() {
            let known = self.rest.len().min(MAGIC.len());
            if self.rest[..known] != MAGIC.as_bytes()[..known] {
                return Err(Bad::Foreign);
            }
            let end = self.rest.windows(HEAD_END.len()).position(|two| two == HEAD_END);
            let Some(end) = end else { return Ok(Records::default()) };
            self.head = self.rest.drain(..end + HEAD_END.len()).collect();
        }
        let whole = whole_chunks(&self.rest)?;
        if whole == 0 {
            return Ok(Records::default());
        }
        let mut trace = self.head.clone();
        trace.extend(self.rest.drain(..whole));
        trace.extend(Chunk::END.to_words().into_iter().flat_map(u64::to_le_bytes));
        let (records, bad) = Records::read(Trace::open(&trace)?);
        bad.map_or(Ok(records), Err)
    }
}

/// Bytes of the complete chunks at the beginning, excluding the trace's last one.
fn whole_chunks(bytes: &[u8]) -> Result<usize, Bad> {
    let mut whole = 0;
    while let Some(head) = bytes[whole..].first_chunk::<CHUNK_HEAD>() {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let chunk = Chunk::from_words([word(0), word(8)]).map_err(|_| Bad::Garbled(whole))?;
        let end = whole + CHUNK_HEAD + 8 * chunk.words as usize;
        if chunk == Chunk::END || end > bytes.len() {
            break;
        }
        whole = end;
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_file::tests::{sample, with_earlier_chunk};

    #[test]
    fn pieces_of_any_size_give_the_records_of_the_whole_file() {
        let bytes = with_earlier_chunk(&sample(), 1_000);
        let (whole, bad) = Records::read(Trace::open(&bytes).unwrap());
        assert_eq!((whole.thresholds.len(), whole.losses.len(), bad), (1, 2, None));
        for size in [1, 7, 16, 100, bytes.len()] {
            let (mut stream, mut all) = (Stream::default(), Records::default());
            for piece in bytes.chunks(size) {
                let records = stream.push(piece).unwrap();
                all.thresholds.extend(records.thresholds);
                all.losses.extend(records.losses);
            }
            assert_eq!(all, whole, "{size}");
        }
    }

    #[test]
    fn what_is_no_trace_and_what_is_corrupt_is_refused() {
        assert_eq!(Stream::default().push(b"{\"session\"").unwrap_err(), Bad::Foreign);
        let mut garbled = sample();
        let head = garbled.windows(2).position(|two| two == HEAD_END).unwrap() + 2;
        garbled[head] ^= 1;
        assert_eq!(Stream::default().push(&garbled).unwrap_err(), Bad::Garbled(0));
    }
}
