//! Test programs that do not use Tally: built with ordinary libraries for any Linux. They are
//! placed in one folder, from which tests also run them on the host.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tally_abi::ExitStatus;

use super::{HEADERS, PROGRAMS, sources};
use crate::{
    Failure, Result, compiler, process,
    project::{self, Project},
    setup,
};

/// Folder of the sources in C.
const FOLDER: &str = "tests/guests/hosted";
/// Name of the program in Rust.
const RUST: &str = "rust";
/// Folder of the built programs, below the target folder.
const BUILT: &str = "guest/hosted";

/// The folder of the built programs.
pub(super) fn folder(project: &Project) -> PathBuf {
    project.target.join(BUILT)
}

/// Compiles each C program twice: as a static executable and, with `-pie` appended to its name, as
/// a static position-independent one. A program is a file or a folder of files.
///
/// # Errors
/// A program does not build.
pub fn hosted_guests(project: &Project) -> Result<Vec<PathBuf>> {
    let folder = project.target.join(BUILT);
    project::make_folder(&folder)?;
    let compile = |(name, kind, suffix): (&String, &str, &str)| {
        let program = folder.join(format!("{name}{suffix}"));
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-s", kind, "-I"])
            .arg(project.root.join(HEADERS))
            .arg("-o")
            .arg(&program)
            .args(files_of(project, name)?)
            .arg("-lm");
        compiler::run(&format!("Compiling {name}{suffix}"), &mut cc)?;
        Ok(program)
    };
    let names = names(project)?;
    let kinds = [("-static", ""), ("-static-pie", "-pie")];
    let all = names.iter().flat_map(|name| kinds.map(|(kind, suffix)| (name, kind, suffix)));
    all.map(compile).collect()
}

/// The programs' names: those of files without extension, and those of folders.
fn names(project: &Project) -> Result<Vec<String>> {
    let folder = project.root.join(FOLDER);
    let mut names = sources(&folder, "c")?;
    let entries = fs::read_dir(&folder).map_err(|error| Failure::io("read", &folder, &error))?;
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    names.extend(folders.filter_map(|entry| entry.file_name().into_string().ok()));
    names.sort();
    Ok(names)
}

/// The C files of a program.
fn files_of(project: &Project, name: &str) -> Result<Vec<PathBuf>> {
    let path = project.root.join(FOLDER).join(name);
    if !path.is_dir() {
        return Ok(vec![path.with_extension("c")]);
    }
    let files = sources(&path, "c")?;
    Ok(files.iter().map(|file| path.join(file).with_extension("c")).collect())
}

/// Compiles the programs that use the compilers' larger libraries, C++'s and OpenMP's, and one for
/// processors with AVX2.
///
/// # Errors
/// A program does not build.
pub fn library_guests(project: &Project) -> Result<Vec<PathBuf>> {
    const SOURCES: &str = "tests/guests/libraries";
    let programs = [
        ("openmp", "openmp.c", "cc", ["-fopenmp", "-std=gnu11"]),
        ("iostreams", "iostreams.cpp", "c++", ["-std=c++17", "-pthread"]),
        ("matrix", "matrix.c", "cc", ["-O3", "-march=x86-64-v3"]),
    ];
    let compile = |(name, source, compiler, options): (&str, &str, &str, [&str; 2])| {
        let program = project.target.join(BUILT).join(name);
        let mut call = Command::new(compiler);
        call.args(["-Wall", "-Wextra", "-O2", "-s", "-static"]).args(options);
        call.arg("-o").arg(&program).arg(project.root.join(SOURCES).join(source));
        compiler::run(&format!("Compiling {name}"), &mut call)?;
        Ok(program)
    };
    programs.into_iter().map(compile).collect()
}

