//! Files created or changed by programs are returned to the host, as the same programs would leave
//! them on the host.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

use xtask::{
    machine::{Outcome, Pmu, Request, prepare_files},
    ramdisk::{self, CORPUS},
};

use crate::{artefacts, assert_success, boot, on_host};

/// Creates a new folder of this process.
fn fresh(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tally-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    prepare_files(&folder).unwrap();
    folder
}

/// Entries below a folder, by path: a folder, a link's target, or a file's content with its number
/// of names.
fn tree(root: &Path) -> BTreeMap<PathBuf, (&'static str, Vec<u8>, u64)> {
    let (mut folders, mut found) = (vec![root.to_owned()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let what = if metadata.is_dir() {
                folders.push(path.clone());
                ("folder", Vec::new(), 1)
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                ("link", target.into_os_string().into_encoded_bytes(), 1)
            } else {
                ("file", fs::read(&path).unwrap(), metadata.nlink())
            };
            found.insert(path.strip_prefix(root).unwrap().to_owned(), what);
        }
    }
    found
}

/// Calls of `leaves` whose files are compared.
const CALLS: [&[&str]; 2] = [&[], &[CORPUS]];

/// Entries that the same calls of the same program leave on the host.
fn expected() -> BTreeMap<PathBuf, (&'static str, Vec<u8>, u64)> {
    let (folder, artefacts) = (fresh("here"), artefacts());
    let mut programs = artefacts.on_demand.iter();
    let program = programs.find(|path| path.ends_with("leaves")).unwrap();
    let corpus = ramdisk::file(&artefacts.boot.ramdisk, CORPUS).unwrap();
    fs::write(folder.join(CORPUS), corpus).unwrap();
    for words in CALLS {
        let ended = on_host(Command::new(program).args(words).current_dir(&folder));
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    }
    let found = tree(&folder);
    fs::remove_dir_all(folder).unwrap();
    found
}

fn check(options: &str, pmu: Pmu, cpus: usize) {
    let programs = CALLS.map(|words| [&["leaves"], words].concat().join(" ")).join(" -- ");
    let request = Request::new(format!("wire send-files {options} -- {programs}"));
    let boot = boot(&Request { pmu, cpus, memory_mib: Some(384), ..request });
    assert_success(&boot);
    let folder = fresh(&format!("there-{cpus}"));
    boot.write_files(&folder).unwrap_or_else(|failure| panic!("{failure}"));
    let (here, there) = (expected(), tree(&folder));
    // The contents are too long to print and are left out.
    let names = |tree: &BTreeMap<PathBuf, (&'static str, Vec<u8>, u64)>| {
        tree.iter().map(|(path, (kind, ..))| (path.clone(), *kind)).collect::<Vec<_>>()
    };
    assert_eq!(names(&here), names(&there));
    for (path, expected) in &here {
        assert!(there[path] == *expected, "{} differs", path.display());
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn files_folders_and_links_come_back_with_their_bytes() {
    check("", Pmu::Intel, 1);
}

#[test]
fn files_come_back_beside_a_trace_and_from_two_cpus() {
    check("trace", Pmu::Amd, 2);
}

#[test]
fn files_of_a_program_that_crashed_come_back() {
    let boot = boot(&Request::new("wire send-files -- crash read-null -- leaves corpus.txt"));
    assert!(matches!(boot.outcome, Outcome::Faulted { .. }), "{}", boot.outcome);
    let folder = fresh("crashed");
    boot.write_files(&folder).unwrap();
    assert_eq!(fs::read_to_string(folder.join("shared")).unwrap(), CORPUS);
    assert_eq!(tree(&folder).len(), 2);
    fs::remove_dir_all(folder).unwrap();
}
