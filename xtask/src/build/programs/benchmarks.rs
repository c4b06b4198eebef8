//! The programs that studies of the papers run: `tests/benchmarks/list.toml`.

use std::{collections::BTreeSet, path::PathBuf};

use serde::{Deserialize, Serialize};
use tally_abi::ExitStatus;

use super::{Symbols, list::Origin, make_one, packages_of};
use crate::{
    Failure, Result,
    project::{self, Project},
    setup,
};

/// The folder of the list, of its sources and of its inputs.
const FOLDER: &str = "tests/benchmarks";
/// Folders of the built programs, below the target folder: without symbols, and with them.
const BUILT: [&str; 2] = ["guest/benchmarks", "guest/benchmarks-symbols"];
/// Folder of `.tally` with the packages.
const PACKAGES: &str = "benchmarks";
/// The word of a command that stands for the number of parts.
const PARTS: &str = "{n}";

/// A program of the list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Benchmark {
    /// Name of the program's file.
    pub name: String,
    /// Description of the program.
    pub about: String,
    /// Kind of arithmetic.
    pub kind: Kind,
    /// Role in the studies.
    pub role: Role,
    /// Whether tests and `--quick` run it.
    #[serde(default)]
    pub quick: bool,
    /// Origin of the program.
    pub from: Origin,
    /// Command; the word `{n}` stands for the number of parts.
    pub run: Vec<String>,
    /// Approximate number of instructions of one part in user mode.
    pub instructions: u64,
}

/// Kind of arithmetic that a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Integers.
    Integer,
    /// Floating point.
    Floating,
}

/// Role of a program in the studies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Judge: its results count.
    Judge,
    /// Tuning: a study's choices are made with it.
    Tune,
    /// Subject of paper 002's table and figure.
    Paper002,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Benchmarks {
    #[serde(rename = "program")]
    programs: Vec<Benchmark>,
}

impl Benchmark {
    /// Reads the list.
    ///
    /// # Errors
    /// The list cannot be read, or is wrong.
    pub fn all(project: &Project) -> Result<Vec<Benchmark>> {
        let path = project.root.join(FOLDER).join("list.toml");
        let text = String::from_utf8_lossy(&project::read(&path)?).into_owned();
        parse(&text).map_err(|why| {
            Failure::new(ExitStatus::BuildFailed, format!("{}: {why}", path.display()))
        })
    }

