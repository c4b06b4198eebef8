//! `cargo xtask docs`: generated parts of the pages: drawings of the diagrams, the reference of the
//! C library, and figures.
//!
//! The source of a diagram is a text picture in `docs/diagrams`, which is also the diagram's
//! alternative for readers of plain text. The SVG drawing next to it is made from the picture
//! alone; a test compares the two. The form of figures is in [`figures`].

pub mod figures;
mod picture;
pub mod reference;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use tally_abi::ExitStatus;

use self::figures::Figure;
use crate::{
    Failure, Result,
    check::{self, CheckReport},
    machine::{self, Artefacts},
    output, process,
    project::{self, Project},
    report::{Report, table},
    run::RunArgs,
};

/// Folder of pictures and drawings.
const FOLDER: &str = "docs/diagrams";
/// Folder of pages whose figures are not renewed: a decision quotes what was measured for it.
const HISTORY: &str = "docs/decisions";

/// Options of `cargo xtask docs`.
#[derive(Args, Debug)]
pub struct DocsArgs {
    /// Run the commands of all sample outputs again and replace the samples
    #[arg(long, conflicts_with = "stale")]
    samples: bool,
    /// List the measured figures with the number of commits since that changed more than pages
    #[arg(long)]
    stale: bool,
}

/// Does the task.
///
/// # Errors
/// A file cannot be read or written, a run fails, or git cannot answer.
pub fn main(project: &Project, args: &DocsArgs) -> Result<u8> {
    match args {
        DocsArgs { samples: true, .. } => renew_samples(project)?,
        DocsArgs { stale: true, .. } => list_figures(project)?,
        _ => {
            draw(project)?;
            project::write(
                &project.root.join(reference::PAGE),
                reference::page(project)?.as_bytes(),
            )?;
            output::note(format_args!("xtask: {} is written", reference::PAGE));
        }
    }
    Ok(0)
}

/// Draws every picture.
fn draw(project: &Project) -> Result<()> {
    for path in pictures(project)? {
        let drawing = picture::draw(&String::from_utf8_lossy(&project::read(&path)?));
        let to = path.with_extension("svg");
        project::write(&to, drawing.as_bytes())?;
        output::note(format_args!("xtask: {} is drawn", to.display()));
    }
    Ok(())
}

