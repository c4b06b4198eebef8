//! PAPI's own tests, compiled with Tally's `papi.h` and `libpapi.a`: the list
//! `tests/papi/list.toml`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;
use tally_abi::ExitStatus;

use super::{HEADERS, archives::Archives, sources};
use crate::{
    Failure, Result, compiler,
    project::{self, Project},
    setup,
};

/// The list.
const LIST: &str = "tests/papi/list.toml";
/// Folder of the built tests, below the target folder.
const BUILT: &str = "guest/papi";
/// Files that the tests share, in PAPI's folders, with their compiler options: PAPI's Makefiles
/// compile the loops without optimization.
const SHARED: [(&str, &str); 7] = [
    ("testlib/test_utils", "-O1"),
    ("testlib/clockcore", "-O1"),
    ("testlib/do_loops", "-O0"),
    ("validation_tests/branches_testcode", "-O1"),
    ("validation_tests/flops_testcode", "-O1"),
    ("validation_tests/instructions_testcode", "-O1"),
    ("ctests/prof_utils", "-O1"),
];

/// The list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The tests, in the order in which they run.
    #[serde(rename = "test")]
    pub tests: Vec<Listed>,
}

/// A test of the list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Name of the test.
    pub name: String,
    /// File in `ctests`, without `.c`, if it differs from the name.
    source: Option<String>,
    /// Options of the compiler.
    #[serde(default)]
    options: Vec<String>,
    /// Whether a boot test runs the test.
    #[serde(default)]
    pub quick: bool,
    /// Whether the test counts ring 0, which the kernel permits with `paranoid=1`.
    #[serde(default)]
    pub counts_ring_0: bool,
    /// Whether the test lasts for seconds of the clock, however much work is done in them.
    #[serde(default)]
    pub lasts_seconds: bool,
    /// Reason why the test ends with `SKIPPED` on one machine or on both.
    pub skips: Option<String>,
    /// Reason why the test does not pass, or is not known to.
    pub fails: Option<String>,
    /// Reason why the test is not run.
    pub not_run: Option<String>,
}

impl Listed {
    /// File without `.c`.
    pub fn source(&self) -> &str {
        self.source.as_deref().unwrap_or(&self.name)
    }
}

impl List {
    /// Reads the list.
    ///
    /// # Errors
    /// The list cannot be read, or is wrong.
    pub fn read(project: &Project) -> Result<List> {
        let path = project.root.join(LIST);
        let wrong = |why: String| {
            Failure::new(ExitStatus::BuildFailed, format!("{}: {why}", path.display()))
        };
        let text = project::read(&path)?;
        let list = toml::from_slice::<List>(&text).map_err(|error| wrong(error.to_string()))?;
        let mut names = BTreeSet::new();
        match list.tests.iter().find(|test| !names.insert(&test.name)) {
            Some(test) => Err(wrong(format!("two tests are named {}", test.name))),
            None => Ok(list),
        }
    }

    /// The tests to run; only those of the boot tests if `quick` is set.
    pub fn wanted(&self, quick: bool) -> impl Iterator<Item = &Listed> {
        self.tests.iter().filter(move |test| test.not_run.is_none() && (test.quick || !quick))
    }
}

/// The names of PAPI's tests that are files in C, without `.c`.
///
/// # Errors
/// The files cannot be fetched.
pub fn files(project: &Project) -> Result<Vec<String>> {
    sources(&setup::papi_tests(project)?.join("ctests"), "c")
}

/// Compiles `tests`. Returns their programs.
///
/// # Errors
/// The sources cannot be fetched, or a test does not compile.
pub fn make(project: &Project, tests: &[&Listed]) -> Result<Vec<PathBuf>> {
    let from = setup::papi_tests(project)?;
    let folder = project.target.join(BUILT);
    project::make_folder(&folder)?;
    let call = || {
        let mut cc = Command::new("cc");
        // PAPI's code has warnings of many kinds.
        cc.args(["-std=gnu11", "-w", "-static", "-pthread", "-I"]).arg(project.root.join(HEADERS));
        for folder in ["testlib", "validation_tests"] {
            cc.arg("-I").arg(from.join(folder));
        }
        cc
    };
    let mut ar = Command::new("ar");
    let library = folder.join("libtests.a");
    ar.arg("rcsD").arg(&library);
    for (file, level) in SHARED {
        let object = folder.join(file.rsplit('/').next().unwrap_or(file)).with_extension("o");
        let source = from.join(file).with_extension("c");
        let mut cc = call();
        let cc = cc.arg(level).arg("-c").arg(&source).arg("-o").arg(&object);
        compiler::run(&format!("Compiling {file}"), cc)?;
        ar.arg(object);
    }
    compiler::run("Writing libtests.a", &mut ar)?;
    let papi = Archives::of(project).papi;
    let make = |test: &&Listed| {
        let program = folder.join(&test.name);
        let source = from.join("ctests").join(test.source()).with_extension("c");
        link(call(), test, &[&source, &library, &papi], &program)?;
        Ok(program)
    };
    tests.iter().map(make).collect()
}

fn link(mut cc: Command, test: &Listed, files: &[&Path], program: &Path) -> Result<()> {
    cc.args(["-O1", "-s"]).args(&test.options).args(files).args(["-lm", "-o"]).arg(program);
    compiler::run(&format!("Compiling {}", test.name), &mut cc)
}
