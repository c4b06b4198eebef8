//! Tests that a program's bytes, in whatever pieces, give only marked rows of text with colours.

use proptest::prelude::*;

use super::*;

const COLUMNS: usize = 20;
const TERMINAL: Terminal = Terminal { columns: COLUMNS, has_colors: true };

/// The terminal's text for these pieces.
fn passed(pieces: &[&[u8]]) -> String {
    let (mut marked, mut row) = (Marked::default(), Row::default());
    pieces.iter().map(|piece| marked.pass(piece, &mut row, TERMINAL)).collect()
}

/// The text without its colours; `None` if it contains another sequence, or ends with colours set.
fn plain(text: &str) -> Option<String> {
    let mut parts = text.split('\x1b');
    let (mut plain, mut is_plain) = (parts.next()?.to_owned(), true);
    for part in parts {
        let (numbers, rest) = part.strip_prefix('[')?.split_once('m')?;
        let is_number = |c: char| c.is_ascii_digit() || c == ';' || c == ':';
        numbers.chars().all(is_number).then_some(())?;
        is_plain = numbers == "0";
        plain.push_str(rest);
    }
    is_plain.then_some(plain)
}

/// The reason why the text must not be written to a terminal, if there is one.
fn complaint(text: &str) -> Option<String> {
    let Some(plain) = plain(text) else { return Some("another sequence".into()) };
    if let Some(c) = plain.chars().find(|c| !is_shown(*c) && !"\n\t".contains(*c)) {
        return Some(format!("the character {c:?}"));
    }
    for row in plain.lines() {
        let columns = row.chars().fold(0, |at, c| match c {
            '\t' => (at / TAB + 1) * TAB,
            c => at + c.width().unwrap_or_default(),
        });
        let is_wide = columns > COLUMNS && !row.ends_with('\t');
        if !row.starts_with("│ ") || is_wide {
            return Some(format!("the row {row:?}"));
        }
    }
    None
}

#[test]
fn rows_have_marks_and_colours() {
    for (written, shown) in [
        ("", ""),
        ("a\n\nb", "M\u{1}a\nM\u{1}\nM\u{1}b"),
        ("a\r\nb\rc\r\r\n", "M\u{1}a\nM\u{1}b\nM\u{1}c\n"),
        ("\x1b[31ma\nb\x1b[mc", "M\u{1}\x1b[31ma\x1b[0m\nM\u{1}\x1b[31mb\x1b[0mc"),
        ("\x1b[1;38:2::1:2:3ma", "M\u{1}\x1b[1;38:2:0:1:2:3ma\x1b[0m"),
        ("0123456789abcdefghij", "M\u{1}0123456789abcdefgh\nM\u{1}ij"),
        ("\ta\tb\tc", "M\u{1}\ta\tb\t\nM\u{1}c"),
    ] {
        let shown = shown.replace("M\u{1}", MARK);
        assert_eq!(passed(&[written.as_bytes()]), shown, "{written:?}");
    }
}

#[test]
fn what_changes_a_terminal_does_not_pass() {
    let text = |bytes: &[u8]| plain(&passed(&[bytes])).unwrap();
    for sequence in [
        "\x1b[2J",
        "\x1b[H",
        "\x1b[1A",
        "\x1b[1;1H",
        "\x1b[?1049h",
        "\x1b[?25l",
        "\x1b[?1000h",
        "\x1b[?2004h",
        "\x1b]0;title\x07",
        "\x1b]52;c;aGk=\x1b\\",
        "\x1bPq#0\x1b\\",
        "\x1b_G\x1b\\",
        "\x1b^pm\x1b\\",
        "\x1bc",
        "\x1b7",
        "\x1bM",
        "\x1b(0",
        "\x08",
        "\x07",
        "\x0b",
        "\x0c",
        "\x0e",
        "\x7f",
        "\u{9b}2J",
        "\u{9d}0;x\u{9c}",
        "\x1b[>4;2m",
        "\x1b[?4m",
        "\x1b[!p",
    ] {
        let text = text(format!("a{sequence}\n").as_bytes());
        assert!(text.starts_with("│ a") && complaint(&text).is_none(), "{sequence:?}: {text:?}");
    }
    let forged = "ok\r\x1b[1A\x1b[2Kxtask: the kernel panicked\n";
    assert!(text(forged.as_bytes()).lines().all(|row| row.starts_with("│ ")));
    let far = format!("{}xtask: the kernel panicked", " ".repeat(COLUMNS - MARK_COLUMNS));
    assert!(text(far.as_bytes()).lines().all(|row| row.starts_with("│ ")));
}

#[test]
fn two_streams_share_a_row() {
    let (mut out, mut errors, mut row) = (Marked::default(), Marked::default(), Row::default());
    let mut text = out.pass(b"\x1b[31ma", &mut row, TERMINAL);
    text += &errors.pass(b"b", &mut row, TERMINAL);
    text += &out.pass(b"c\n", &mut row, TERMINAL);
    assert_eq!(text, format!("{MARK}\x1b[31ma\x1b[0mb\x1b[31mc\x1b[0m\n\x1b[0m"));
}

#[test]
fn a_sequence_in_two_pieces_is_one() {
    let whole = "ä\x1b[1;31mb\x1b]0;title\x1b\\c\r\n\x1b[2Jd";
    let text = plain(&passed(&[whole.as_bytes()])).unwrap();
    for cut in 0..whole.len() {
        let (first, second) = whole.as_bytes().split_at(cut);
        assert_eq!(plain(&passed(&[first, second])), Some(text.clone()), "{cut}");
    }
    assert_eq!(text, "│ äbc\n│ d");
}

#[test]
fn a_terminal_without_sequences_gets_none() {
    let (mut marked, terminal) = (Marked::default(), Terminal { has_colors: false, ..TERMINAL });
    let text = marked.pass(b"\x1b[31ma\x1b[0m\nb", &mut Row::default(), terminal);
    assert_eq!(text, "│ a\n│ b");
}

/// Random bytes, many of them parts of sequences.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let parts = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        any::<char>().prop_map(|c| c.to_string().into_bytes()),
        proptest::sample::select(vec![
            "\x1b",
            "[",
            "]",
            "\x1b[",
            "\x1b]0;",
            "\x1bP",
            "\x1b\\",
            "\x07",
            "m",
            "0",
            ";",
            ":",
            "31",
            "38:5:1",
            "?",
            ">",
            "h",
            "\r",
            "\n",
            "\t",
            "\u{9b}",
            "\u{301}",
            "日",
            "👩\u{200d}",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    proptest::collection::vec(parts, 0..200).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_are_marked_text(
        bytes in bytes(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &bytes[two[0]..two[1]]).collect();
        let text = passed(&pieces);
        prop_assert_eq!(complaint(&text), None, "{:?}", text);
    }
}
