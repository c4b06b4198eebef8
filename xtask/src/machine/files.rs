//! The files that programs created or changed. The kernel sends them when all programs have ended.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufReader, Read},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use tally_abi::{ExitStatus, wire::Message};

use crate::{Failure, Result};

/// A message about the tree of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SentNode {
    /// Start of a folder, whose content follows.
    FolderBegins {
        /// Name of the folder; empty for the root.
        name: String,
        /// Whether a program made the folder.
        is_new: bool,
    },
    /// A file or a symbolic link.
    File {
        /// Name of the file.
        name: String,
        /// Number of the file. Names with the same number are the same file.
        number: u64,
        /// Whether it is a symbolic link.
        is_link: bool,
        /// Size of its content in bytes.
        bytes: u64,
    },
    /// End of the folder that was begun last and has not ended.
    FolderEnds,
}

impl SentNode {
    /// The node in a message, if the message has one.
    pub(super) fn of(message: &Message<'_>) -> Option<SentNode> {
        Some(match *message {
            Message::FolderBegins { name, is_new } => {
                SentNode::FolderBegins { name: name.into(), is_new }
            }
            Message::File { name, number, is_link, bytes } => {
                SentNode::File { name: name.into(), number, is_link, bytes }
            }
            Message::FolderEnds => SentNode::FolderEnds,
            _ => return None,
        })
    }
}

