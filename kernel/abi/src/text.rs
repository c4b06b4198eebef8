//! Text without a heap, for panic messages; numbers in groups of digits; foreign text, escaped.

use core::fmt;

#[cfg(feature = "alloc")]
use alloc::{format, string::String};

/// Text of at most `N` bytes. Longer text is cut at the end of a character.
#[derive(Clone, Debug)]
pub struct FixedText<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> FixedText<N> {
    /// Formats `text` and cuts it to `N` bytes.
    pub fn of(text: fmt::Arguments) -> Self {
        let mut fixed = FixedText { bytes: [0; N], length: 0 };
        // An error only means that the text was cut.
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

/// A number that prints in groups of three digits: `1,234,567`.
#[derive(Clone, Copy, Debug)]
pub struct Grouped(pub u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The largest number has 20 digits and 6 commas.
        let digits = FixedText::<20>::of(format_args!("{}", self.0));
        let mut text = FixedText::<26> { bytes: [0; 26], length: 0 };
        for (index, digit) in digits.as_str().chars().enumerate() {
            if index > 0 && (digits.length - index).is_multiple_of(3) {
                fmt::Write::write_char(&mut text, ',')?;
            }
            fmt::Write::write_char(&mut text, digit)?;
        }
        f.pad(text.as_str())
    }
}

/// Returns whether a terminal shows the character at its position, without other effects.
///
/// This excludes control characters, line separators, and characters that change the direction of
/// the text that follows (Unicode Standard Annex 9, section 2).
pub fn is_shown(c: char) -> bool {
    let is_of_direction = matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}'
        | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}') && !is_of_direction
}

/// A foreign text. Characters that are not shown are escaped.
#[derive(Clone, Copy, Debug)]
pub struct Visible<'a> {
    text: &'a str,
    /// Characters that are not escaped, though they move the cursor.
    kept: &'static [char],
}

impl<'a> Visible<'a> {
    /// A text within a line, such as a name: it cannot begin a line.
    pub const fn word(text: &'a str) -> Self {
        Visible { text, kept: &[] }
    }

    /// A text of several lines: line ends and tabs are kept.
    pub const fn lines(text: &'a str) -> Self {
        Visible { text, kept: &['\n', '\t'] }
    }

    /// Returns whether nothing of the text is escaped.
    pub fn is_plain(&self) -> bool {
        self.text.chars().all(|c| self.keeps(c))
    }

    fn keeps(&self, c: char) -> bool {
        is_shown(c) || self.kept.contains(&c)
    }
}

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut write = |c: char| fmt::Write::write_char(f, c);
        for c in self.text.chars() {
            if self.keeps(c) {
                write(c)?;
            } else {
                c.escape_default().try_for_each(&mut write)?;
            }
        }
        Ok(())
    }
}

/// A program's name as Linux has it: its file's name, cut to 15 bytes.
pub fn short_name(path: &str) -> &str {
    const LONGEST: usize = 15;
    let name = path.rsplit('/').next().unwrap_or_default();
    &name[..name.floor_char_boundary(LONGEST)]
}

/// A share as a percentage of at most six characters, with its sign.
#[cfg(feature = "alloc")]
pub fn percent(share: f64, signed: bool) -> String {
    let percent = share * 100.0;
    let most = if signed { 99.95 } else { 999.95 };
    match percent.abs() {
        size if size >= 9999.5 && signed => format!("{percent:+.0e}%"),
        size if size >= 99999.5 => format!("{percent:.0e}%"),
        size => {
            let decimals = usize::from(size < most) + usize::from(size < 9.995);
            if signed {
                format!("{percent:+.decimals$}%")
            } else {
                format!("{percent:.decimals$}%")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups_of_three_digits() {
        extern crate std;
        let text = |number| std::format!("{:>6}", Grouped(number));
        assert_eq!(text(0), "     0");
        assert_eq!(text(999), "   999");
        assert_eq!(text(1000), " 1,000");
        assert_eq!(text(1_234_567), "1,234,567");
        assert_eq!(text(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn cuts_at_a_characters_end() {
        assert_eq!(FixedText::<8>::of(format_args!("a{}c", 1)).as_str(), "a1c");
        assert_eq!(FixedText::<4>::of(format_args!("abcé")).as_str(), "abc");
        assert_eq!(FixedText::<5>::of(format_args!("{}é", "abc")).as_str(), "abcé");
        assert_eq!(FixedText::<0>::of(format_args!("x")).as_str(), "");
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn percentages_have_six_characters() {
        for (share, signed, unsigned) in [
            (0.099_94, "+9.99%", "9.99%"),
            (0.999_4, "+99.9%", "99.9%"),
            (0.999_6, "+100%", "100.0%"),
            (9.9996, "+1000%", "1000%"),
            (99.994, "+9999%", "9999%"),
            (100.0, "+1e4%", "10000%"),
            (1e9, "+1e11%", "1e11%"),
        ] {
            assert_eq!((&*percent(share, true), &*percent(share, false)), (signed, unsigned));
            assert!(percent(-share, true).len() <= 6, "{share}");
        }
    }
}
