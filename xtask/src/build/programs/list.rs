//! The list of programs that run unchanged under Tally: `tests/programs/list.toml`.

use std::collections::BTreeSet;

use serde::Deserialize;
use tally_abi::ExitStatus;

use crate::{Failure, Result, project, project::Project};

/// The folder of the list, and of its sources and inputs.
pub const FOLDER: &str = "tests/programs";

/// The list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The environment of every program: `NAME=VALUE`.
    pub environment: Vec<String>,
    /// The programs, in the order in which they run.
    #[serde(rename = "program")]
    pub programs: Vec<Listed>,
}

/// A program of the list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Name of the program's file.
    pub name: String,
    /// The subject of the test.
    pub about: String,
    /// Whether a boot test runs it.
    #[serde(default)]
    pub quick: bool,
    /// Origin of the program.
    pub from: Origin,
    /// Whether its memory may be writable and executable at once.
    #[serde(default)]
    pub jit: bool,
    /// The commands, each a list of words.
    pub run: Vec<Vec<String>>,
    /// Reason why the program behaves differently under Tally; it is not run then.
    pub differs: Option<String>,
}

/// Origin of a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Origin {
    /// A static program of a Debian package.
    Package {
        /// The package.
        package: String,
        /// The program's path in the package.
        file: String,
    },
    /// A file in C that is linked with the static libraries of Debian packages.
    Source {
        /// Name of the source.
        source: String,
        /// The packages.
        packages: Vec<String>,
        /// Options of the compiler, after the usual ones.
        #[serde(default)]
        options: Vec<String>,
        /// Options of the linker.
        link: Vec<String>,
    },
    /// A file in Go.
    Go {
        /// Name of the source.
        go: String,
    },
    /// A program of the package in `crates`.
    Crate {
        /// Name of the program.
        #[serde(rename = "crate")]
        name: String,
    },
    /// A program of crates.io, under the name in the list.
    Install {
        /// The crate.
        install: String,
        /// Version of the crate.
        version: String,
    },
    /// A test guest.
    Guest {
        /// Name of the guest.
        guest: String,
    },
    /// A dynamic program of the build machine, at the path that is its name in the list.
    Host {
        /// Files and folders that it reads; `*` in the last name stands for any text.
        host: Vec<String>,
    },
}

impl Origin {
    /// The options of the compiler besides the usual ones.
    pub fn options(&self) -> &[String] {
        match self {
            Origin::Source { options, .. } => options,
            _ => &[],
        }
    }
}

impl List {
    /// Reads the list.
    ///
    /// # Errors
    /// The list cannot be read, or is wrong.
    pub fn read(project: &Project) -> Result<List> {
        let path = project.root.join(FOLDER).join("list.toml");
        let text = project::read(&path)?;
        let list = toml::from_slice::<List>(&text).map_err(|error| error.to_string());
        list.and_then(List::checked).map_err(|why| {
            Failure::new(ExitStatus::BuildFailed, format!("{}: {why}", path.display()))
        })
    }

    /// The programs to run; only those of the boot tests if `quick` is set.
    pub fn wanted(&self, quick: bool) -> impl Iterator<Item = &Listed> {
        self.programs.iter().filter(move |it| it.differs.is_none() && (it.quick || !quick))
    }

    /// The list with only the programs of these names, or with all if there is no name. Programs
    /// that are run by a command of a named one are kept.
    #[must_use]
    pub fn only(mut self, names: &[String]) -> List {
        let is_named = |name: &String| names.is_empty() || names.contains(name);
        let named = self.programs.iter().filter(|program| is_named(&program.name));
        let run: BTreeSet<String> = named
            .flat_map(|program| program.run.iter().filter_map(|words| words.first().cloned()))
            .collect();
        self.programs.retain(|program| is_named(&program.name) || run.contains(&program.name));
        self
    }

    fn checked(self) -> std::result::Result<List, String> {
        let mut names = BTreeSet::new();
        for program in &self.programs {
            let name = &program.name;
            if !names.insert(name) {
                return Err(format!("two programs are named {name}"));
            }
            let is_own = |words: &Vec<String>| words.first() == Some(name);
            if !program.run.iter().any(is_own) {
                return Err(format!("no command runs {name}"));
            }
        }
        let commands = self.programs.iter().flat_map(|program| &program.run);
        for words in commands {
            // Words that separate programs on the kernel's command line and in the guest
            // `sequence`.
            if words.iter().any(|word| word == "--" || word == ";") {
                return Err(format!("{words:?}: the words -- and ; are not possible"));
            }
            if !words.first().is_some_and(|name| names.contains(name)) {
                return Err(format!("{words:?}: the list has no such program"));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_ninety_programs_half_of_them_dynamic_and_the_tests_a_dozen() {
        let list = List::read(&Project::here()).unwrap();
        let [all, quick] = [false, true].map(|quick| list.wanted(quick).count());
        assert!(all >= 90 && quick >= 12, "{all}, {quick}");
        let is_host = |program: &&Listed| matches!(program.from, Origin::Host { .. });
        assert!(list.wanted(false).filter(is_host).count() * 2 >= all);
        let of = |wanted: fn(&Origin) -> bool| list.programs.iter().any(|it| wanted(&it.from));
        assert!(of(|from| matches!(from, Origin::Go { .. })));
        assert!(of(|from| matches!(from, Origin::Install { .. })));
    }

    #[test]
    fn a_wrong_list_is_refused() {
        let parse = |text: &str| {
            let text = format!("environment = []\n{text}");
            toml::from_str::<List>(&text).map_err(|error| error.to_string())?.checked()
        };
        let program = |name: &str, run: &str| {
            let from = r#"from = { guest = "x" }"#;
            format!("[[program]]\nname = \"{name}\"\nabout = \"\"\n{from}\nrun = [[{run}]]\n")
        };
        assert!(parse(&program("x", r#""x", "y""#)).is_ok());
        for (text, why) in [
            (program("x", r#""x""#) + &program("x", r#""x""#), "two programs"),
            (program("x", r#""y""#), "no command runs x"),
            (program("x", r#""x", ";""#), "not possible"),
            (program("x", r#""x"], ["y""#), "no such program"),
            (program("x", r#""x""#) + "colour = 3\n", "colour"),
        ] {
            let refused = parse(&text).map(|_| ()).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
