//! Consecutive little-endian values, as binary formats have them.

/// The bytes of a file or of a part of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Bytes {
    /// The number of bytes.
    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn raw(mut self, bytes: &[u8]) -> Bytes {
        self.0.extend(bytes);
        self
    }

    pub(super) fn u8(self, value: u8) -> Bytes {
        self.raw(&[value])
    }

    pub(super) fn u16(self, value: u16) -> Bytes {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn u32(self, value: u32) -> Bytes {
        self.raw(&value.to_le_bytes())
    }

    pub(super) fn u64(self, value: u64) -> Bytes {
        self.raw(&value.to_le_bytes())
    }

    /// Appends a text with a terminating zero.
    pub(super) fn text(self, text: &str) -> Bytes {
        self.raw(text.replace('\0', " ").as_bytes()).u8(0)
    }

    /// Appends zeros up to the next multiple of `bytes` bytes.
    pub(super) fn align(mut self, bytes: usize) -> Bytes {
        self.0.resize(self.0.len().next_multiple_of(bytes), 0);
        self
    }
}
