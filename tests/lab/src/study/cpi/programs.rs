//! The study's programs: `tests/programs/cpi.toml`.

use serde::{Deserialize, Serialize};
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result,
    build::programs::list::FOLDER,
    project::{self, Project},
};

use crate::study::named;

/// Kind of arithmetic that a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Integer,
    Float,
}

/// Use of a program: to choose the counters' rules, or to judge them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Use {
    Tuning,
    Judging,
}

/// A program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) kind: Kind,
    #[serde(rename = "use")]
    pub(super) used_for: Use,
    /// Name in the list of programs; `None` for one of Tally's own.
    pub(super) from: Option<String>,
    /// The command, word by word.
    pub(super) run: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(rename = "program")]
    programs: Vec<Program>,
}

/// Reads the programs of these names, or all.
///
/// # Errors
/// The file cannot be read, or is wrong; there is no program of a name.
pub(super) fn read(project: &Project, names: &[String]) -> Result<Vec<Program>> {
    let path = project.root.join(FOLDER).join("cpi.toml");
    let text = project::read(&path)?;
    let mut programs = parse(&text).map_err(|why| {
        Failure::new(ExitStatus::BuildFailed, format!("{}: {why}", path.display()))
    })?;
    named::check(&programs.iter().map(|it| &*it.name).collect::<Vec<_>>(), names)?;
    programs.retain(|program| names.is_empty() || names.contains(&program.name));
    Ok(programs)
}

fn parse(text: &[u8]) -> std::result::Result<Vec<Program>, String> {
    let table: Table = toml::from_slice(text).map_err(|error| error.to_string())?;
    match table.programs.iter().find(|program| program.run.is_empty()) {
        Some(program) => Err(format!("{} runs nothing", program.name)),
        None => Ok(table.programs),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use xtask::build::programs::list::List;

    #[test]
    fn the_table_has_programs_of_both_kinds_and_uses() {
        let project = Project::here();
        let programs = read(&project, &[]).unwrap();
        let names: BTreeSet<&str> = programs.iter().map(|program| &*program.name).collect();
        assert_eq!(names.len(), programs.len());
        for kind in [Kind::Integer, Kind::Float] {
            let judged = programs.iter().filter(|one| one.used_for == Use::Judging);
            assert!(judged.filter(|one| one.kind == kind).count() >= 4, "{kind:?}");
        }
        assert!(programs.iter().any(|program| program.used_for == Use::Tuning));
        // Programs that boot tests run are fetched or compiled in seconds.
        let list = List::read(&project).unwrap();
        for from in programs.iter().filter_map(|program| program.from.as_ref()) {
            assert!(list.wanted(true).any(|listed| listed.name == *from), "{from}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_there_are() {
        let refused = read(&Project::here(), &["nothing".to_owned()]).unwrap_err();
        assert_eq!(refused.status, ExitStatus::Usage);
        assert!(refused.to_string().contains("deflate"), "{refused}");
    }

    #[test]
    fn a_wrong_table_is_refused() {
        assert!(parse(b"[[program]]\nname = \"x\"").is_err());
        let empty = b"[[program]]\nname=\"x\"\nkind=\"float\"\nuse=\"tuning\"\nrun=[]";
        assert_eq!(parse(empty).unwrap_err(), "x runs nothing");
    }
}
