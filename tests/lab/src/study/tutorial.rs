//! `cargo xtask study tutorial`: types the tutorial's commands, and compares what they print with
//! what the page says.
//!
//! A fenced block of C is the file that the text before it names. A block of shell commands is
//! typed line by line; the blocks of text behind it are what the last of its commands print. In
//! a block with a line `…`, each other line is found by its words; without one the block is all
//! that the command prints.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    docs::figures::{MARK, OMITTED, counterpart},
    output,
    project::{self, Project},
};

/// Options of `cargo xtask study tutorial`.
#[derive(Args, Clone, Debug)]
pub struct TutorialArgs {
    /// Write what the commands print into the page
    #[arg(long)]
    renew: bool,
}

/// The page, a line after the other, as it is renewed.
struct Page<'a> {
    project: &'a Project,
    folder: PathBuf,
    commit: String,
    /// Text that each command of the last block of shell commands printed.
    printed: Vec<String>,
    lines: Vec<String>,
    /// Whether the last block of text was renewed, and its mark was not.
    is_renewed: bool,
}

/// A fenced block: the word behind the fence, and its lines.
type Block<'a> = (&'a str, Vec<&'a str>);

/// Types the commands, and lists the lines that differ; or renews the page.
pub(super) fn main(project: &Project, args: &TutorialArgs) -> Result<u8> {
    let path = project.root.join("docs/tutorial.md");
    let old = String::from_utf8_lossy(&project::read(&path)?).into_owned();
    build_tool(project)?;
    let folder = env::temp_dir().join(format!("tally-tutorial-{}", std::process::id()));
    project::make_folder(&folder)?;
    let commit = project.commit().unwrap_or_default();
    let mut page =
        Page { project, folder, commit, printed: Vec::new(), lines: Vec::new(), is_renewed: false };
    let read = page.read(&old);
    let _ = fs::remove_dir_all(&page.folder);
    read?;
    let new = page.lines.join("\n") + "\n";
    if args.renew {
        project::write(&path, new.as_bytes())?;
    }
    let differs = |(a, b): &(&str, &str)| a != b && !a.starts_with(MARK);
    let pairs: Vec<(&str, &str)> = old.lines().zip(new.lines()).filter(differs).collect();
    let rows = pairs.iter().map(|(a, b)| format!("page:    {a}\ncommand: {b}\n"));
    output::text(&format!("{}{} lines differ\n", rows.collect::<String>(), pairs.len()))?;
    Ok(if pairs.is_empty() || args.renew { 0 } else { ExitStatus::CheckFailed.into() })
}

/// Builds the tool, which need not be there: the laboratory is another program.
fn build_tool(project: &Project) -> Result<()> {
    let mut cargo = project.cargo_without_target("build");
    let built = cargo.args(["-q", "--release", "-p", "xtask"]).status();
    let is_built = built.is_ok_and(|status| status.success());
    let failure = || Failure::new(ExitStatus::BuildFailed, "the tool cannot be built");
    if is_built { Ok(()) } else { Err(failure()) }
}

impl Page<'_> {
    /// Reads the old page, and adds its lines as they are now.
    fn read(&mut self, old: &str) -> Result<()> {
        let mut lines = old.lines();
        while let Some(line) = lines.next() {
            let Some(word) = line.strip_prefix("```").filter(|word| !word.is_empty()) else {
                let line = self.marked(line);
                self.lines.push(line);
                continue;
            };
            let block: Block<'_> =
                (word, lines.by_ref().take_while(|line| *line != "```").collect());
            let now = self.block(&block)?;
            self.lines.push(line.to_owned());
            self.lines.extend(now);
            self.lines.push("```".to_owned());
        }
        Ok(())
    }

    /// A line of text; the mark of a renewed block names the present commit.
    fn marked(&mut self, line: &str) -> String {
        match line.rsplit_once(" at commit ") {
            Some((before, _)) if line.starts_with(MARK) && self.is_renewed => {
                self.is_renewed = false;
                format!("{before} at commit {}", self.commit)
            }
            _ => line.to_owned(),
        }
    }

    /// The lines of a block as they are now.
    fn block(&mut self, (word, lines): &Block<'_>) -> Result<Vec<String>> {
        match *word {
            "c" => {
                let named = self.lines.iter().rev().find_map(|line| file_of(line));
                let text = lines.join("\n") + "\n";
                if let Some(name) = named {
                    project::write(&self.folder.join(name), text.as_bytes())?;
                }
            }
            "sh" => {
                self.printed.clear();
                for line in lines {
                    let printed = self.type_in(line)?;
                    self.printed.push(printed);
                }
            }
            "text" => {
                self.is_renewed = true;
                return self.renewed(lines);
            }
            _ => {}
        }
        Ok(lines.iter().map(ToString::to_string).collect())
    }

    /// Runs a line of shell commands in the folder of the programs. Returns what it prints.
    fn type_in(&self, line: &str) -> Result<String> {
        output::note(format_args!("$ {line}"));
        let tool = self.project.target.join("release/tally");
        let line = line.replacen("cargo xtask", &tool.display().to_string(), 1);
        let mut shell = Command::new("sh");
        let ran = shell.arg("-c").arg(format!("{line} 2>&1")).current_dir(&self.folder).output();
        let ran = ran.map_err(|error| Failure::io("run", Path::new("sh"), &error))?;
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        if ran.status.success() {
            return Ok(text.replace(&format!("{}/", self.folder.display()), ""));
        }
        Err(Failure::new(ExitStatus::CheckFailed, format!("{line}\n{text}")))
    }

    /// The lines of the next block of text. The blocks are those of the last commands, so the first
    /// that has all lines of the block with omissions is the block's.
    fn renewed(&mut self, lines: &[&str]) -> Result<Vec<String>> {
        let whole = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect();
        let head = lines.first().copied().unwrap_or_default();
        let begins =
            |text: &str| text.lines().any(|line| line.split(' ').next() == head.split(' ').next());
        let omits = lines.contains(&OMITTED);
        let is_its = |text: &String| {
            if omits {
                counterpart(head, text).is_some()
            } else {
                text.starts_with('#') && begins(text)
            }
        };
        let at = self.printed.iter().position(is_its);
        let text = at.map(|at| self.printed.remove(at)).ok_or_else(|| {
            Failure::new(ExitStatus::CheckFailed, format!("no command prints '{head}'"))
        })?;
        if !omits {
            return Ok(whole(&text));
        }
        let renew = |line: &&str| match (*line, line.trim().is_empty()) {
            (OMITTED, _) | (_, true) => Ok(line.to_string()),
            _ => counterpart(line, &text).map(str::to_owned).ok_or_else(|| {
                Failure::new(ExitStatus::CheckFailed, format!("no command prints '{line}'"))
            }),
        };
        lines.iter().map(renew).collect()
    }
}

/// The file of C that a line names in backquotes.
fn file_of(line: &str) -> Option<&str> {
    line.split('`').find(|word| word.ends_with(".c") && !word.contains(' '))
}
