//! Comparison of a machine with the build machine: commands run in one folder of each.

use std::{fmt, fs, path::Path, time::Duration};

use tally_abi::words::escape;
use xtask::{
    Failure, Result,
    build::programs::list::Listed,
    guest_files::GuestFile,
    machine::{self, Artefacts, Boot, Folder, Outcome, Pmu, Request},
    project::{self, Project},
    ramdisk,
};

use super::here::{self, Ended, Node, Tree};
use super::host;

/// The guest that runs the commands one after another.
const SEQUENCE: &str = "sequence";
/// The program number of that guest.
const FIRST: u32 = 1;
/// Maximum bytes of a line that a difference shows.
const SHOWN_BYTES: usize = 100;

/// Difference between a machine and the build machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Output of a command to descriptor 1 or 2.
    Output(String),
    /// Files that commands created or changed.
    Files(String),
    /// The status of a command.
    Status(String),
    /// Failure of the machine.
    Machine(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Output(text) => write!(f, "output: {text}"),
            Difference::Files(text) => write!(f, "files: {text}"),
            Difference::Status(text) => write!(f, "status: {text}"),
            Difference::Machine(text) => write!(f, "machine: {text}"),
        }
    }
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The differences.
    pub differences: Vec<Difference>,
    /// System calls that the kernel refused, with the program's name.
    pub refused_calls: Vec<String>,
}

/// Runs the commands of `programs` one after another in one folder, under Tally and on the build
/// machine. `artefacts` have the programs and their inputs on demand.
///
/// # Errors
/// A program cannot be run on the build machine, or QEMU cannot be started. A machine that fails is
/// a difference.
pub fn compare(
    artefacts: &Artefacts,
    environment: &[String],
    programs: &[&Listed],
    pmu: Pmu,
    time_limit: Duration,
) -> Result<Comparison> {
    let commands: Vec<&Vec<String>> = programs.iter().flat_map(|program| &program.run).collect();
    let jit = programs.iter().any(|program| program.jit);
    let line = command_line(environment, jit, &commands);
    let request = Request { pmu, time_limit, ..Request::new(line) };
    let folder = Folder::make(&Project::here())?;
    let artefacts = &host::with_programs(artefacts, programs, &folder)?;
    let mut boot = machine::boot(artefacts, &request, &mut |_| {})?;
    let here = boot.folder.file("here");
    let (ran, before) = run_here(artefacts, environment, &commands, &here)?;
    let mut differences = Vec::new();
    if let Some(failed) = failure_of(&boot.outcome) {
        differences.push(Difference::Machine(failed));
    } else {
        let there = there(&boot);
        for (index, (words, here)) in commands.iter().zip(ran).enumerate() {
            let there = there.get(index).cloned().unwrap_or_default();
            differences.extend(differences_of(words, &there, &here));
        }
        let there = boot.folder.file("there");
        machine::prepare_files(&there)?;
        boot.write_files(&there)?;
        let [there, here] = [there, here].map(|folder| changed(&folder, &before));
        differences.extend(differences_of_files(&there?, &here?));
    }
    if !differences.is_empty() {
        boot.folder.keep();
    }
    let refused = boot.transcript.refused_calls.iter();
    let refused_calls = refused.map(|(program, calls)| format!("{program}: {calls}")).collect();
    Ok(Comparison { differences, refused_calls })
}

/// The kernel's command line that runs commands one after another, and sends their files; with
/// `jit`, memory may be writable and executable at once.
pub(in crate::study) fn command_line(
    environment: &[String],
    jit: bool,
    commands: &[&Vec<String>],
) -> String {
    let mut line = format!("wire send-files --{}", if jit { " jit=yes" } else { "" });
    environment.iter().for_each(|variable| line += &format!(" env={}", escape(variable)));
    for (index, words) in commands.iter().enumerate() {
        line += if index == 0 { " sequence" } else { " ;" };
        words.iter().for_each(|word| line += &format!(" {}", escape(word)));
    }
    line
}

/// Runs the commands on the build machine, in a new folder with the content of the ramdisk. Returns
/// their results, and the folder's content before.
fn run_here(
    artefacts: &Artefacts,
    environment: &[String],
    commands: &[&Vec<String>],
    folder: &Path,
) -> Result<(Vec<Ended>, Tree)> {
    project::make_folder(folder)?;
    let words: Vec<&str> = commands.iter().flat_map(|words| words.iter()).map(|w| &**w).collect();
    for path in artefacts.named(&words) {
        let own = folder.join(GuestFile::by_name(&path).guest);
        fs::copy(&path, own).map_err(|error| Failure::io("copy", &path, &error))?;
    }
    let corpus = ramdisk::file(&artefacts.boot.ramdisk, ramdisk::CORPUS)?;
    project::write(&folder.join(ramdisk::CORPUS), &corpus)?;
    let before = here::tree(folder)?;
    let ran = commands.iter().map(|words| here::run(words, environment, folder));
    Ok((ran.collect::<Result<Vec<_>>>()?, before))
}

/// The machine's failure, unless every program ended by itself or by a signal.
pub(in crate::study) fn failure_of(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Done(_) | Outcome::Faulted { .. } => None,
        // Such a program is a command of the sequence: its status differs.
        Outcome::Refused { program, .. } if program != SEQUENCE => None,
        failed => Some(failed.to_string()),
    }
}

