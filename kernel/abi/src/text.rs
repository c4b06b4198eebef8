//! Text without a heap: for last words, which may be about the heap.

use core::fmt;

/// Text of at most `N` bytes; what does not fit is cut, at a character's end.
#[derive(Clone, Debug)]
pub struct FixedText<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> FixedText<N> {
    /// What `text` says, cut to what fits.
    pub fn of(text: fmt::Arguments) -> Self {
        let mut fixed = FixedText { bytes: [0; N], length: 0 };
        // An error says that the text was cut, which is as it should be.
        let _ = fmt::Write::write_fmt(&mut fixed, text);
        fixed
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Write for FixedText<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let cut = text.floor_char_boundary(N - self.length);
        self.bytes[self.length..self.length + cut].copy_from_slice(&text.as_bytes()[..cut]);
        self.length += cut;
        if cut < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_a_characters_end() {
        assert_eq!(FixedText::<8>::of(format_args!("a{}c", 1)).as_str(), "a1c");
        assert_eq!(FixedText::<4>::of(format_args!("abcé")).as_str(), "abc");
        assert_eq!(FixedText::<5>::of(format_args!("{}é", "abc")).as_str(), "abcé");
        assert_eq!(FixedText::<0>::of(format_args!("x")).as_str(), "");
    }
}
