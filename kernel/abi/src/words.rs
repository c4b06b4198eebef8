//! Words on the kernel's command line, which blanks separate. Characters that a word cannot contain
//! are escaped with a backslash.

use alloc::{borrow::Cow, string::String};

/// Characters that an escape stands for, by the letter after its backslash.
const ESCAPES: [(char, char); 7] =
    [('s', ' '), ('t', '\t'), ('n', '\n'), ('r', '\r'), ('v', '\x0b'), ('f', '\x0c'), ('\\', '\\')];
/// An empty word.
const EMPTY: &str = "\\e";
/// Words that separate programs and jobs on the command line, and their escapes.
const SEPARATORS: [(&str, &str); 2] = [("--", "\\-"), ("---", "\\--")];

/// Escapes a word for the command line.
pub fn escape(word: &str) -> Cow<'_, str> {
    let escape_of = |c: char| ESCAPES.iter().find(|(_, meant)| *meant == c).map(|(name, _)| *name);
    if word.is_empty() {
        return EMPTY.into();
    }
    if let Some((_, escape)) = SEPARATORS.iter().find(|(separator, _)| *separator == word) {
        return (*escape).into();
    }
    if !word.contains(|c| escape_of(c).is_some()) {
        return word.into();
    }
    let mut text = String::new();
    for c in word.chars() {
        match escape_of(c) {
            Some(name) => text.extend(['\\', name]),
            None => text.push(c),
        }
    }
    text.into()
}

/// Reverses [`escape`]. A backslash before any other character stands for itself.
pub fn unescape(text: &str) -> Cow<'_, str> {
    if text == EMPTY {
        return "".into();
    }
    if let Some((separator, _)) = SEPARATORS.iter().find(|(_, escape)| *escape == text) {
        return (*separator).into();
    }
    if !text.contains('\\') {
        return text.into();
    }
    let mut word = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let mut ahead = rest.clone();
        let meant = ahead.next().and_then(|name| ESCAPES.iter().find(|(known, _)| *known == name));
        match meant {
            Some((_, meant)) if c == '\\' => {
                word.push(*meant);
                rest = ahead;
            }
            _ => word.push(c),
        }
    }
    word.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_word_survives_the_command_line() {
        for word in [
            "",
            "--",
            "---",
            "\\-",
            "\\--",
            "plain",
            "a b",
            "\\",
            "\\s",
            "tab\tline\nend\r\x0b\x0c",
            "C:\\new \\",
            "é ü",
        ] {
            let escaped = escape(word).to_string();
            assert!(!escaped.is_empty() && !escaped.contains(|c: char| c.is_ascii_whitespace()));
            assert!(escaped != "--" && escaped != "---");
            assert_eq!(unescape(&escaped), word, "{escaped}");
        }
    }

    #[test]
    fn a_word_without_escapes_is_itself() {
        for word in ["a", "--x=1", "a\\b", "\\x", "x\\"] {
            assert_eq!(unescape(word), word);
        }
    }
}
