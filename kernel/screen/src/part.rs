//! Contents of the codes: a run's messages, compressed and cut into parts.
//!
//! A part is, in little-endian order: the letters `Taly`; the version of the messages
//! ([`tally_abi::wire::VERSION`], 2 bytes); a CRC-32 of what follows; the run, a CRC-32 of its
//! messages (4 bytes); the part's number from 0 and the number of parts (2 bytes each); then its
//! bytes. All parts' bytes in order are the length of the messages (4 bytes) and the messages in
//! LZ4's block format.

use alloc::vec::Vec;

use tally_abi::wire::VERSION;

const MAGIC: [u8; 4] = *b"Taly";
/// Bytes of a part before the run's number.
const PREFIX_BYTES: usize = 10;
/// Bytes of a part before its share of the run.
const HEADER_BYTES: usize = PREFIX_BYTES + 8;
/// Maximum size of a part: the capacity of a QR code of version 10 that can lose 15 % of its area.
pub(crate) const MAX_PART_BYTES: usize = 213;

/// Parts of a run's messages.
#[derive(Clone, Debug)]
pub struct Parts {
    run: u32,
    packed: Vec<u8>,
}

impl Parts {
    /// Splits messages into parts, at least one. `None` if there would be more than 65,535.
    pub fn of(messages: &[u8]) -> Option<Parts> {
        let packed = lz4_flex::compress_prepend_size(messages);
        let parts = Parts { run: crc32fast::hash(messages), packed };
        u16::try_from(parts.packed.len().div_ceil(MAX_PART_BYTES - HEADER_BYTES)).ok()?;
        Some(parts)
    }

    /// Returns the run's number.
    pub fn run(&self) -> u32 {
        self.run
    }

    /// Returns the number of parts.
    pub fn count(&self) -> u16 {
        self.packed.len().div_ceil(MAX_PART_BYTES - HEADER_BYTES) as u16
    }

    /// Writes part `index` into `buffer` and returns its length. All parts have the same length,
    /// except the last, which may be shorter.
    pub(crate) fn write(&self, index: u16, buffer: &mut [u8; MAX_PART_BYTES]) -> usize {
        let share = self.packed.len().div_ceil(self.count().into());
        let start = share * usize::from(index);
        let bytes = &self.packed[start..self.packed.len().min(start + share)];
        let end = HEADER_BYTES + bytes.len();
        buffer[PREFIX_BYTES..14].copy_from_slice(&self.run.to_le_bytes());
        buffer[14..16].copy_from_slice(&index.to_le_bytes());
        buffer[16..HEADER_BYTES].copy_from_slice(&self.count().to_le_bytes());
        buffer[HEADER_BYTES..end].copy_from_slice(bytes);
        let check = crc32fast::hash(&buffer[PREFIX_BYTES..end]);
        buffer[..4].copy_from_slice(&MAGIC);
        buffer[4..6].copy_from_slice(&VERSION.to_le_bytes());
        buffer[6..PREFIX_BYTES].copy_from_slice(&check.to_le_bytes());
        end
    }
}

/// A part that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number of the run.
    pub run: u32,
    /// Number of the part, from 0.
    pub index: u16,
    /// Number of parts.
    pub count: u16,
    /// Share of the run.
    pub bytes: Vec<u8>,
}

/// Reason why bytes are no part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAPart {
    /// Bytes of something else.
    Foreign,
    /// Messages of this version instead of [`VERSION`].
    OtherVersion(u16),
    /// A part that was misread.
    Damaged,
}

impl Part {
    /// Parses a part.
    ///
    /// # Errors
    /// Fails if the bytes are not a part.
    pub fn read(bytes: &[u8]) -> Result<Part, NotAPart> {
        let number =
            |from: usize| bytes.get(from..from + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        let long = |from| Some(u32::from(number(from)?) | u32::from(number(from + 2)?) << 16);
        if !bytes.starts_with(&MAGIC) {
            return Err(NotAPart::Foreign);
        }
        match number(4) {
            Some(VERSION) => {}
            Some(other) => return Err(NotAPart::OtherVersion(other)),
            None => return Err(NotAPart::Damaged),
        }
        let read = || {
            let (check, run) = (long(6)?, long(PREFIX_BYTES)?);
            let (index, count) = (number(14)?, number(16)?);
            let is_whole = crc32fast::hash(&bytes[PREFIX_BYTES..]) == check && index < count;
            is_whole.then(|| Part { run, index, count, bytes: bytes[HEADER_BYTES..].to_vec() })
        };
        read().ok_or(NotAPart::Damaged)
    }
}

/// Result of joining a run's parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpacked {
    /// The messages.
    Messages(Vec<u8>),
    /// Numbers, from 0, of the parts that are missing.
    Missing(Vec<u16>),
    /// All parts are present, but do not belong to one run.
    Damaged,
}

