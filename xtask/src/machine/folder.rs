//! The folder in which a boot leaves its log, its messages and the truth.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{io::Errno, process::Pid};

use crate::{
    Result, output,
    project::{self, Project},
};

/// Folders of runs that were kept.
const KEPT: usize = 20;

/// A boot's own folder, removed when dropped unless it was kept, or the thread panics: then the assertion that
/// failed is explained by what lies in it.
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
        let path = runs(project).join(name);
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
        if self.kept {
            return;
        }
        if thread::panicking() {
            let thread = thread::current();
            let (name, path) = (thread.name().unwrap_or("a thread"), self.path.display());
            output::note(format_args!(
                "xtask: {name} failed; the log, the messages and the truth are in {path}"
            ));
            self.path.parent().into_iter().for_each(keep_newest_in);
        } else {
            // Nothing depends on its being gone.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Whether the process that made the folder still runs: it may look at it yet, and so may its
/// machine.
fn is_in_use(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let pid = name.split('-').nth(1).and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    // One of another user's is there too, and refuses.
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}

/// Removes all but the newest of the folders that were kept, and those of processes that still run.
pub fn keep_newest(project: &Project) {
    keep_newest_in(&runs(project));
}

/// Where the folders are.
fn runs(project: &Project) -> PathBuf {
    project.private().join("run")
}

fn keep_newest_in(runs: &Path) {
    let Ok(entries) = fs::read_dir(runs) else { return };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    for old in folders.iter().rev().skip(KEPT).filter(|folder| !is_in_use(folder)) {
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
    fn old_folders_go_but_those_in_use() {
        let root = std::env::temp_dir().join(format!("xtask-newest-{}", std::process::id()));
        let project = Project { target: root.join("target"), root: root.clone() };
        let runs = project.private().join("run");
        // The system gives no process so high a number.
        let names = |pid: u32| (0..2).map(move |age| format!("{age:013}-{pid}-0"));
        let old: Vec<String> = names(i32::MAX as u32).chain(names(std::process::id())).collect();
        let new = (0..KEPT).map(|age| format!("{:013}-{}-0", 100 + age, i32::MAX));
        for name in old.iter().cloned().chain(new) {
            project::make_folder(&runs.join(name)).unwrap();
        }
        keep_newest(&project);
        let left = old.iter().map(|name| runs.join(name).exists()).collect::<Vec<_>>();
        assert_eq!(left, [false, false, true, true]);
        assert_eq!(fs::read_dir(&runs).unwrap().count(), KEPT + 2);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_folder_outlives_a_panic_and_nothing_else() {
        let root = std::env::temp_dir().join(format!("xtask-panic-{}", std::process::id()));
        let project = Project { target: root.join("target"), root: root.clone() };
        let dropped = Folder::make(&project).unwrap();
        let path = dropped.path.clone();
        drop(dropped);
        assert!(!path.exists());
        let folder = Folder::make(&project).unwrap();
        let path = folder.path.clone();
        let failed = std::panic::catch_unwind(move || {
            assert!(folder.log().exists(), "as a test fails whose machine wrote no log");
        });
        assert!(failed.is_err() && path.exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_tail_is_plain() {
        assert_eq!(tail("\x1b[2J\x1b[01;01Ha\r\nb\n\nc\n", 2), "b\nc");
        assert_eq!(tail("", 2), "");
    }
}
