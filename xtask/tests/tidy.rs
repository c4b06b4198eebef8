//! Tidy: rules of STYLE.md that the compiler does not check.

mod tree;

use std::{collections::BTreeMap, fs, path::PathBuf};

use tree::{files, root, sources};

/// Maximum lines of a file that states no reason.
const MOST_LINES: usize = 400;
/// Starts of lines that give the reason.
const REASONS: [&str; 3] = ["// Long because ", "//! Long: ", "/* Long because "];
/// Maximum columns of a line of a comment. rustfmt checks code.
const MOST_COLUMNS: usize = 100;

/// Openings that leave a reader without the subject: pronouns, and phrases in place of a noun.
const OPENINGS: [&str; 20] = [
    "What",
    "That",
    "Those",
    "This",
    "These",
    "It",
    "Its",
    "They",
    "Of",
    "As",
    "Whether these",
    "The same",
    "All by which",
    "All that",
    "Who",
    "Whoever",
    "Nothing",
    "Nobody",
    "One",
    "None",
];
/// Folders whose comments do not follow the rule on openings yet.
const UNCHECKED: [&str; 1] = ["kernel/src/memory"];

/// Every package with the project's packages that it may depend on: dependencies point one way.
/// Tests, and tools that no package depends on, may depend on all packages.
const ARROWS: [(&str, &[&str]); 28] = [
    ("tally-abi", &[]),
    ("tally-efi", &[]),
    ("tally-elf", &[]),
    ("tally-ring", &["tally-abi"]),
    ("tally-engine", &["tally-abi"]),
    ("tally-pmu", &["tally-abi", "tally-engine"]),
    ("tally-screen", &["tally-abi"]),
    (
        "tally-kernel",
        &["tally-abi", "tally-elf", "tally-engine", "tally-pmu", "tally-ring", "tally-screen"],
    ),
    ("tally", &["tally-abi", "tally-breakdown", "tally-ring"]),
    ("tally-capi", &["tally"]),
    ("tally-papi", &["tally", "tally-abi", "tally-engine", "tally-pmu"]),
    ("tally-start", &["tally"]),
    ("tally-breakdown", &["tally-abi"]),
    ("tally-programs", &["tally", "tally-abi", "tally-breakdown"]),
    ("tally-test-guests", &["tally", "tally-abi"]),
    ("tally-model", &[]),
    ("tally-vpmu", &["tally-model"]),
    ("tally-vpmu-plugin", &["tally-abi", "tally-model", "tally-vpmu"]),
    ("tally-empty-plugin", &[]),
    ("tally-pvh", &[]),
    ("tally-vpmu-check", &["tally-abi", "tally-pvh"]),
    ("tally-loader", &["tally-abi", "tally-pvh"]),
    (
        "xtask",
        &[
            "tally-abi",
            "tally-breakdown",
            "tally-elf",
            "tally-engine",
            "tally-model",
            "tally-photo",
            "tally-pmu",
            "tally-screen",
            "tally-vpmu",
            "xtask-start",
        ],
    ),
    ("xtask-start", &[]),
    ("tally-image", &[]),
    ("tally-photo", &[]),
    (
        "tally-lab",
        &[
            "tally-abi",
            "tally-breakdown",
            "tally-engine",
            "tally-model",
            "tally-pmu",
            "tally-vpmu",
            "xtask",
        ],
    ),
    ("tally-tests", &["tally-abi", "tally-breakdown", "tally-lab", "tally-photo", "xtask"]),
];

/// Complaint about a Rust file's beginning or length, if any.
fn complaint(text: &str) -> Option<String> {
    if !text.starts_with("//!") {
        return Some("does not begin with `//!`: purpose, invariants, who may run it when".into());
    }
    too_long(text)
}

/// Complaint about a file's length, if any.
fn too_long(text: &str) -> Option<String> {
    let lines = text.lines().count();
    let gives_reason = |line: &str| REASONS.iter().any(|reason| line.trim().starts_with(reason));
    (lines > MOST_LINES && !text.lines().any(gives_reason))
        .then(|| format!("has {lines} lines: split it, or add a line `// Long because …`"))
}

/// Number of the first line of a comment that is too long.
fn too_wide(text: &str) -> Option<usize> {
    let is_comment = |line: &str| ["//", "/*", "* "].iter().any(|mark| line.starts_with(mark));
    let is_wide = |line: &str| line.chars().count() > MOST_COLUMNS && is_comment(line.trim());
    text.lines().position(is_wide).map(|line| line + 1)
}

/// Mark and text of a line of a documentation comment.
fn documentation(line: &str) -> Option<(&'static str, &str)> {
    let text = |mark: &'static str| Some((mark, line.trim_start().strip_prefix(mark)?));
    ["///", "//!"].into_iter().find_map(text)
}

/// Numbers of the lines at which a documentation comment begins with one of [`OPENINGS`].
fn without_subject(text: &str) -> Vec<usize> {
    let is_opening = |text: &str| {
        let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        OPENINGS.iter().any(|words| text.trim_start().strip_prefix(*words).is_some_and(is_end))
    };
    let before = [""].into_iter().chain(text.lines());
    let lines = before.zip(text.lines()).zip(1..);
    let wrong = lines.filter(|((before, line), _)| {
        let Some((mark, text)) = documentation(line) else { return false };
        documentation(before).is_none_or(|(other, _)| other != mark) && is_opening(text)
    });
    wrong.map(|(_, number)| number).collect()
}