/// Compiles the dynamic programs: some of the C programs, position-independent, and one at a fixed
/// address; and one with a library beside it and one that it loads while it runs.
///
/// # Errors
/// A program does not build.
pub fn dynamic_guests(project: &Project) -> Result<Vec<PathBuf>> {
    const SOURCES: &str = "tests/guests/dynamic";
    let folder = project.target.join(BUILT);
    let sources = |names: &[&str]| -> Vec<PathBuf> {
        names.iter().map(|name| project.root.join(SOURCES).join(name)).collect()
    };
    let compile = |name: &str, options: &[&str], sources: Vec<PathBuf>| -> Result<PathBuf> {
        let program = folder.join(name);
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-I"]);
        cc.arg(project.root.join(HEADERS)).arg("-o").arg(&program).args(sources);
        cc.arg(format!("-L{}", folder.display())).args(options).arg("-lm");
        compiler::run(&format!("Compiling {name}"), &mut cc)?;
        Ok(program)
    };
    let mut made = Vec::new();
    for name in ["libc", "signals", "threads"] {
        made.push(compile(&format!("{name}-dynamic"), &["-pie"], files_of(project, name)?)?);
    }
    made.push(compile("libc-fixed", &["-no-pie"], files_of(project, "libc")?)?);
    // The option for a stack that is executable keeps the linker silent about it.
    made.push(compile("jit", &["-Wl,-z,execstack"], sources(&["jit.c"]))?);
    let library = ["-shared", "-fPIC"];
    made.push(compile("libneeded.so", &library, sources(&["needed.c"]))?);
    let plugin = ["-shared", "-fPIC", "-lneeded", "-Wl,-z,lazy"];
    made.push(compile("plugin.so", &plugin, sources(&["plugin.c"]))?);
    let opens = ["-pie", "-lneeded", "-Wl,-rpath,$ORIGIN"];
    made.push(compile("opens", &opens, sources(&["opens.c"]))?);
    for (name, function) in [("libshares.so", "in_library"), ("loaded.so", "in_loaded")] {
        let function = format!("-DNAME={function}");
        let options = ["-g", "-shared", "-fPIC", &function];
        made.push(compile(name, &options, sources(&["loop.c"]))?);
    }
    let shares = ["-g", "-pie", "-lshares", "-Wl,-rpath,$ORIGIN"];
    made.push(compile("shares", &shares, sources(&["shares.c", "loop.c"]))?);
    made.push(compile("same", &["-g"], sources(&["same.c", "same_other.c"]))?);
    // Another build of the same program, without symbols.
    let other = ["-s", "-O1", "-pie", "-lshares", "-Wl,-rpath,$ORIGIN"];
    made.push(compile("shares-other", &other, sources(&["shares.c", "loop.c"]))?);
    Ok(made)
}

/// Links a program in several layouts: with segments that share pages, with one segment that is
/// writable and executable, position-independent at a large alignment, and without what only
/// debuggers and linkers read.
///
/// # Errors
/// A program does not build.
pub fn layout_guests(project: &Project) -> Result<Vec<PathBuf>> {
    const SOURCES: &str = "tests/guests/layouts";
    /// Byte order, version, system and its version, and `e_shoff` in the header of an ELF file.
    const UNREAD: [std::ops::Range<usize>; 2] = [5..9, 40..48];
    let sources = project.root.join(SOURCES);
    let script = format!("-Wl,-T,{}", sources.join("shared.ld").display());
    let fixed = ["-static", "-fno-pie", "-no-pie"];
    let layouts = [
        ("layout-shared", [&fixed[..], &[&script, "-Wl,--build-id=none"]].concat()),
        ("layout-writable", [&fixed[..], &["-Wl,-N"]].concat()),
        ("layout-aligned", vec!["-static-pie", "-fpie", "-Wl,-z,max-page-size=0x200000"]),
    ];
    let folder = project.target.join(BUILT);
    let mut made = Vec::new();
    for (name, options) in layouts {
        let mut cc = Command::new("cc");
        cc.args(["-Wall", "-Wextra", "-Werror", "-O2", "-s", "-ffreestanding", "-nostdlib"]);
        cc.args(options).arg("-o").arg(folder.join(name)).arg(sources.join("plain.c"));
        compiler::run(&format!("Compiling {name}"), &mut cc)?;
        made.push(folder.join(name));
    }
    let (whole, unread) = (folder.join("layout-shared"), folder.join("layout-unread"));
    let mut bytes = project::read(&whole)?;
    UNREAD.into_iter().for_each(|range| bytes[range].fill(0xff));
    // The copy is executable as its original is.
    let made_it = fs::copy(&whole, &unread).and_then(|_| fs::write(&unread, &bytes));
    made_it.map_err(|error| Failure::io("write", &unread, &error))?;
    made.push(unread);
    Ok(made)
}

