//! Checks of the pages: names on them exist, and whatever must be documented is named.

mod tree;

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use tree::{files, root, sources};

/// Maximum lines of the README, including two whole programs.
const README_LINES: usize = 115;
/// Maximum lines of a page of `docs/internals`.
const INTERNALS_LINES: usize = 150;
/// Folders whose paths, in backticks, must exist.
const FOLDERS: [&str; 6] = ["docs/", "kernel/", "qemu/", "tests/", "userlib/", "xtask/"];
/// Words in paths that stand for others.
const PLACEHOLDERS: [&str; 2] = ["NAME", "NNNN"];

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Text of each pair of single backticks, outside fenced blocks.
fn quoted(page: &str) -> impl Iterator<Item = &str> {
    let prose = page.split("```").step_by(2);
    prose.flat_map(|text| text.split('`').skip(1).step_by(2))
}

/// Targets of all links except those to other hosts: file and anchor, each possibly empty.
fn links(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let targets = targets.filter(|to| !to.contains("://"));
    targets.map(|to| to.split_once('#').unwrap_or((to, "")))
}

/// Returns whether `page` has a heading that GitHub gives this anchor.
fn has_heading(page: &str, anchor: &str) -> bool {
    let slug = |heading: &str| {
        let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| slug(line.trim_start_matches('#'))).any(|of| of == anchor)
}

/// Names in `text`, if it is a Rust path such as `module::Type` or `Type::function`.
fn rust_path(text: &str) -> Option<Vec<&str>> {
    let is_name = |name: &&str| {
        let mut characters = name.chars();
        characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let names: Vec<&str> = text.trim_end_matches("()").split("::").collect();
    (names.len() > 1 && names.iter().all(is_name)).then_some(names)
}

/// Returns whether `text` looks like a path of the repository, without placeholder or pattern.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let is_placeholder = PLACEHOLDERS.iter().any(|word| text.contains(word));
    FOLDERS.iter().any(|folder| text.starts_with(folder))
        && text.chars().all(plain)
        && !is_placeholder
}

#[test]
fn paths_and_links_on_pages_exist() {
    let mut missing = Vec::new();
    for (page, text) in sources("md") {
        let folder = root().join(&page).parent().expect("a page lies in a folder").to_owned();
        // A page below a crate's folder may name the crate's own folders.
        let paths = quoted(&text).filter(|text| is_path(text));
        let lost = paths.filter(|path| !root().join(path).exists() && !folder.join(path).exists());
        missing.extend(lost.map(|path| format!("{}: {path}", page.display())));
        let leads = |(to, anchor): &(&str, &str)| {
            let target = if to.is_empty() { root().join(&page) } else { folder.join(to) };
            let has = |text: String| has_heading(&text, anchor);
            target.exists() && (anchor.is_empty() || fs::read_to_string(target).is_ok_and(has))
        };
        let lost = links(&text).filter(|link| !leads(link));
        missing.extend(lost.map(|(to, at)| format!("{}: link to {to}#{at}", page.display())));
    }
    assert!(missing.is_empty(), "pages name what does not exist:\n{}", missing.join("\n"));
}

#[test]
fn a_missing_path_and_a_missing_link_are_found() {
    let prose = "See `kernel/x.rs`, `kernel/…`, `kernel/NAME.rs`, `cargo run` and [this](a.md#b).";
    let page = &format!("{prose}\n```\n`docs/y`\n```\n");
    assert_eq!(quoted(page).filter(|text| is_path(text)).collect::<Vec<_>>(), ["kernel/x.rs"]);
    assert_eq!(links(page).collect::<Vec<_>>(), [("a.md", "b")]);
    assert!(has_heading("# A\n## The `x` of y\n", "the-x-of-y") && !has_heading("# A\n", "b"));
}

/// Each name in a Rust path on a page occurs in some source.
#[test]
fn rust_names_on_pages_are_in_the_sources() {
    let code = files(|path| path.extension().is_some_and(|of| of == "rs"));
    let code = code.into_iter().map(|path| fs::read_to_string(path).expect("a source can be read"));
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words =
        |text: String| -> Vec<String> { text.split(|c| !is_part(c)).map(str::to_owned).collect() };
    let known: BTreeSet<String> = code.flat_map(words).collect();
    // The name of a test may be cut short, as on a command line.
    let is_known = |name: &str| {
        known.range(name.to_owned()..).next().is_some_and(|word| word.starts_with(name))
    };
    let mut missing = Vec::new();
    for (page, text) in sources("md") {
        let unknown = |text: &&str| {
            rust_path(text).is_some_and(|names| names.iter().any(|name| !is_known(name)))
        };
        let lost = quoted(&text).filter(unknown);
        missing.extend(lost.map(|name| format!("{}: {name}", page.display())));
    }
    assert!(missing.is_empty(), "pages name what no source has:\n{}", missing.join("\n"));
    assert_eq!(rust_path("a::B::c()"), Some(vec!["a", "B", "c"]));
    assert!(["a", "a::b.c", "cpu/x/", "a::"].iter().all(|text| rust_path(text).is_none()));
}