/// Makes the folder for the files of a run, before the run.
///
/// # Errors
/// The folder exists and is not empty, or the host refuses.
pub fn prepare(folder: &Path) -> Result<()> {
    let refused = |error: io::Error| Failure::io("make", folder, &error);
    fs::create_dir_all(folder).map_err(refused)?;
    if fs::read_dir(folder).map_err(refused)?.next().is_some() {
        let why = format!("{}: the folder is not empty: name a new one", folder.display());
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    Ok(())
}

/// Writes the files of `nodes`, whose contents are in the file `contents`, into the empty folder
/// `folder`.
///
/// # Errors
/// The kernel did not send all files, or the host refuses one.
pub(super) fn write(nodes: &[SentNode], contents: &Path, folder: &Path) -> Result<()> {
    let contents = File::open(contents).map_err(|error| Failure::io("read", contents, &error))?;
    let mut writer = Writer {
        contents: BufReader::new(contents),
        way: Vec::new(),
        made: 1,
        by_number: BTreeMap::new(),
    };
    for (index, node) in nodes.iter().enumerate() {
        match node {
            SentNode::FolderBegins { .. } if index == 0 => writer.way.push(folder.to_owned()),
            SentNode::FolderBegins { name, is_new } => {
                writer.way.push(writer.path(name)?);
                if *is_new {
                    writer.make_folders()?;
                }
            }
            SentNode::File { name, number, is_link, bytes } => {
                let path = writer.path(name)?;
                writer.make_folders()?;
                writer.add(path, *number, *is_link, *bytes)?;
            }
            SentNode::FolderEnds => {
                writer.way.pop();
                writer.made = writer.made.min(writer.way.len());
            }
        }
    }
    let is_complete = writer.way.is_empty() && !nodes.is_empty();
    is_complete.then_some(()).ok_or_else(incomplete)
}

fn incomplete() -> Failure {
    let why = "not all files of the programs came back: the machine did not send them";
    Failure::new(ExitStatus::MachineFailed, why)
}

struct Writer {
    contents: BufReader<File>,
    /// The folders from the root to the present one.
    way: Vec<PathBuf>,
    /// Number of these folders that exist.
    made: usize,
    /// Files that were written, by number.
    by_number: BTreeMap<u64, PathBuf>,
}

impl Writer {
    /// The path of a name in the last folder.
    fn path(&self, name: &str) -> Result<PathBuf> {
        let is_name = !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']);
        let folder = self.way.last().filter(|_| is_name).ok_or_else(incomplete)?;
        Ok(folder.join(name))
    }

    /// Makes the folders that do not exist yet.
    fn make_folders(&mut self) -> Result<()> {
        for folder in &self.way[self.made..] {
            fs::create_dir(folder).map_err(|error| Failure::io("make", folder, &error))?;
        }
        self.made = self.way.len();
        Ok(())
    }

    fn add(&mut self, path: PathBuf, number: u64, is_link: bool, bytes: u64) -> Result<()> {
        let failed = |error: io::Error| Failure::io("write", &path, &error);
        let mut content = self.contents.by_ref().take(bytes);
        let copied = if is_link {
            let mut target = String::new();
            content.read_to_string(&mut target).map_err(failed)?;
            symlink(&target, &path).map_err(failed)?;
            target.len() as u64
        } else if let Some(known) = self.by_number.get(&number) {
            fs::hard_link(known, &path).map_err(failed)?;
            io::copy(&mut content, &mut io::sink()).map_err(failed)?
        } else {
            let mut file = File::create_new(&path).map_err(failed)?;
            // Of a full disk no file is left with a part of its content.
            let copied = io::copy(&mut content, &mut file);
            copied.inspect_err(|_| drop(fs::remove_file(&path))).map_err(failed)?
        };
        self.by_number.entry(number).or_insert(path);
        if copied == bytes { Ok(()) } else { Err(incomplete()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(name: &str, is_new: bool) -> SentNode {
        SentNode::FolderBegins { name: name.into(), is_new }
    }

    fn file(name: &str, number: u64, is_link: bool, bytes: u64) -> SentNode {
        SentNode::File { name: name.into(), number, is_link, bytes }
    }

    #[test]
    fn folders_files_and_links_are_written() {
        let root = std::env::temp_dir().join(format!("xtask-files-{}", std::process::id()));
        let (out, contents) = (root.join("out"), root.join("contents"));
        prepare(&out).unwrap();
        fs::write(&contents, "onetwofileone").unwrap();
        let nodes = [
            begins("", false),
            begins("old", false),
            SentNode::FolderEnds,
            begins("old2", false),
            begins("new", true),
            SentNode::FolderEnds,
            file("file", 7, false, 3),
            file("two", 8, false, 3),
            SentNode::FolderEnds,
            file("link", 9, true, 4),
            file("same", 7, false, 3),
            SentNode::FolderEnds,
        ];
        write(&nodes, &contents, &out).unwrap();
        let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
        assert_eq!([read("old2/file"), read("old2/two")], ["one", "two"]);
        assert!(!out.join("old").exists() && out.join("old2/new").is_dir());
        assert_eq!(fs::read_link(out.join("link")).unwrap(), Path::new("file"));
        fs::write(out.join("same"), "changed").unwrap();
        assert_eq!(read("old2/file"), "changed");
        assert_eq!(prepare(&out).unwrap_err().status, ExitStatus::Usage);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn an_incomplete_tree_and_bad_names_are_refused() {
        let root = std::env::temp_dir().join(format!("xtask-bad-files-{}", std::process::id()));
        let contents = root.join("contents");
        for (index, nodes) in [
            &[][..],
            &[begins("", false)],
            &[begins("", false), file("a", 1, false, 9), SentNode::FolderEnds],
            &[begins("", false), file("../a", 1, false, 0), SentNode::FolderEnds],
            &[begins("", false), begins("..", true), SentNode::FolderEnds, SentNode::FolderEnds],
            &[file("a", 1, false, 0)],
        ]
        .into_iter()
        .enumerate()
        {
            let out = root.join(index.to_string());
            prepare(&out).unwrap();
            fs::write(&contents, "content").unwrap();
            let refused = write(nodes, &contents, &out).unwrap_err();
            assert_eq!(refused.status, ExitStatus::MachineFailed, "{index}");
        }
        fs::remove_dir_all(root).unwrap();
    }
}