    /// The programs with these names, in the order of the list; without names, those with the role
    /// of judges.
    ///
    /// # Errors
    /// The list has no program of a name.
    pub fn named(all: &[Benchmark], names: &[String]) -> Result<Vec<Benchmark>> {
        if let Some(name) = names.iter().find(|name| all.iter().all(|it| it.name != **name)) {
            let known: Vec<&str> = all.iter().map(|it| &*it.name).collect();
            let why = format!("no program is named {name}: use one of {}", known.join(", "));
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        let is_wanted = |it: &&Benchmark| match names {
            [] => it.role == Role::Judge,
            names => names.contains(&it.name),
        };
        Ok(all.iter().filter(is_wanted).cloned().collect())
    }

    /// The programs of the boot tests.
    pub fn quick(all: &[Benchmark]) -> Vec<Benchmark> {
        all.iter().filter(|it| it.quick).cloned().collect()
    }

    /// The command of a run of about `instructions` instructions, at least one part.
    pub fn command(&self, instructions: u64) -> Vec<String> {
        let parts = ((instructions + self.instructions / 2) / self.instructions).max(1);
        let word = |word: &String| if word == PARTS { parts.to_string() } else { word.clone() };
        self.run.iter().map(word).collect()
    }
}

/// Fetches or builds these programs of `all`, and returns them with their inputs.
///
/// # Errors
/// A package cannot be fetched, or a program does not build.
pub fn make(project: &Project, all: &[Benchmark], wanted: &[Benchmark]) -> Result<Vec<PathBuf>> {
    make_with(project, all, wanted, Symbols::No)
}

/// Fetches or builds programs as [`make`] does, with or without symbols.
///
/// # Errors
/// As [`make`].
pub fn make_with(
    project: &Project,
    all: &[Benchmark],
    wanted: &[Benchmark],
    symbols: Symbols,
) -> Result<Vec<PathBuf>> {
    let built = BUILT[usize::from(symbols == Symbols::Yes)];
    let (folder, sources) = (project.target.join(built), project.root.join(FOLDER));
    project::make_folder(&folder)?;
    // The packages of all programs are fetched, so that another choice does not fetch them again.
    let root = setup::packages(project, PACKAGES, &packages_of(all.iter().map(|it| &it.from)))?;
    let mut made = BTreeSet::new();
    for Benchmark { name, from, run, .. } in wanted {
        let path = folder.join(name);
        make_one(project, (name, from), &sources, &root, (&path, symbols))?;
        made.insert(path);
        let inputs = run.iter().skip(1).map(|word| sources.join(word));
        made.extend(inputs.filter(|path| path.is_file()));
    }
    Ok(made.into_iter().collect())
}

fn parse(text: &str) -> std::result::Result<Vec<Benchmark>, String> {
    let programs = toml::from_str::<Benchmarks>(text).map_err(|error| error.to_string())?.programs;
    let mut names = BTreeSet::new();
    for Benchmark { name, run, instructions, .. } in &programs {
        if !names.insert(name) {
            return Err(format!("two programs are named {name}"));
        }
        if run.first() != Some(name) || !run.iter().any(|word| word == PARTS) {
            return Err(format!("{name}: its command is not `{name} … {PARTS}`"));
        }
        if *instructions == 0 {
            return Err(format!("{name}: a part has no instructions"));
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_programs_of_each_kind_judge_and_others_are_for_choices() {
        let all = Benchmark::all(&Project::here()).unwrap();
        let count = |kind: Kind, role: Role| {
            all.iter().filter(|it| (it.kind, it.role) == (kind, role)).count()
        };
        for kind in [Kind::Integer, Kind::Floating] {
            assert!(count(kind, Role::Judge) >= 4 && count(kind, Role::Tune) >= 1, "{kind:?}");
        }
        assert!(Benchmark::named(&all, &[]).unwrap().iter().all(|it| it.role == Role::Judge));
        for kind in [Kind::Integer, Kind::Floating] {
            assert!(Benchmark::quick(&all).iter().any(|it| it.kind == kind), "{kind:?}");
        }
        let names = ["xz".to_owned(), "gsl".to_owned()];
        let named: Vec<_> = Benchmark::named(&all, &names).unwrap();
        assert_eq!(named.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["gsl", "xz"]);
        let refused = Benchmark::named(&all, &["gcc".to_owned()]).unwrap_err();
        assert!(refused.message.contains("named gcc: use one of bzip2, "), "{refused}");
    }

    #[test]
    fn the_number_of_parts_follows_the_length() {
        let all = Benchmark::all(&Project::here()).unwrap();
        let one = Benchmark {
            instructions: 1_000,
            run: vec!["x".into(), "{n}".into()],
            ..all[0].clone()
        };
        let parts = |instructions| one.command(instructions)[1].clone();
        assert_eq!([0, 1_499, 1_500, 7_000].map(parts), ["1", "1", "2", "7"]);
    }

    #[test]
    fn a_wrong_list_is_refused() {
        let program = |name: &str, run: &str, instructions: u64| {
            format!(
                "[[program]]\nname = \"{name}\"\nabout = \"\"\nkind = \"integer\"\nrole = \"tune\"\n\
                 from = {{ guest = \"x\" }}\nrun = [{run}]\ninstructions = {instructions}\n"
            )
        };
        let good = program("x", r#""x", "{n}""#, 1);
        assert!(parse(&good).is_ok());
        for (text, why) in [
            (good.repeat(2), "two programs"),
            (program("x", r#""y", "{n}""#, 1), "its command"),
            (program("x", r#""x""#, 1), "its command"),
            (program("x", r#""x", "{n}""#, 0), "no instructions"),
            (good.replace("tune", "other"), "unknown variant"),
        ] {
            let refused = parse(&text).map(drop).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