#[test]
fn modules_have_documentation_and_are_short() {
    let complaints: Vec<String> = sources("rs")
        .into_iter()
        .filter_map(|(path, text)| Some(format!("{} {}", path.display(), complaint(&text)?)))
        .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn c_files_are_short_and_comments_have_100_columns() {
    let c = || ["c", "h"].into_iter().flat_map(sources);
    let long = c().filter_map(|(path, text)| Some((path, too_long(&text)?)));
    let mut complaints: Vec<String> =
        long.map(|(path, why)| format!("{} {why}", path.display())).collect();
    let all = sources("rs").into_iter().chain(c());
    let wide = all.filter_map(|(path, text)| Some((path, too_wide(&text)?)));
    complaints.extend(wide.map(|(path, line)| {
        format!("{}:{line}: the comment has over {MOST_COLUMNS} columns", path.display())
    }));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn doc_comments_open_with_a_noun_or_a_verb() {
    let is_checked = |path: &PathBuf| !UNCHECKED.iter().any(|folder| path.starts_with(folder));
    let mut complaints = Vec::new();
    for (path, text) in sources("rs").into_iter().filter(|(path, _)| is_checked(path)) {
        let lines = without_subject(&text).into_iter();
        complaints.extend(lines.map(|line| format!("{}:{line}", path.display())));
    }
    assert!(complaints.is_empty(), "comments without a subject:\n{}", complaints.join("\n"));
}

#[test]
fn complaints_are_raised() {
    let long = |head: &str| head.to_owned() + &"x\n".repeat(MOST_LINES + 1);
    assert!(complaint("use x;\n").unwrap().contains("does not begin"));
    assert!(complaint(&long("//! A.\n")).unwrap().contains("lines"));
    assert_eq!(complaint(&long("//! A.\n// Long because it is a table.\n")), None);
    assert_eq!(complaint("//! A.\nuse x;\n"), None);
    let wide = |mark: &str| format!("x\n    {mark}{}\n", "ä".repeat(MOST_COLUMNS - 3));
    assert_eq!((too_wide(&wide("// ")), too_wide(&wide("* "))), (Some(2), Some(2)));
    assert_eq!((too_wide(&wide("")), too_wide("// short\n")), (None, None));
    let bad = "//! It is.\n\n/// The same.\n/// What it is.\nfn f() {}\n    /// Of one.\n";
    assert_eq!(without_subject(bad), [1, 3, 6]);
    let good = "//! Items.\n/// Oneself.\n/// What it is.\n// It is no documentation.\n";
    assert!(without_subject(good).is_empty());
}

/// Packages with the names of their dependencies, for building and for running.
fn packages() -> BTreeMap<String, Vec<String>> {
    let manifests = files(|path| path.ends_with("Cargo.toml"));
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("a manifest can be read");
        toml::from_str::<toml::Table>(&text).expect("a manifest is TOML")
    };
    let named = |manifest: toml::Table| {
        let name = manifest.get("package")?.get("name")?.as_str()?.to_owned();
        let keys = |table: &str| -> Vec<String> {
            let table = manifest.get(table).and_then(toml::Value::as_table);
            // A renamed dependency states its real name in `package`.
            let own = |(key, value): (&String, &toml::Value)| {
                value.get("package").and_then(toml::Value::as_str).unwrap_or(key).to_owned()
            };
            table.into_iter().flatten().map(own).collect()
        };
        let mut uses = keys("dependencies");
        uses.extend(keys("build-dependencies"));
        // The test package consists of tests only.
        if name == "tally-tests" {
            uses.extend(keys("dev-dependencies"));
        }
        Some((name, uses))
    };
    manifests.iter().map(read).filter_map(named).collect()
}

#[test]
fn arrows_point_one_way() {
    let packages = packages();
    let arrows = BTreeMap::from(ARROWS);
    let mut wrong = Vec::new();
    for (name, allowed) in &arrows {
        let uses = packages.get(*name).map(Vec::as_slice).unwrap_or_default();
        let unused = allowed.iter().filter(|used| !uses.iter().any(|of| of == *used));
        wrong.extend(unused.map(|used| format!("{name} → {used}, which nobody needs")));
    }
    for (name, uses) in &packages {
        let Some(allowed) = arrows.get(name.as_str()) else {
            // A package that nothing depends on cannot point back; it stands above all others.
            let users = packages.iter().filter(|(_, uses)| uses.contains(name));
            wrong.extend(users.map(|(user, _)| format!("{user} → {name}, which has no rule")));
            continue;
        };
        let own = uses.iter().filter(|used| packages.contains_key(*used));
        let back = own.filter(|used| !allowed.contains(&used.as_str()));
        wrong.extend(back.map(|used| format!("{name} → {used}")));
    }
    assert!(packages.contains_key("tally-abi"), "packages are found");
    assert!(wrong.is_empty(), "arrows that must not be: {}", wrong.join(", "));
}

/// Names that a file of the ABI crate declares by lines that begin with `before`, up to `after`.
fn declared(file: &str, before: &str, after: char) -> Vec<String> {
    let path = root().join("kernel/abi/src").join(file);
    let text = fs::read_to_string(path).expect("the ABI's sources can be read");
    let names = text.lines().filter_map(|line| {
        let name = line.strip_prefix(before)?.split(after).next()?.trim_end();
        let is_name = name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| name.to_owned())
    });
    names.collect()
}

#[test]
fn the_page_on_the_abi_names_every_call_and_error() {
    let page = fs::read_to_string(root().join("docs/abi.md")).expect("docs/abi.md can be read");
    let calls = declared("syscall.rs", "    ", '=');
    let errors = declared("error.rs", "    ", '=');
    assert!(calls.len() > 200 && errors.len() > 10, "{calls:?} {errors:?}");
    let names = calls.into_iter().chain(errors);
    let missing: Vec<String> = names.filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/abi.md does not name {missing:?}");
}
