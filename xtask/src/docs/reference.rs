//! The reference of the C library, `docs/guide/c.md`: the headers' comments and declarations, in
//! their order. The headers are the source; a test compares the page with them.

use crate::{
    Result,
    build::HEADERS,
    project::{self, Project},
};

/// The page.
pub const PAGE: &str = "docs/guide/c.md";
/// The headers that programs include, in the page's order.
pub const FILES: [&str; 5] =
    ["tally.h", "tally_region.h", "tally_part.h", "tally_phase.h", "tally_breakdown.h"];
/// The line from which on a header has only internals that programs do not use themselves.
const INTERNAL: &str = "/* The layout of";
const INTRODUCTION: &str = "\
# The C library

[Counting inside a program](api.md) explains how to use and how to link the library. This page has
every function and structure of its headers, from their comments (`cargo xtask docs` writes it).
";

/// A comment and the declarations after it.
#[derive(Debug, Default, PartialEq)]
struct Item {
    comment: Vec<String>,
    code: Vec<String>,
}

/// The page's text.
///
/// # Errors
/// A header cannot be read.
pub fn page(project: &Project) -> Result<String> {
    let mut page = INTRODUCTION.to_owned();
    for file in FILES {
        let header = project::read(&project.root.join(HEADERS).join(file))?;
        page += &format!("\n## {file}\n");
        for item in items(&String::from_utf8_lossy(&header)) {
            page += &render(&item);
        }
    }
    Ok(page)
}

/// The items of a header. Lines of the preprocessor belong to none, except definitions.
fn items(header: &str) -> Vec<Item> {
    let header = header.split(INTERNAL).next().unwrap_or(header);
    let (mut items, mut item) = (Vec::new(), Item::default());
    let mut lines = header.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("/*") {
            items.push(std::mem::take(&mut item));
            item.comment.push(line.to_owned());
            while !item.comment.last().is_some_and(|line| line.ends_with("*/")) {
                let Some(line) = lines.next() else { break };
                item.comment.push(line.to_owned());
            }
        } else if line.is_empty() {
            items.push(std::mem::take(&mut item));
        } else if line == "{" {
            // A function's body is not part of the reference.
            item.code.last_mut().into_iter().for_each(|line| line.push(';'));
            lines.by_ref().find(|line| *line == "}");
        } else if !line.starts_with('#') && !line.starts_with("extern \"C\"") && line != "}"
            || line.starts_with("#define TALLY_") && !line.ends_with("_H")
        {
            item.code.push(line.to_owned());
        }
    }
    items.push(item);
    items.retain(|item| *item != Item::default());
    items
}

/// The name that an item declares: its last function, or its structure, enumeration or macro.
fn name(code: &[String]) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let function = code.iter().rev().find_map(|line| {
        let before = line.split_once('(').filter(|_| !line.starts_with([' ', '#', 't']))?.0;
        before.rsplit(|c| !is_part(c)).next().filter(|name| name.starts_with("tally_"))
    });
    let first = code.first()?;
    let tag = || first.split(' ').find(|word| word.to_ascii_lowercase().starts_with("tally_"));
    let kind = ["enum ", "struct "].into_iter().find(|kind| first.starts_with(kind));
    let tagged = || Some((kind.unwrap_or(""), tag()?));
    let (kind, name) = function.map(|name| ("", name)).or_else(tagged)?;
    Some(format!("{kind}{}", name.split(|c| !is_part(c)).next().unwrap_or(name)))
}

fn render(item: &Item) -> String {
    let mut text = String::new();
    if let Some(name) = name(&item.code) {
        text += &format!("\n### `{name}`\n\n```c\n{}\n```\n", item.code.join("\n"));
    }
    let line = |line: &String| {
        let line = line.trim_start_matches("/*").trim_start_matches(" *").trim_end_matches("*/");
        // Indented lines are code.
        let indent = if line.starts_with("   ") { "    " } else { "" };
        format!("{indent}{}\n", line.trim())
    };
    let comment: String = item.comment.iter().map(line).collect();
    let comment = comment.split("SPDX").next().unwrap_or_default().trim();
    if !comment.is_empty() {
        let mut last_was_code = false;
        text.push('\n');
        for line in comment.lines() {
            let is_code = line.starts_with("    ");
            if (line.is_empty() || is_code != last_was_code) && !text.ends_with("\n\n") {
                text.push('\n');
            }
            last_was_code = is_code;
            if !line.is_empty() {
                text += &format!("{line}\n");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_that_of_the_headers() {
        let project = Project::here();
        let found = std::fs::read_to_string(project.root.join(PAGE)).unwrap_or_default();
        assert!(found == page(&project).unwrap(), "{PAGE} is old: run `cargo xtask docs`");
    }

    #[test]
    fn a_header_s_comments_and_declarations_are_found() {
        let header = "/* Top.\n *   cc x\n * End. */\n#ifndef X_H\n#define X_H\n\n/* An enum. */\n\
                      enum tally_a { A };\n\n/* Does it. */\n#define TALLY_B 1\nint64_t tally_b(int a,\n\
                      \x20             int b);\n/* Inline. */\nstatic inline int tally_c(int a)\n{\n\
                      \x20   return a;\n}\n/* The layout of a bank. */\nint tally_d(void);\n";
        let text: String = items(header).iter().map(render).collect();
        expect_test::expect![[r#"

            Top.

                cc x

            End.

            ### `enum tally_a`

            ```c
            enum tally_a { A };
            ```

            An enum.

            ### `tally_b`

            ```c
            #define TALLY_B 1
            int64_t tally_b(int a,
                          int b);
            ```

            Does it.

            ### `tally_c`

            ```c
            static inline int tally_c(int a);
            ```

            Inline.
        "#]]
        .assert_eq(&text);
    }
}
