//! A copy of a stack, from which its frames are read.

/// Bytes of a register.
const WORD_BYTES: u8 = size_of::<u64>() as u8;

/// A copy of a stack, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// The address of the first byte.
    start: u64,
    bytes: Vec<u8>,
}

impl Stack {
    /// Makes an empty copy that begins at an address.
    pub fn at(start: u64) -> Stack {
        Stack { start, bytes: Vec::new() }
    }

    /// The address after the last byte.
    pub fn end(&self) -> u64 {
        self.start.wrapping_add(self.bytes.len() as u64)
    }

    /// Appends the next piece. A piece that does not start at the end of the last one starts a new
    /// copy.
    pub fn push(&mut self, address: u64, bytes: &[u8]) {
        if address != self.end() {
            *self = Stack::at(address);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The word at an address.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        self.value(address, WORD_BYTES)
    }

    /// The number of `bytes` bytes, 8 at most, at an address.
    pub(super) fn value(&self, address: u64, bytes: u8) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let from = self.bytes.get(offset..)?.get(..bytes.into())?;
        let mut word = [0; WORD_BYTES as usize];
        word.get_mut(..from.len())?.copy_from_slice(from);
        Some(u64::from_le_bytes(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_stack_make_one_copy() {
        let mut stack = Stack::default();
        stack.push(0x1000, &7_u64.to_le_bytes());
        stack.push(0x1008, &8_u64.to_le_bytes());
        assert_eq!(
            [0xff8, 0x1000, 0x1008, 0x1009].map(|at| stack.word(at)),
            [None, Some(7), Some(8), None]
        );
        assert_eq!([1, 8, 9].map(|bytes| stack.value(0x1007, bytes)), [Some(0), Some(0x800), None]);
        stack.push(0x2000, &9_u64.to_le_bytes());
        assert_eq!((stack.word(0x1000), stack.word(0x2000)), (None, Some(9)));
    }
}