/// Joins the parts of one run, in any order and with repetitions. `parts` is not empty.
pub fn unpack(parts: &[Part]) -> Unpacked {
    let Some(Part { run, count, .. }) = parts.first() else { return Unpacked::Damaged };
    let of = |index: u16| parts.iter().find(|part| part.index == index);
    let missing: Vec<u16> = (0..*count).filter(|index| of(*index).is_none()).collect();
    if !missing.is_empty() {
        return Unpacked::Missing(missing);
    }
    let packed: Vec<u8> =
        (0..*count).filter_map(of).flat_map(|part| part.bytes.iter().copied()).collect();
    let Some((length, _)) = packed.split_first_chunk() else { return Unpacked::Damaged };
    // A byte of LZ4's format expands to at most 255 bytes.
    if u32::from_le_bytes(*length) as usize > 255 * packed.len() {
        return Unpacked::Damaged;
    }
    match lz4_flex::decompress_size_prepended(&packed) {
        Ok(messages) if crc32fast::hash(&messages) == *run => Unpacked::Messages(messages),
        _ => Unpacked::Damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn parts(messages: &[u8]) -> Vec<Vec<u8>> {
        let parts = Parts::of(messages).unwrap();
        let write = |index| {
            let mut buffer = [0; MAX_PART_BYTES];
            let end = parts.write(index, &mut buffer);
            buffer[..end].to_vec()
        };
        (0..parts.count()).map(write).collect()
    }

    /// Returns bytes that do not compress.
    fn noise(count: u32) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..count).map(|_| next()).collect()
    }

    fn read(parts: &[Vec<u8>]) -> Vec<Part> {
        parts.iter().map(|part| Part::read(part).unwrap()).collect()
    }

    #[test]
    fn parts_in_any_order_give_the_messages() {
        for messages in [vec![], vec![0; 100_000], noise(5_000)] {
            let mut parts = read(&parts(&messages));
            parts.reverse();
            parts.extend(parts.clone());
            assert_eq!(unpack(&parts), Unpacked::Messages(messages));
        }
        assert!(parts(&noise(5_000)).len() > 20);
    }

    #[test]
    fn missing_parts_are_named() {
        let mut parts = read(&parts(&noise(2_000)));
        parts.remove(3);
        parts.remove(1);
        assert_eq!(unpack(&parts), Unpacked::Missing(vec![1, 3]));
    }

    #[test]
    fn what_is_no_part_is_refused() {
        let part = parts(b"messages").remove(0);
        assert_eq!(Part::read(b"https://example.org"), Err(NotAPart::Foreign));
        for place in 6..part.len() {
            let mut damaged = part.clone();
            damaged[place] ^= 1;
            assert_eq!(Part::read(&damaged), Err(NotAPart::Damaged), "{place}");
        }
        assert_eq!(Part::read(&part[..part.len() - 1]), Err(NotAPart::Damaged));
        assert_eq!(Part::read(&part[..5]), Err(NotAPart::Damaged));
        let mut other = part.clone();
        other[4] = other[4].wrapping_add(1);
        assert_eq!(Part::read(&other), Err(NotAPart::OtherVersion(VERSION + 1)));
    }

    #[test]
    fn parts_that_do_not_belong_together_are_refused() {
        let of = |messages| Part::read(&parts(messages)[0]).unwrap();
        let swapped = Part { run: of(b"one").run, ..of(b"other") };
        assert_eq!(unpack(&[swapped]), Unpacked::Damaged);
        assert_eq!(unpack(&[]), Unpacked::Damaged);
    }
}
