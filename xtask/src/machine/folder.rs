//! The folder in which a boot leaves its log, its messages and the truth.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    Result,
    project::{self, Project},
};

/// Folders of runs that were kept.
const KEPT: usize = 20;

/// A boot's own folder, removed when dropped unless it was kept.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    kept: bool,
}

impl Folder {
    /// A new one.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(project: &Project) -> Result<Folder> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Relaxed: all that counts is that no two in this process are the same.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{:013}-{}-{count}", since.as_millis(), std::process::id());
        let path = project.private().join("run").join(name);
        project::make_folder(&path)?;
        Ok(Folder { path, kept: false })
    }

    /// Leaves the folder there for people to look at, and gives its path.
    pub fn keep(&mut self) -> &Path {
        self.kept = true;
        &self.path
    }

    /// A file of another name.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The kernel's log (COM1).
    pub fn log(&self) -> PathBuf {
        self.path.join("log.txt")
    }

    /// The kernel's messages (COM2).
    pub fn wire(&self) -> PathBuf {
        self.path.join("wire.bin")
    }

    /// The trace that the kernel sends while it runs.
    pub fn trace(&self) -> PathBuf {
        self.path.join("trace.bin")
    }

    /// What the virtual PMU saw.
    pub fn truth(&self) -> PathBuf {
        self.path.join("truth.json")
    }

    /// The same over time.
    pub fn series(&self) -> PathBuf {
        self.path.join("series.csv")
    }

    /// What QEMU complained of.
    pub fn errors(&self) -> PathBuf {
        self.path.join("qemu.txt")
    }

    /// Whether the machine has not said a byte yet.
    pub(super) fn is_log_empty(&self) -> bool {
        fs::metadata(self.log()).map_or(true, |metadata| metadata.len() == 0)
    }

    /// The last `count` lines of the log, without what only a terminal understands.
    pub fn log_tail(&self, count: usize) -> String {
        let bytes = fs::read(self.log()).unwrap_or_default();
        tail(&String::from_utf8_lossy(&bytes), count)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            // Nothing depends on its being gone.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes all but the newest of the folders that were kept.
pub fn keep_newest(project: &Project) {
    let Ok(entries) = fs::read_dir(project.private().join("run")) else { return };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    for old in folders.iter().rev().skip(KEPT) {
        // The next run tries again.
        let _ = fs::remove_dir_all(old);
    }
}

fn tail(text: &str, count: usize) -> String {
    let mut plain = String::new();
    let mut escape = false;
    for c in text.chars() {
        match c {
            '\x1b' => escape = true,
            _ if escape => escape = !(c.is_ascii_alphabetic()),
            '\n' | ' '.. => plain.push(c),
            _ => {}
        }
    }
    let lines: Vec<&str> = plain.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_plain() {
        assert_eq!(tail("\x1b[2J\x1b[01;01Ha\r\nb\n\nc\n", 2), "b\nc");
        assert_eq!(tail("", 2), "");
    }
}
