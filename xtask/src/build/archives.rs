//! The archives that C programs are linked with: `libtally.a`, `libpapi.a` and `libtally_start.a`.
//!
//! rustc's archive has Rust's library as global symbols, its panic handler and `memcpy` among them,
//! which clash with those of a C library or of another Rust archive. So each archive becomes one
//! object in which only the functions of the archive's headers are global, and which needs no other
//! object.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use object::{Object, ObjectSymbol, read::archive::ArchiveFile};
use tally_abi::ExitStatus;

use super::package::{C_LIBRARY, C_START, GuestPackage, PAPI_LIBRARY};
use crate::{
    Failure, Result, compiler,
    project::{self, Project},
};

/// Archives that are sealed: name, package, and the prefix of all functions of the headers.
const SEALED: [(&str, &GuestPackage, &str); 2] =
    [("libtally.a", &C_LIBRARY, "tally_"), ("libpapi.a", &PAPI_LIBRARY, "PAPI_")];

/// The built archives.
#[derive(Clone, Debug)]
pub struct Archives {
    /// The library, for every static program.
    pub tally: PathBuf,
    /// PAPI's calls, for every static program.
    pub papi: PathBuf,
    /// The entry point, for programs without a C library.
    pub start: PathBuf,
}

impl Archives {
    /// The paths of the archives that [`build`] writes.
    pub fn of(project: &Project) -> Archives {
        let folder = C_LIBRARY.release_folder(project);
        Archives {
            tally: folder.join("sealed/libtally.a"),
            papi: folder.join("sealed/libpapi.a"),
            start: folder.join("libtally_start.a"),
        }
    }
}

/// Builds all archives.
///
/// # Errors
/// A crate does not build, or the linker fails.
pub fn build(project: &Project, library: &Path) -> Result<Archives> {
    let archives = Archives::of(project);
    for ((name, package, prefix), sealed) in
        SEALED.into_iter().zip([&archives.tally, &archives.papi])
    {
        compiler::run(&format!("Building {name}"), &mut package.cargo(project, library, "build"))?;
        seal(project, &package.release_folder(project).join(name), prefix, sealed)?;
    }
    compiler::run("Building libtally_start.a", &mut C_START.cargo(project, library, "build"))?;
    Ok(archives)
}

/// Writes the archive `whole` to `sealed` as one object, in which only the global symbols that
/// begin with `prefix` remain global. Does nothing if `sealed` is newer.
fn seal(project: &Project, whole: &Path, prefix: &str, sealed: &Path) -> Result<()> {
    let modified = |file: &Path| fs::metadata(file).and_then(|metadata| metadata.modified());
    let built = modified(whole).map_err(|error| Failure::io("read", whole, &error))?;
    if modified(sealed).is_ok_and(|made| made > built) {
        return Ok(());
    }
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    let folder = sealed.with_file_name(format!("part-{}", std::process::id()));
    project::make_folder(&folder)?;
    let [object, local, archive] =
        ["whole.o", "sealed.o", "sealed.a"].map(|name| folder.join(name));
    let mut ld = Command::new("ld");
    // Groups of sections would keep their global names.
    ld.args(["-r", "--gc-sections", "--force-group-allocation", "-o"]).arg(&object);
    for name in global_symbols(whole)?.iter().filter(|name| name.starts_with(prefix)) {
        ld.args(["--undefined", name]);
    }
    compiler::run(&format!("Linking {name}"), ld.arg("--whole-archive").arg(whole))?;
    let mut objcopy = compiler::objcopy(&project.root)?;
    objcopy.args(["--wildcard", "--keep-global-symbol", &format!("{prefix}*"), "--strip-debug"]);
    compiler::run(&format!("Hiding symbols of {name}"), objcopy.args([&object, &local]))?;
    let mut ar = Command::new("ar");
    compiler::run(&format!("Writing {name}"), ar.arg("rcsD").args([&archive, &local]))?;
    fs::rename(&archive, sealed).map_err(|error| Failure::io("write", sealed, &error))?;
    fs::remove_dir_all(&folder).map_err(|error| Failure::io("remove", &folder, &error))
}

/// The names of the global symbols that the members of an archive define.
///
/// # Errors
/// The file cannot be read, or is no archive.
pub fn global_symbols(archive: &Path) -> Result<Vec<String>> {
    Ok(symbols(archive)?.into_iter().filter(|symbol| symbol.defined).map(|of| of.name).collect())
}

/// The names of the symbols that an archive imports.
///
/// # Errors
/// As [`global_symbols`].
pub fn undefined_symbols(archive: &Path) -> Result<Vec<String>> {
    Ok(symbols(archive)?.into_iter().filter(|symbol| !symbol.defined).map(|of| of.name).collect())
}

struct Symbol {
    name: String,
    defined: bool,
}

fn symbols(archive: &Path) -> Result<Vec<Symbol>> {
    let bad = |error: object::Error| {
        let why = format!("{} is no archive: {error}", archive.display());
        Failure::new(ExitStatus::BuildFailed, why)
    };
    let bytes = project::read(archive)?;
    let parsed = ArchiveFile::parse(bytes.as_slice()).map_err(bad)?;
    let mut found = Vec::new();
    for member in parsed.members() {
        let data = member.and_then(|member| member.data(bytes.as_slice())).map_err(bad)?;
        // rustc's metadata is no object.
        let Ok(file) = object::File::parse(data) else { continue };
        let symbols = file.symbols().filter(|symbol| symbol.is_global());
        found.extend(symbols.filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?.to_owned();
            Some(Symbol { name, defined: !symbol.is_undefined() })
        }));
    }
    Ok(found)
}
