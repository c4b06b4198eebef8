//! Escaping of foreign text for a terminal: names of programs, events, functions and files, lines
//! of logs. Characters that would move the cursor, change the terminal or the order of its text are
//! escaped.

use std::borrow::Cow;

use tally_abi::text::Visible;

/// Escapes a foreign text within a line of the tool, including line ends, so that it cannot begin a
/// line.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, &Visible::word(text))
}

/// Escapes a text of the tool that contains foreign text; line ends and tabs are kept.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, &Visible::lines(text))
}

/// Escapes foreign lines after a line of the tool: each begins with blanks, unlike the tool's own
/// lines.
pub fn quoted(text: &str) -> String {
    let lines = text.lines().map(|line| format!("  {}", visible(line)));
    lines.collect::<Vec<_>>().join("\n")
}

fn escaped<'a>(text: &'a str, visible: &Visible<'_>) -> Cow<'a, str> {
    if visible.is_plain() { Cow::Borrowed(text) } else { Cow::Owned(visible.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tally_abi::text::is_shown;

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
