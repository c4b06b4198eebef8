//! Programs that only tests run and that know nothing of Tally: of ordinary libraries, for any Linux. All of
//! them end up in one folder, where tests run them on the host too.

use std::{fs, path::PathBuf, process::Command};

use tally_abi::ExitStatus;

use super::{PROGRAMS, sources};
use crate::{
    Failure, Result, compiler, process,
    project::{self, Project},
    setup,
};

/// Where those in C are.
const FOLDER: &str = "tests/guests/hosted";
/// The one in Rust.
const RUST: &str = "rust";
/// Where all are once they are built, below the target folder.
const BUILT: &str = "guest/hosted";

/// Compiles each program as everybody compiles a static program, and again, with `-pie` behind its
/// name, as one that runs anywhere.
///
/// # Errors
/// One does not build.
pub fn hosted_guests(project: &Project) -> Result<Vec<PathBuf>> {
    let folder = project.target.join(BUILT);
    project::make_folder(&folder)?;
    let compile = |(name, kind, suffix): (&String, &str, &str)| {
        let program = folder.join(format!("{name}{suffix}"));
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-s", kind, "-o"])
            .arg(&program)
            .arg(project.root.join(FOLDER).join(name).with_extension("c"))
            .arg("-lm");
        compiler::run(&format!("Compiling {name}{suffix}"), &mut cc)?;
        Ok(program)
    };
    let names = sources(&project.root.join(FOLDER), "c")?;
    let ways = [("-static", ""), ("-static-pie", "-pie")];
    let all = names.iter().flat_map(|name| ways.map(|(kind, suffix)| (name, kind, suffix)));
    all.map(compile).collect()
}

/// Links those of [`FOLDER`] that are about the C library with musl, as `musl-gcc` does: with `-musl`
/// behind their names, and `-musl-pie` those that run anywhere.
///
/// # Errors
/// One does not build.
pub fn musl_guests(project: &Project, musl: &setup::Musl) -> Result<Vec<PathBuf>> {
    const NAMES: [&str; 5] = ["affinity", "files", "libc", "signals", "threads"];
    const WAYS: [(&str, &str, [&str; 3]); 2] = [
        ("-static", "-musl", ["crt1.o", "crtbeginT.o", "crtend.o"]),
        ("-static-pie", "-musl-pie", ["rcrt1.o", "crtbeginS.o", "crtendS.o"]),
    ];
    let own_headers = compilers_file("include")?;
    let compile = |(name, (kind, suffix, [start, begin, end])): (&str, (&str, &str, [&str; 3]))| {
        let program = project.target.join(BUILT).join(format!("{name}{suffix}"));
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-s", kind])
            .args(["-nostdinc", "-isystem"])
            .arg(&musl.headers)
            .arg("-isystem")
            .arg(&own_headers)
            .args(["-nostdlib", "-o"])
            .arg(&program)
            .args([start, "crti.o"].map(|file| musl.library.join(file)))
            .arg(compilers_file(begin)?)
            .arg(project.root.join(FOLDER).join(name).with_extension("c"))
            .arg("-L")
            .arg(&musl.library)
            .args(["-Wl,--start-group", "-lc", "-lgcc", "-lgcc_eh", "-Wl,--end-group"])
            .arg(compilers_file(end)?)
            .arg(musl.library.join("crtn.o"));
        compiler::run(&format!("Compiling {name}{suffix}"), &mut cc)?;
        Ok(program)
    };
    NAMES.into_iter().flat_map(|name| WAYS.map(|way| (name, way))).map(compile).collect()
}

/// Where the system's compiler has a file of its own.
fn compilers_file(name: &str) -> Result<PathBuf> {
    let mut cc = Command::new("cc");
    let output = process::output(cc.arg(format!("-print-file-name={name}"))).map_err(|error| {
        Failure::new(ExitStatus::BuildFailed, format!("cannot run cc: {error}"))
    })?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Builds the program of Rust's standard library, as that comes with the compiler, into a static one that
/// runs anywhere.
///
/// # Errors
/// It does not build.
pub fn rust_guest(project: &Project) -> Result<PathBuf> {
    let folder = project.target.join("guest/rust");
    let mut build = project.cargo("build", &folder);
    build
        .args(["--release", "--package", "tally-test-rust", "--target", PROGRAMS.target])
        .args(["--config", "profile.release.strip=true"])
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    compiler::run("Building the program of Rust's standard library", &mut build)?;
    let built = folder.join(PROGRAMS.target).join("release").join(RUST);
    let program = project.target.join(BUILT).join(RUST);
    fs::copy(&built, &program).map_err(|error| Failure::io("write", &program, &error))?;
    Ok(program)
}
