//! The table of messages in the guide to hardware: each message is in the sources, and each warning
//! of the kernel is in the table.

mod tree;

use std::fs;

use tree::{root, sources};

const PAGE: &str = "docs/hardware/messages.md";
/// Sections whose messages come from Tally.
const SECTIONS: [&str; 2] = ["## The kernel", "## `import`"];
/// Placeholder for a variable part of a message.
const DIFFERS: char = '…';
/// Parts with fewer bytes do not identify the source of a message.
const LEAST: usize = 5;
/// Length of the fixed part that a message of Tally has; messages without it are passed on from
/// elsewhere.
const OWN: usize = 17;

/// Fixed parts of each message in the first cells of these sections' tables.
fn quoted(page: &str) -> Vec<Vec<&str>> {
    let of = |section: &&str| page.split(&format!("{section}\n")).nth(1).expect("it is there");
    let sections = SECTIONS.iter().map(of).map(|text| text.split("\n## ").next().unwrap_or(text));
    let cells = sections.flat_map(str::lines).filter_map(|line| line.strip_prefix("| `"));
    let message = |cell: &'_ str| cell.split_once("` |").map(|(message, _)| message.len());
    let messages = cells.filter_map(|cell| Some(&cell[..message(cell)?]));
    messages.map(|text| text.split(DIFFERS).map(str::trim).collect()).collect()
}

/// Source text with continued strings joined into one line.
fn joined(source: &str) -> String {
    let mut lines = source.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| text + line.trim_start())
}

/// First string after each `start`, as written in the source.
fn strings<'a>(source: &'a str, start: &'a str) -> impl Iterator<Item = &'a str> {
    let calls = source.split(start).skip(1);
    calls.filter_map(|call| call.split_once('"')?.1.split_once('"').map(|(string, _)| string))
}

/// Returns whether a string has a fixed part that distinguishes it from others.
fn is_own(string: &str) -> bool {
    string.split(['{', '}']).step_by(2).any(|part| part.len() >= OWN)
}

fn page() -> String {
    fs::read_to_string(root().join(PAGE)).expect("the page can be read")
}

fn code() -> Vec<(String, String)> {
    let code =
        sources("rs").into_iter().map(|(path, text)| (path.display().to_string(), joined(&text)));
    code.filter(|(path, _)| {
        path.starts_with("kernel/")
            || path.starts_with("xtask/src/")
            || path.starts_with("xtask/photo/")
    })
    .collect()
}

#[test]
fn messages_on_the_page_are_in_the_sources() {
    let (page, code) = (page(), code());
    let parts: Vec<&str> = quoted(&page).concat();
    assert!(parts.len() > 40, "{parts:?}");
    let is_in_code = |part: &&&str| code.iter().any(|(_, text)| text.contains(**part));
    let lost: Vec<&&str> =
        parts.iter().filter(|part| part.len() >= LEAST).filter(|part| !is_in_code(part)).collect();
    assert!(lost.is_empty(), "{PAGE} has messages that no source has: {lost:#?}");
}

#[test]
fn what_the_kernel_warns_of_is_on_the_page() {
    let (page, code) = (page(), code());
    let rows = quoted(&page);
    let calls = |path: &str| -> &[&str] {
        match path {
            "kernel/pmu/src/init.rs" | "kernel/pmu/src/detect.rs" => &["write!(", "f.write_str("],
            path if path.starts_with("kernel/src/") => &["log::warn!(", "log::error!("],
            _ => &[],
        }
    };
    let messages: Vec<&str> = code
        .iter()
        .flat_map(|(path, text)| calls(path).iter().flat_map(|call| strings(text, call)))
        .filter(|string| is_own(string))
        .collect();
    assert!(messages.len() > 20, "{messages:?}");
    let is_in = |row: &Vec<&str>, message: &str| {
        let mut parts = row.iter().filter(|part| part.len() >= LEAST).peekable();
        parts.peek().is_some() && parts.all(|part| message.contains(part))
    };
    let is_on_page = |message: &&&str| rows.iter().any(|row| is_in(row, message));
    let lost: Vec<&&str> = messages.iter().filter(|message| !is_on_page(message)).collect();
    assert!(lost.is_empty(), "{PAGE} lacks messages; add a row for each: {lost:#?}");
}

#[test]
fn messages_are_taken_apart() {
    let page = "## The kernel\n\n| Message | |\n|---|---|\n| `a … b` | c `d` |\n\n## `import`\n\n| `e` | f |\n";
    assert_eq!(quoted(page), [vec!["a", "b"], vec!["e"]]);
    assert_eq!(joined("\"a \\\n    b\""), "\"a b\"");
    let source = "log::warn!(\"a {b}\"); log::warn!(\n    \"c\",\n)";
    assert_eq!(strings(source, "log::warn!(").collect::<Vec<_>>(), ["a {b}", "c"]);
    assert!(is_own("{a}: no memory for the log") && !is_own("{program_of_the_log}: {why}"));
}
