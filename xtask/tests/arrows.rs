//! Arrows: imports run one way, between the kernel's folders and between the files of every crate.
//!
//! Packages have the same rule for their manifests (`tidy.rs`).

#[path = "arrows/circles.rs"]
mod circles;
#[path = "arrows/imports.rs"]
mod imports;
mod tree;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use circles::{Graph, circles};
use imports::{Imports, Sources, imports};

/// Root of the kernel's crate.
const KERNEL: &str = "kernel/src/main.rs";
/// Folders of the kernel, from the lowest layer up. A file imports from its own folder and from
/// folders of lower layers. Folders of one layer do not import from each other.
const LAYERS: [&[&str]; 9] = [
    &["memory"],
    &["machine", "arch"],
    &["files"],
    &["measure"],
    &["task"],
    &["cpu"],
    &["sched"],
    &["calls"],
    &["entry"],
];

/// Root of every crate of the project.
fn roots(sources: &Sources) -> Vec<&Path> {
    let is_root = |path: &Path| {
        let folder = |levels: usize| path.ancestors().nth(levels).and_then(Path::file_name);
        let name = path.file_name().unwrap_or_default();
        match folder(1).and_then(|folder| folder.to_str()) {
            Some("src") => name == "lib.rs" || name == "main.rs",
            Some("bin") => folder(2).is_some_and(|folder| folder == "src"),
            _ => name == "main.rs" && folder(2).is_some_and(|folder| folder == "bin"),
        }
    };
    sources.keys().map(|path| path.as_path()).filter(|path| is_root(path)).collect()
}

/// Layer of a file of the kernel. Files outside of the folders are above them, and `main.rs` is
/// above all.
fn layer(file: &Path) -> (usize, String) {
    let part = file.components().nth(2).map(|part| Path::new(part.as_os_str()).with_extension(""));
    let folder = part.unwrap_or_default().to_string_lossy().into_owned();
    let found = LAYERS.iter().position(|layer| layer.contains(&folder.as_str()));
    (found.unwrap_or(LAYERS.len() + usize::from(folder == "main")), folder)
}

fn arrow(from: &Path, to: &Path, used: &BTreeSet<String>) -> String {
    let used = used.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    format!("{} → {}: {used}", from.display(), to.display())
}

/// Imports of the kernel from higher layers.
fn up(imports: &Imports) -> Vec<String> {
    let runs_up = |from: &Path, to: &Path| {
        let ((low, folder), (high, other)) = (layer(from), layer(to));
        folder != other && high >= low
    };
    let found = imports.iter().filter(|((from, to), _)| runs_up(from, to));
    found.map(|((from, to), used)| arrow(from, to, used)).collect()
}

/// Circles of files, each with its arrows.
fn round(imports: &Imports) -> Vec<String> {
    let mut graph = Graph::new();
    for (from, to) in imports.keys() {
        graph.entry(from.clone()).or_default().insert(to.clone());
    }
    let mut found = Vec::new();
    for circle in circles(&graph) {
        found.push(format!("a circle of {} files:", circle.len()));
        let within =
            imports.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
        found.extend(within.map(|((from, to), used)| format!("  {}", arrow(from, to, used))));
    }
    found
}

#[test]
fn imports_run_down() {
    let sources: Sources = tree::sources("rs").into_iter().collect();
    let kernel = imports(&sources, Path::new(KERNEL));
    assert!(kernel.len() > 100, "the kernel's imports are found");
    let wrong = up(&kernel);
    assert!(wrong.is_empty(), "imports that run up:\n{}", wrong.join("\n"));
}

#[test]
fn no_files_import_in_a_circle() {
    let sources: Sources = tree::sources("rs").into_iter().collect();
    let roots = roots(&sources);
    assert!(roots.len() > 15, "crates are found: {roots:?}");
    let all: BTreeMap<_, _> = roots.iter().flat_map(|root| imports(&sources, root)).collect();
    let wrong = round(&all);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Imports of a crate of made-up files, `kernel/src/main.rs` first.
fn of(files: &[(&str, &str)]) -> Imports {
    let path = |name: &str| Path::new("kernel/src").join(name);
    let sources = files.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect();
    imports(&sources, Path::new(KERNEL))
}

#[test]
fn a_planted_circle_is_found_and_test_code_is_left_out() {
    let main = ("main.rs", "mod a; mod b; fn main() { a::one() }");
    let a = ("a.rs", "use crate::b; pub fn one() { b::two() }");
    let down = of(&[main, a, ("b.rs", "pub fn two() {}")]);
    assert_eq!(down.len(), 2, "{down:?}");
    assert!(round(&down).is_empty());
    let in_test = "pub fn two() {} #[cfg(test)] mod tests { use crate::a::one; }";
    assert!(round(&of(&[main, a, ("b.rs", in_test)])).is_empty());
    let in_body = "pub fn two() { #[cfg(test)] { super::a::one() } }";
    assert!(round(&of(&[main, a, ("b.rs", in_body)])).is_empty());
    for back in [
        "use crate::a::one; pub fn two() {}",
        "use super::{a::{self}}; pub fn two() { a::one() }",
        "pub fn two() { println!(\"{:?}\", crate::a::one()) }",
        "pub fn two() { use super::a::*; one() }",
        "pub fn two() { naked_asm!(\"call {one}\", one = sym crate::a::one) }",
    ] {
        let found = round(&of(&[main, a, ("b.rs", back)])).join("\n");
        assert!(found.contains("b.rs → kernel/src/a.rs"), "{back}: {found}");
    }
}

#[test]
fn a_child_that_uses_its_user_is_a_circle_and_re_exports_are_followed() {
    let main = ("main.rs", "mod a; use a::Shown; fn main() { Shown }");
    let below = ("a/below.rs", "pub struct Shown; pub struct Shared;");
    let parent = ("a/mod.rs", "mod below; mod child; pub use below::Shown; use child::go;");
    let down = of(&[main, parent, below, ("a/child.rs", "use super::below::Shared; fn go() {}")]);
    assert!(round(&down).is_empty(), "{down:?}");
    let shown = ("kernel/src/main.rs".into(), "kernel/src/a/below.rs".into());
    assert!(down.contains_key(&shown), "{down:?}");
    let sibling = of(&[main, parent, below, ("a/child.rs", "use super::Shown; fn go() {}")]);
    assert!(round(&sibling).is_empty(), "it is defined below: {sibling:?}");
    let parent =
        ("a/mod.rs", "mod below; mod child; pub use below::Shown; use child::go; fn x() {}");
    let up = of(&[main, parent, below, ("a/child.rs", "use super::x; fn go() {}")]);
    assert_eq!(round(&up).len(), 3, "{up:?}");
}

#[test]
fn an_import_that_runs_up_is_found() {
    let main = ("main.rs", "mod memory; mod task; mod measure;");
    let files = |memory: &'static str| {
        of(&[main, ("memory.rs", memory), ("task.rs", "pub fn run() {}"), ("measure.rs", "")])
    };
    assert!(up(&files("pub fn map() {}")).is_empty());
    let found = up(&files("pub(in crate::task) fn map() { crate::task::run() }")).join("\n");
    assert!(found.contains("memory.rs → kernel/src/task.rs: run"), "{found}");
}
