//! Checks of the pages: the laboratory's commands on them exist, and the guide names each.

#[path = "../../../xtask/tests/tree/mod.rs"]
mod tree;

use std::fs;

use tally_lab::cli;
use tree::{root, sources};
use xtask::docs::figures::Figure;
use xtask_start::{LABORATORY, laboratory_word};

#[test]
fn the_commands_of_figures_exist() {
    let mut found = Vec::new();
    for (page, text) in sources("md") {
        let figures = Figure::all(&text).expect("figures have their form");
        let commands = figures.into_iter().map(|figure| figure.command);
        let is_ours = |command: &String| laboratory_word(command.split(' ').skip(1)).is_some();
        found.extend(commands.filter(is_ours).map(|command| (page.clone(), command)));
    }
    assert!(found.len() > 5, "{found:?}");
    found.retain(|(_, command)| !cli::accepts(command.split(' ').skip(2)));
    assert!(found.is_empty(), "not accepted: {found:#?}");
    assert!(!cli::accepts(["bench", "nothing"]));
}

#[test]
fn the_guide_names_every_command() {
    let guide = fs::read_to_string(root().join("docs/guide/commands.md"));
    let guide = guide.expect("the guide can be read");
    let is_named =
        |word: &str| ["`", " ", "["].iter().any(|end| guide.contains(&format!("`{word}{end}")));
    let missing: Vec<&str> = LABORATORY.into_iter().filter(|word| !is_named(word)).collect();
    assert!(missing.is_empty(), "docs/guide/commands.md does not name {missing:?}");
}
