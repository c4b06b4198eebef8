//! Escaping of foreign text for a terminal: names of programs, events, functions and files, lines
//! of logs. Characters that would move the cursor, change the terminal or the order of its text are
//! escaped.

use std::borrow::Cow;

use tally_abi::text::is_shown;

/// Escapes a foreign text within a line of the tool, including line ends, so that it cannot begin a
/// line.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_shown)
}

/// Escapes a text of the tool that contains foreign text; line ends and tabs are kept.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_shown(c) || c == '\n' || c == '\t')
}

/// Escapes foreign lines after a line of the tool: each begins with blanks, unlike the tool's own
/// lines.
pub fn quoted(text: &str) -> String {
    let lines = text.lines().map(|line| format!("  {}", visible(line)));
    lines.collect::<Vec<_>>().join("\n")
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&is_kept) {
        return Cow::Borrowed(text);
    }
    let mut all = String::with_capacity(text.len());
    for c in text.chars() {
        if is_kept(c) { all.push(c) } else { all.extend(c.escape_default()) }
    }
    Cow::Owned(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_one_line_and_changes_nothing() {
        assert_eq!(visible("päper 日本 👩"), "päper 日本 👩");
        assert_eq!(
            visible("a\x1b[2J\r\n\tb\u{9b}1m\u{7f}"),
            "a\\u{1b}[2J\\r\\n\\tb\\u{9b}1m\\u{7f}"
        );
        assert_eq!(visible("\u{202e}live"), "\\u{202e}live");
        assert_eq!(visible_lines("a\n\tb\r\x07"), "a\n\tb\\r\\u{7}");
        assert_eq!(quoted("a\nxtask: b\x1bc\n"), "  a\n  xtask: b\\u{1b}c");
    }

    proptest! {
        #[test]
        fn no_text_has_a_character_that_is_not_shown(text in any::<String>()) {
            prop_assert!(visible(&text).chars().all(is_shown));
            prop_assert!(visible_lines(&text).chars().all(|c| is_shown(c) || "\n\t".contains(c)));
        }
    }
}