/// The pictures, in the order of their names.
fn pictures(project: &Project) -> Result<Vec<PathBuf>> {
    let folder = project.root.join(FOLDER);
    let entries = fs::read_dir(&folder).map_err(|error| Failure::io("read", &folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    Ok(paths)
}

/// Runs git; returns its output without the newline at the end.
fn git(project: &Project, arguments: &[&str]) -> Result<String> {
    let failed = |why: String| {
        let command = arguments.join(" ");
        Failure::new(ExitStatus::HostError, format!("git {command}: {why}"))
    };
    let mut git = Command::new("git");
    let git = process::output(git.arg("-C").arg(&project.root).args(arguments));
    let answer = git.map_err(|error| failed(error.to_string()))?;
    if !answer.status.success() {
        return Err(failed(String::from_utf8_lossy(&answer.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&answer.stdout).trim_end().to_owned())
}

/// The pages, each with its path from the root and its text.
///
/// # Errors
/// A folder or page cannot be read.
fn pages(project: &Project) -> Result<Vec<(PathBuf, String)>> {
    let paths = project.files(|path| path.extension().is_some_and(|of| of == "md"))?;
    let read = |path: PathBuf| {
        let text = String::from_utf8_lossy(&project::read(&path)?).into_owned();
        Ok((path.strip_prefix(&project.root).unwrap_or(&path).to_owned(), text))
    };
    paths.into_iter().map(read).collect()
}

/// The figures of a page that must be up to date.
fn figures_of(path: &Path, text: &str) -> Result<Vec<Figure>> {
    if path.starts_with(HISTORY) {
        return Ok(Vec::new());
    }
    Figure::all(text).map_err(|line| {
        let why = "use Measured: `COMMAND` at commit HASH";
        Failure::new(ExitStatus::CheckFailed, format!("{}:{line}: {why}", path.display()))
    })
}

/// The pages' samples: page, text and figure.
///
/// # Errors
/// A page cannot be read, or has a figure of another form.
pub fn samples(project: &Project) -> Result<Vec<(PathBuf, String, Figure)>> {
    let mut found = Vec::new();
    for (path, text) in pages(project)? {
        for figure in figures_of(&path, &text)?.into_iter().filter(|of| of.sample.is_some()) {
            found.push((path.clone(), text.clone(), figure));
        }
    }
    Ok(found)
}

/// The lines in samples of `command` that its new `output` does not confirm, each with its page.
///
/// # Errors
/// As [`samples`].
pub fn stale_lines(project: &Project, command: &str, output: &str) -> Result<Vec<String>> {
    let samples = samples(project)?;
    let of_command = samples.iter().filter(|(_, _, figure)| figure.command == command);
    let line = |(path, text, figure): &(PathBuf, String, Figure)| -> Vec<String> {
        let stale = figure.stale(text, output).into_iter();
        stale.map(|line| format!("{}: {line}", path.display())).collect()
    };
    Ok(of_command.flat_map(line).collect())
}

/// Replaces every sample by its command's present output.
fn renew_samples(project: &Project) -> Result<()> {
    if !git(project, &["status", "--porcelain", "--", ".", ":!*.md"])?.is_empty() {
        let why = "a sample names the commit that gave it: commit the changes first";
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    let commit = git(project, &["rev-parse", "--short=7", "HEAD"])?;
    let artefacts = Artefacts::make_for_run(project, &[])?;
    let mut outputs = BTreeMap::new();
    for (path, _, figure) in samples(project)? {
        let command = &figure.command;
        if !outputs.contains_key(command) {
            outputs.insert(command.clone(), print(&artefacts, command)?);
        }
        // An earlier sample of the page may have changed; line numbers stay the same.
        let path = project.root.join(path);
        let page = String::from_utf8_lossy(&project::read(&path)?).into_owned();
        let renewed = figure.renewed(&page, &outputs[command], &commit).map_err(|line| {
            let why = format!("{}: `{command}` prints no line like '{line}'", path.display());
            Failure::new(ExitStatus::CheckFailed, why)
        })?;
        project::write(&path, renewed.as_bytes())?;
        output::note(format_args!("xtask: {}:{}: renewed", path.display(), figure.line + 1));
    }
    Ok(())
}

/// The output of `command`, a `cargo xtask run`.
fn print(artefacts: &Artefacts, command: &str) -> Result<String> {
    let args = RunArgs::of(command)?;
    let boot = machine::boot_with_progress(artefacts, &args.request()?, true)?;
    if !boot.outcome.is_success() {
        return Err(Failure::new(ExitStatus::CheckFailed, format!("{command}: {}", boot.outcome)));
    }
    if check::is_check(&boot) {
        return Ok(check::render(&CheckReport::of(&boot)?));
    }
    let report = Report::with(&boot, args.plan()?.as_ref(), &args.additions());
    Ok(table::render(&report, args.detail()))
}

/// Lists the figures, in decreasing order of the commits since.
fn list_figures(project: &Project) -> Result<()> {
    let mut rows = Vec::new();
    for (path, text) in pages(project)? {
        for Figure { line, command, commit, .. } in figures_of(&path, &text)? {
            let since = format!("{commit}..HEAD");
            let count = git(project, &["rev-list", "--count", &since, "--", ".", ":!*.md"])?;
            let count: u64 = count.parse().unwrap_or_default();
            let place = format!("{}:{}", path.display(), line + 1);
            rows.push((count, format!("{count:>7}  {commit}  {place:<28} {command}\n")));
        }
    }
    rows.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let rows: String = rows.into_iter().map(|(_, row)| row).collect();
    output::text(&format!("commits  since    {:<28} command\n{rows}", "figure"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawing_is_that_of_its_picture() {
        let paths = pictures(&Project::here()).unwrap();
        assert!(!paths.is_empty());
        for path in paths {
            let picture = fs::read_to_string(&path).unwrap();
            let drawing = fs::read_to_string(path.with_extension("svg")).unwrap_or_default();
            let is_drawn = picture::draw(&picture) == drawing;
            assert!(is_drawn, "{} has changed: run `cargo xtask docs`", path.display());
            let width = picture.lines().map(|line| line.chars().count()).max();
            assert!(width <= Some(80), "{} has lines over 80 columns", path.display());
        }
    }
}
