//! Figures on pages name a command that exists and a commit of the project's history.

mod tree;

use std::{collections::BTreeSet, process::Command};

use tree::{files, root, sources};
use xtask::{
    cli,
    docs::figures::{FENCE, Figure, MARK},
    run::RunArgs,
};
use xtask_start::laboratory_word;

/// Number of figures from which on a table or an output counts as measured.
const MEASURED: usize = 2;

/// All figures, each with its page.
fn figures() -> Vec<(String, Figure)> {
    let of = |(path, text): (std::path::PathBuf, String)| {
        let page = path.display().to_string();
        let figures = Figure::all(&text)
            .unwrap_or_else(|line| panic!("{page}:{line}: use {MARK} `COMMAND` at commit HASH"));
        figures.into_iter().map(move |figure| (page.clone(), figure)).collect::<Vec<_>>()
    };
    let found: Vec<_> = sources("md").into_iter().flat_map(of).collect();
    assert!(found.len() > 5, "{found:?}");
    found
}

/// Returns whether `text` begins with a number that has a fraction, a percent sign, or groups of
/// three digits.
fn is_measured(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || ",.".contains(c);
    let text = text.trim().trim_start_matches(['+', '-']);
    let (number, rest) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
    let number = number.trim_end_matches([',', '.']);
    let has_groups = number.split(',').skip(1).all(|group| group.len() == 3);
    number.starts_with(|c: char| c.is_ascii_digit())
        && (number.contains('.')
            || number.contains(',') && has_groups
            || rest.trim_start().starts_with('%'))
}

/// Line, from 1, after each table and each output with measured figures that is not followed by a
/// mark.
fn unmarked(page: &str) -> Vec<usize> {
    let (mut found, mut figures) = (Vec::new(), 0);
    // Inside a fenced block: whether the block is an output, which has no language.
    let mut fenced = None;
    for (line, text) in (1..).zip(page.lines().chain([""])) {
        if text.starts_with(FENCE) {
            fenced = if fenced.is_none() { Some(text == FENCE) } else { None };
        } else if let Some(is_output) = fenced {
            let words = text.split_whitespace().filter(|word| is_output && is_measured(word));
            figures += words.count();
        } else if text.starts_with('|') {
            figures += text.split('|').skip(2).filter(|cell| is_measured(cell)).count();
        } else if !text.is_empty() || line > page.lines().count() {
            if figures >= MEASURED && !text.starts_with(MARK) {
                found.push(line);
            }
            figures = 0;
        }
    }
    found
}

#[test]
fn every_table_and_output_with_figures_says_what_gave_them() {
    let on_page = |(path, text): (std::path::PathBuf, String)| {
        let lines = unmarked(&text).into_iter();
        lines.map(move |line| format!("{}:{line}", path.display())).collect::<Vec<_>>()
    };
    let lost: Vec<String> = sources("md").into_iter().flat_map(on_page).collect();
    let form = format!("{MARK} `COMMAND` at commit HASH");
    assert!(lost.is_empty(), "figures end here without a line '{form}':\n{}", lost.join("\n"));
}

#[test]
fn figures_without_a_mark_are_found() {
    let table = "| a | 1.5 |\n| b | 2 % |\n\n";
    assert_eq!(unmarked(&format!("{table}Text.\n")), [4]);
    assert_eq!(unmarked(table), [4]);
    assert_eq!(unmarked("```\na 1,234 +5%\n```\n\n# A\n"), [5]);
    assert_eq!(unmarked(&format!("{table}{MARK} x\n")), [0; 0]);
    assert_eq!(unmarked("```sh\na 1.5 2.5\n```\n\n# A\n| 1.5 | 2, 17 |\n| 2.5 | 3 |\n"), [0; 0]);
}

/// Source file of a test or an example that cargo runs, from the command's options.
fn is_target(command: &str) -> bool {
    ["test", "example"].iter().any(|kind| {
        let name =
            command.split(&format!(" --{kind} ")).nth(1).and_then(|rest| rest.split(' ').next());
        name.is_some_and(|name| {
            let folder = if *kind == "test" { "tests" } else { "examples" };
            let source = format!("{folder}/{name}.rs");
            files(|path| path.extension().is_some_and(|of| of == "rs"))
                .iter()
                .any(|path| path.ends_with(&source))
        })
    })
}

#[test]
fn the_commands_of_figures_exist() {
    let is_accepted = |figure: &Figure| match figure.command.strip_prefix("cargo xtask ") {
        // A sample is the output of a run.
        Some(_) if figure.sample.is_some() => {
            RunArgs::of(&figure.command).and_then(|args| args.request()).is_ok()
        }
        // The laboratory's own tests check its commands.
        Some(_) if laboratory_word(figure.command.split(' ').skip(1)).is_some() => true,
        Some(words) => cli::accepts(words.split(' ')),
        None => is_target(&figure.command),
    };
    let mut found = figures();
    found.retain(|(_, figure)| !is_accepted(figure));
    let lost: Vec<String> =
        found.iter().map(|(page, figure)| format!("{page}: {}", figure.command)).collect();
    assert!(lost.is_empty(), "not accepted:\n{}", lost.join("\n"));
    assert!(!cli::accepts(["export", "--nothing"]));
    assert!(RunArgs::of("cargo xtask run --events").is_err());
    assert!(RunArgs::of("cargo xtask bench switch").is_err());
}

/// Output of git; `None` if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let answer = Command::new("git").arg("-C").arg(root()).args(arguments).output().ok()?;
    answer.status.success().then(|| String::from_utf8_lossy(&answer.stdout).trim().to_owned())
}

#[test]
fn the_commits_of_figures_are_in_the_history() {
    if git(&["rev-parse", "--is-shallow-repository"]).as_deref() != Some("false") {
        println!("skipped: there is no git repository with the whole history");
        return;
    }
    let found = figures();
    let commits: BTreeSet<&str> = found.iter().map(|(_, figure)| &*figure.commit).collect();
    let is_known = |commit: &str| git(&["merge-base", "--is-ancestor", commit, "HEAD"]).is_some();
    let lost: Vec<&str> = commits.into_iter().filter(|commit| !is_known(commit)).collect();
    assert!(lost.is_empty(), "commits that are not in the history: {lost:?}");
    assert!(!is_known("0000000"));
}
