//! Checks of the pages: what they name exists, and what exists is named.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Lines that the README may have.
const README_LINES: usize = 100;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask has a parent").to_owned()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= README_LINES, "README.md has {lines} lines; {README_LINES} are allowed");
}

/// Each decision has its number, title and status in the index, in order.
#[test]
fn the_index_of_decisions_has_every_decision() {
    let folder = root().join("docs/decisions");
    let entries = fs::read_dir(&folder).expect("the decisions can be read");
    let names = entries.map(|entry| entry.expect("the decisions can be read").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "README.md");
    names.sort();
    let row = |name: &String| {
        let page = read(folder.join(name));
        let mut lines = page.lines();
        let heading = lines.next().and_then(|line| line.strip_prefix("# "));
        let (number, title) = heading.and_then(|line| line.split_once(". ")).expect("a title");
        let status = lines.nth(1).and_then(|line| line.strip_prefix("Status: "));
        let status = status.unwrap_or_else(|| panic!("{name}: the third line is no status"));
        assert!(name.starts_with(&format!("{number:0>4}-")), "{name} is number {number}");
        format!("| {number} | [{title}]({name}) | {status} |")
    };
    let rows: Vec<String> = names.iter().map(row).collect();
    let index = read(folder.join("README.md"));
    let listed: Vec<&str> = index.lines().filter(|line| line.contains(".md) |")).collect();
    assert_eq!(listed, rows);
}

/// What `cargo xtask` prints with these words.
fn help(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(words).arg("--help").output();
    String::from_utf8(output.expect("it was built").stdout).expect("help is text")
}

/// The first words of the lines of `text` that are indented by at least `least` blanks.
fn indented(text: &str, least: usize) -> impl Iterator<Item = &str> {
    let is_indented = move |line: &&str| line.len() - line.trim_start().len() >= least;
    text.lines().filter(is_indented).filter_map(|line| line.split_whitespace().next())
}

#[test]
fn the_guide_names_every_command_and_every_option_of_run() {
    let guide = read("docs/guide/commands.md");
    let help_text = help(&[]);
    let commands = help_text.split("Commands:").nth(1).and_then(|text| text.split("\n\n").next());
    let commands: Vec<&str> = indented(commands.expect("help lists commands"), 2).collect();
    let options = help(&["run"]);
    let options = options.split_whitespace().filter(|word| word.starts_with("--"));
    let name = |word: &str| word.trim_end_matches([',', ')', ';', '.', ':']).to_owned();
    let mut names: Vec<String> = options.map(name).filter(|name| name.len() > 2).collect();
    assert!(commands.len() > 10 && names.len() > 10, "{commands:?} {names:?}");
    names.extend(commands.into_iter().map(String::from));
    names.retain(|name| name != "help" && name != "--help");
    // The start of a table's row, or of a name in it.
    names.retain(|name| !["`", " "].iter().any(|end| guide.contains(&format!("`{name}{end}"))));
    assert!(names.is_empty(), "docs/guide/commands.md does not name {names:?}");
}

#[test]
fn the_guide_names_every_exit_status() {
    let guide = read("docs/guide/commands.md");
    let source = read("kernel/abi/src/exit.rs");
    let value = |line: &str| line.split(" = ").nth(1)?.strip_suffix(',')?.parse::<u8>().ok();
    let statuses: Vec<u8> = source.lines().filter_map(value).collect();
    assert!(statuses.len() > 10, "{statuses:?}");
    let missing = statuses.iter().filter(|status| !guide.contains(&format!("\n| {status} | ")));
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "docs/guide/commands.md does not name {missing:?}");
}