/// The results of the commands under Tally, from the guest's lines `sequence: program NUMBER,
/// status STATUS: WORDS`.
pub(in crate::study) fn there(boot: &Boot) -> Vec<Ended> {
    let of = |pid: u32, fd: u8| -> Vec<u8> {
        let outputs = boot.transcript.output.iter();
        let own = outputs.filter(|output| output.pid == pid && output.fd == fd);
        own.flat_map(|output| output.bytes.iter().copied()).collect()
    };
    let lines = of(FIRST, 2);
    let ended = |line: &str| {
        let (program, status) = line.strip_prefix("sequence: ")?.split_once(", status ")?;
        // A command without a program has no output.
        let pid = program.strip_prefix("program ").and_then(|pid| pid.parse().ok());
        let output = pid.map_or_else(Default::default, |pid| [1, 2].map(|fd| of(pid, fd)));
        Some(Ended { output, status: status.split(':').next()?.parse().ok()? })
    };
    String::from_utf8_lossy(&lines).lines().filter_map(ended).collect()
}

fn differences_of(words: &[String], there: &Ended, here: &Ended) -> Vec<Difference> {
    let command = words.join(" ");
    let mut found = Vec::new();
    for (index, name) in ["output", "error output"].into_iter().enumerate() {
        let [there, here] = [there, here].map(|ended| &*ended.output[index]);
        if let Some(why) = first_difference(there, here) {
            found.push(Difference::Output(format!("{command}: {name}, {why}")));
        }
    }
    if there.status != here.status {
        let (there, here) = (there.status, here.status);
        found.push(Difference::Status(format!("{command}: {there}, here {here}")));
    }
    found
}

/// The first line that differs, with both texts.
fn first_difference(there: &[u8], here: &[u8]) -> Option<String> {
    if there == here {
        return None;
    }
    let lines = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.split('\n').map(str::to_owned).collect()
    };
    let (there, here) = (lines(there), lines(here));
    let same = there.iter().zip(&here).take_while(|(there, here)| there == here).count();
    let shown = |lines: &[String]| {
        let line = lines.get(same).map_or("no line", String::as_str);
        line.chars().take(SHOWN_BYTES).collect::<String>()
    };
    Some(format!("line {}: {:?}, here {:?}", same + 1, shown(&there), shown(&here)))
}

/// The paths in `folder` that are new or have changed since `before`.
fn changed(folder: &Path, before: &Tree) -> Result<Tree> {
    let mut tree = here::tree(folder)?;
    tree.retain(|path, node| before.get(path) != Some(node));
    Ok(tree)
}

fn differences_of_files(there: &Tree, here: &Tree) -> Vec<Difference> {
    let mut found = Vec::new();
    for path in here.keys().filter(|path| !there.contains_key(*path)) {
        found.push(format!("{}: not there", path.display()));
    }
    for (path, node) in there {
        let name = path.display();
        let why = match (node, here.get(path)) {
            (_, None) => format!("{name}: not here"),
            (node, Some(here)) if node == here => continue,
            (Node::File(there), Some(Node::File(here))) => {
                let (length, expected) = (there.len(), here.len());
                let same = there.iter().zip(here).take_while(|(there, here)| there == here);
                format!("{name}: {length} bytes, here {expected}, equal up to {}", same.count())
            }
            (node, Some(here)) => format!("{name}: {node:?}, here {here:?}"),
        };
        found.push(why);
    }
    found.into_iter().map(Difference::Files).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeMap, path::PathBuf};
    use tally_abi::boot::CommandLine;

    #[test]
    fn the_kernel_parses_the_commands() {
        let command = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let commands: [Vec<String>; 2] = [command(&["a", "b c"]), command(&["d"])];
        let text = command_line(&["A=x y".into()], false, &commands.each_ref());
        let line = CommandLine::parse(&text).unwrap();
        assert!(line.wire && line.send_files);
        let program = line.programs().next().unwrap().unwrap();
        assert_eq!(program.words.collect::<Vec<_>>(), [SEQUENCE, "a", "b\\sc", ";", "d"]);
        assert_eq!(program.environment.collect::<Vec<_>>(), ["A=x\\sy"]);
    }

    #[test]
    fn output_and_status_are_compared() {
        let ended = |text: &str, status| Ended {
            output: [text.as_bytes().to_vec(), b"error".to_vec()],
            status,
        };
        let words = ["prog".to_owned(), "x".to_owned()];
        assert_eq!(differences_of(&words, &ended("a\nb\n", 3), &ended("a\nb\n", 3)), []);
        let found = differences_of(&words, &ended("a\nb\n", 3), &ended("a\nc\n", 0));
        let line = r#"prog x: output, line 2: "b", here "c""#;
        let expected =
            [Difference::Output(line.into()), Difference::Status("prog x: 3, here 0".into())];
        assert_eq!(found, expected);
        let shorter = first_difference(b"a", b"a\nb").unwrap();
        assert_eq!(shorter, r#"line 2: "no line", here "b""#);
    }

    #[test]
    fn files_folders_and_links_are_compared() {
        let tree = |nodes: &[(&str, Node)]| -> Tree {
            nodes.iter().map(|(path, node)| (PathBuf::from(path), node.clone())).collect()
        };
        let file = |text: &str| Node::File(text.into());
        let here = tree(&[("a", file("one")), ("b", Node::Folder), ("c", file("x"))]);
        assert_eq!(differences_of_files(&here, &here), []);
        let there = tree(&[("a", file("on")), ("b", Node::Link("a".into())), ("d", file("x"))]);
        let found: Vec<String> =
            differences_of_files(&there, &here).iter().map(ToString::to_string).collect();
        let expected = [
            "files: c: not there",
            "files: a: 2 bytes, here 3, equal up to 2",
            r#"files: b: Link("a"), here Folder"#,
            "files: d: not here",
        ];
        assert_eq!(found, expected);
        assert_eq!(differences_of_files(&BTreeMap::new(), &BTreeMap::new()), []);
    }
}