/// Makes files that cannot be loaded as programs, from one that can: a dynamic program without its
/// interpreter, one for another machine, one that lacks its end, and a text.
///
/// # Errors
/// A file cannot be made.
pub fn unusable_programs(project: &Project) -> Result<Vec<PathBuf>> {
    /// The offset of `e_machine` in an ELF file, and the number of 64-bit Arm.
    const MACHINE: usize = 18;
    const AARCH64: u8 = 183;
    /// Bytes of a file that ends in its code: one that ends behind its segments can run.
    const TRUNCATED: usize = 20_000;
    let folder = project.target.join(BUILT);
    let whole = project::read(&folder.join("endings"))?;
    let mut for_arm = whole.clone();
    for_arm[MACHINE] = AARCH64;
    let dynamic = folder.join("unusable-dynamic");
    let mut cc = Command::new("cc");
    cc.arg("-o").arg(&dynamic).args(files_of(project, "endings")?);
    compiler::run("Compiling unusable-dynamic", &mut cc)?;
    let mut made = vec![dynamic];
    let truncated = &whole[..TRUNCATED];
    for (name, bytes) in [("arm", &*for_arm), ("truncated", truncated), ("text", b"#!/bin/sh\n")] {
        let path = folder.join(format!("unusable-{name}"));
        project::write(&path, bytes)?;
        made.push(path);
    }
    Ok(made)
}

/// Links the programs of [`FOLDER`] that test the C library with musl. Appends `-musl` to their
/// names, or `-musl-pie` if position-independent.
///
/// # Errors
/// A program does not build.
pub fn musl_guests(project: &Project, musl: &setup::Musl) -> Result<Vec<PathBuf>> {
    const NAMES: [&str; 9] = [
        "affinity", "files", "folders", "libc", "mappings", "sched", "signals", "streams",
        "threads",
    ];
    let compile = |(name, kind): (&str, MuslKind)| {
        let program = project.target.join(BUILT).join(format!("{name}{}", kind.suffix));
        let mut arguments = words(&["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-s"]);
        arguments.extend(files_of(project, name)?);
        compile_with_musl(musl, kind, &arguments, &program)?;
        Ok(program)
    };
    NAMES.into_iter().flat_map(|name| MUSL_KINDS.map(|kind| (name, kind))).map(compile).collect()
}

/// A method of linking with musl.
#[derive(Clone, Copy, Debug)]
pub struct MuslKind {
    /// Suffix of the programs' names.
    pub suffix: &'static str,
    option: &'static str,
    /// The start file, and the compiler's own first and last file.
    frame: [&'static str; 3],
}

/// Both methods: at fixed addresses, and position-independent.
pub const MUSL_KINDS: [MuslKind; 2] = [
    MuslKind { suffix: "-musl", option: "-static", frame: ["crt1.o", "crtbeginT.o", "crtend.o"] },
    MuslKind {
        suffix: "-musl-pie",
        option: "-static-pie",
        frame: ["rcrt1.o", "crtbeginS.o", "crtendS.o"],
    },
];

fn words(words: &[&str]) -> Vec<PathBuf> {
    words.iter().map(PathBuf::from).collect()
}

/// Compiles and links with musl, as `musl-gcc` does; `arguments` are options, sources, archives.
///
/// # Errors
/// The program does not build.
pub fn compile_with_musl(
    musl: &setup::Musl,
    kind: MuslKind,
    arguments: &[PathBuf],
    program: &Path,
) -> Result<()> {
    let [start, begin, end] = kind.frame;
    let mut cc = Command::new("cc");
    cc.args([kind.option, "-nostdinc", "-isystem"])
        .arg(&musl.headers)
        .arg("-isystem")
        .arg(compilers_file("include")?)
        .args(["-nostdlib", "-o"])
        .arg(program)
        .args([start, "crti.o"].map(|file| musl.library.join(file)))
        .arg(compilers_file(begin)?)
        .args(arguments)
        .arg("-L")
        .arg(&musl.library)
        .args(["-Wl,--start-group", "-lc", "-lgcc", "-lgcc_eh", "-Wl,--end-group"])
        .arg(compilers_file(end)?)
        .arg(musl.library.join("crtn.o"));
    let name = program.file_name().unwrap_or_default().display();
    compiler::run(&format!("Compiling {name}"), &mut cc)
}

/// The path of one of the system compiler's own files.
fn compilers_file(name: &str) -> Result<PathBuf> {
    let mut cc = Command::new("cc");
    let output = process::output(cc.arg(format!("-print-file-name={name}"))).map_err(|error| {
        Failure::new(ExitStatus::BuildFailed, format!("cannot run cc: {error}"))
    })?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Builds the program that uses Rust's standard library, as the compiler ships it, into a static
/// position-independent executable.
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
    compiler::run("Building the program with Rust's standard library", &mut build)?;
    let built = folder.join(PROGRAMS.target).join("release").join(RUST);
    let program = project.target.join(BUILT).join(RUST);
    fs::copy(&built, &program).map_err(|error| Failure::io("write", &program, &error))?;
    Ok(program)
}
