//! Damages bytes as faulty disks and wires, or attackers, would. The same seed gives the same
//! damage.

/// Numbers at the ends of types and of powers of two.
const EXTREMES: [u64; 12] = [
    0,
    1,
    0x7f,
    0xff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 40,
    1 << 63,
    (1 << 63) - 1,
    u64::MAX - 1,
    u64::MAX,
];
/// Maximum number of changes of one file.
const CHANGES: u64 = 4;

/// Random number generator: Marsaglia, "Xorshift RNGs", 2003.
pub struct Random(u64);

impl Random {
    /// Generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Random number below `end`, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }

    /// Random place in this many bytes, at a multiple of a random power of two.
    fn place(&mut self, bytes: usize) -> usize {
        let align = 1 << self.below(4);
        self.below(bytes) / align * align
    }

    /// Random range in this many bytes.
    fn range(&mut self, bytes: usize) -> std::ops::Range<usize> {
        let start = self.place(bytes);
        let length = (8 * self.below(9)).max(self.below(bytes / 4) * self.below(2));
        start..(start + length).min(bytes)
    }
}

/// Applies a few changes to the bytes; copied parts come from `other`.
pub fn mutate(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.below(CHANGES as usize) {
        change(&mut bytes, other, random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let length = bytes.len();
    match random.below(9) {
        0 | 1 => {
            let at = random.below(length);
            let bit = 1 << random.below(8);
            bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= bit);
        }
        2 => bytes.truncate(random.below(length)),
        3 => drop(bytes.drain(random.range(length))),
        4 => {
            let range = random.range(other.len());
            let (at, end) = (random.place(length), random.range(length).end);
            bytes.splice(at..end.max(at), other[range].iter().copied());
        }
        5 | 6 => {
            let extreme = EXTREMES[random.below(EXTREMES.len())].to_le_bytes();
            let (at, width) = (random.place(length), 1 << random.below(4));
            bytes.iter_mut().skip(at).zip(&extreme[..width]).for_each(|(to, of)| *to = *of);
        }
        7 => {
            let range = random.range(length);
            let (copy, at) = (bytes[range.clone()].to_vec(), range.start);
            bytes.splice(at..at, copy);
        }
        _ => number(bytes, random),
    }
}

/// Replaces a number in a text.
fn number(bytes: &mut Vec<u8>, random: &mut Random) {
    let from = random.below(bytes.len());
    let Some(at) = bytes[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else {
        return;
    };
    let end = bytes[at..].iter().position(|byte| !byte.is_ascii_digit());
    let end = end.map_or(bytes.len(), |end| at + end);
    let new = EXTREMES[random.below(EXTREMES.len())].to_string();
    bytes.splice(at..end, new.into_bytes());
}