#[test]
fn the_readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= README_LINES, "README.md has {lines} lines; {README_LINES} are allowed");
}

/// Rows of an index of decisions, and the rows expected from the pages of its folder, in order.
fn rows_of_decisions(folder: &str, status_mark: &str) -> [Vec<String>; 2] {
    let folder = root().join(folder);
    let entries = fs::read_dir(&folder).expect("the decisions can be read");
    let names = entries.map(|entry| entry.expect("the decisions can be read").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".md") && name != "README.md");
    names.sort();
    let row = |name: &String| {
        let page = read(folder.join(name));
        let mut lines = page.lines();
        let heading = lines.next().and_then(|line| line.strip_prefix("# "));
        let (number, title) = heading.and_then(|line| line.split_once(". ")).expect("a title");
        let status = lines.nth(1).and_then(|line| line.strip_prefix(status_mark));
        let status = status.unwrap_or_else(|| panic!("{name}: the third line is no status"));
        assert!(name.starts_with(&format!("{number:0>4}-")), "{name} is number {number}");
        format!("| {number} | [{title}]({name}) | {status} |")
    };
    let rows = names.iter().map(row).collect();
    let index = read(folder.join("README.md"));
    // Rows begin with a number.
    let is_row =
        |line: &&str| line.strip_prefix("| ").is_some_and(|row| row.starts_with(char::is_numeric));
    [index.lines().filter(is_row).map(str::to_owned).collect(), rows]
}

/// Each decision has its number, title and status in the index, in order. Each archived one also
/// has the page that describes the present state.
#[test]
fn the_indexes_of_decisions_have_every_decision() {
    for (folder, status_mark) in
        [("docs/decisions", "Status: "), ("docs/decisions/archive", "Status: archived; today: ")]
    {
        let [listed, rows] = rows_of_decisions(folder, status_mark);
        assert_eq!(listed, rows);
    }
}

/// A page on a part of the system fits on a few screens, and has an example.
#[test]
fn internals_are_short_and_have_an_example() {
    let pages = sources("md");
    let internals = pages.iter().filter(|(page, _)| page.starts_with("docs/internals"));
    for (page, text) in internals.filter(|(page, _)| !page.ends_with("README.md")) {
        let lines = text.lines().count();
        assert!(lines <= INTERNALS_LINES, "{} has {lines} lines", page.display());
        let sections = ["\n## Example", "\n## Tried and rejected\n"];
        assert!(sections.iter().all(|of| text.contains(*of)), "{}: {sections:?}", page.display());
    }
}

/// Output of `cargo xtask` for these words with `--help`.
fn help(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tally")).args(words).arg("--help").output();
    String::from_utf8(output.expect("it was built").stdout).expect("help is text")
}

/// First words of the lines of `text` that are indented by at least `least` blanks.
fn indented(text: &str, least: usize) -> impl Iterator<Item = &str> {
    let is_indented = move |line: &&str| line.len() - line.trim_start().len() >= least;
    text.lines().filter(is_indented).filter_map(|line| line.split_whitespace().next())
}

#[test]
fn the_guide_names_every_command_and_every_option_of_run() {
    let guide = read("docs/guide/commands.md");
    let help_text = help(&[]);
    // The groups of commands stand before the line about the laboratory.
    let commands = help_text.split("The laboratory").next().expect("a text has a start");
    let commands: Vec<&str> = indented(commands, 2).collect();
    let options = help(&["run"]);
    let options = options.split_whitespace().filter(|word| word.starts_with("--"));
    // `--name[=VALUE]` without its value.
    let name = |word: &str| {
        let name = word.split_once('[').map_or(word, |(name, _)| name);
        name.trim_end_matches([',', ')', ';', '.', ':']).to_owned()
    };
    let mut names: Vec<String> = options.map(name).filter(|name| name.len() > 2).collect();
    assert!(commands.len() > 10 && names.len() > 10, "{commands:?} {names:?}");
    names.extend(commands.into_iter().map(String::from));
    names.retain(|name| name != "help" && name != "--help");
    // The start of a table's row, or of a name in it.
    names
        .retain(|name| !["`", " ", "["].iter().any(|end| guide.contains(&format!("`{name}{end}"))));
    assert!(names.is_empty(), "docs/guide/commands.md does not name {names:?}");
}

#[test]
fn the_guide_names_every_field_of_the_json_object() {
    let guide = read("docs/guide/commands.md");
    let report = read("xtask/src/report/mod.rs");
    let fields = report.lines().filter_map(|line| line.strip_prefix("    pub ")?.split_once(": "));
    // The first session's fields lie in the object itself. A name with a blank is a function's.
    let is_field = |name: &&str| *name != "first" && !name.contains(' ');
    let fields: Vec<&str> = fields.map(|(name, _)| name).filter(is_field).collect();
    assert!(fields.len() > 15, "{fields:?}");
    let missing = fields.iter().filter(|field| !guide.contains(&format!("`{field}`")));
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "docs/guide/commands.md does not name {missing:?}");
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
