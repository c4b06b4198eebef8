//! The folder of a boot: log, messages, truth.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{CWD, Mode},
    io::Errno,
    process::Pid,
};

use crate::{
    Failure, Result, output,
    project::{self, Project},
};

/// Number of kept folders.
const KEPT: usize = 20;

/// The folder of a boot. Dropping it removes the folder, unless it was kept or the thread panics,
/// as in a failed test.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    kept: bool,
}

impl Folder {
    /// Creates a new folder.
    ///
    /// # Errors
    /// The host refuses.
    pub fn make(project: &Project) -> Result<Folder> {
        Folder::make_in(&runs(project))
    }

    /// Creates a new folder inside another.
    ///
    /// # Errors
    /// The host refuses.
    pub fn make_in(parent: &Path) -> Result<Folder> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Relaxed: the numbers of one process only need to differ.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{:013}-{}-{count}", since.as_millis(), std::process::id());
        let path = parent.join(name);
        project::make_folder(&path)?;
        Ok(Folder { path, kept: false })
    }

    /// Keeps the folder and returns its path.
    pub fn keep(&mut self) -> &Path {
        self.kept = true;
        &self.path
    }

    /// The path of a file with this name.
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

    /// The host's requests to the kernel (COM2).
    pub fn requests(&self) -> PathBuf {
        self.path.join("requests")
    }

    /// Makes the pipe for the host's requests. While it is open here, QEMU can open it without
    /// waiting.
    ///
    /// # Errors
    /// The host refuses.
    pub(super) fn make_requests(&self) -> Result<File> {
        let path = self.requests();
        let failed = |error: io::Error| Failure::io("write", &path, &error);
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mkfifoat(CWD, &path, mode).map_err(|error| failed(error.into()))?;
        File::options().read(true).write(true).open(&path).map_err(failed)
    }

    /// The trace that the kernel sends through the trace port.
    pub fn trace(&self) -> PathBuf {
        self.path.join("trace.bin")
    }

    /// The contents of the files that the kernel sends.
    pub fn files(&self) -> PathBuf {
        self.path.join("files.bin")
    }

    /// The truth.
    pub fn truth(&self) -> PathBuf {
        self.path.join("truth.json")
    }

    /// The truth over time.
    pub fn series(&self) -> PathBuf {
        self.path.join("series.csv")
    }

    /// QEMU's standard error.
    pub fn errors(&self) -> PathBuf {
        self.path.join("qemu.txt")
    }

    /// Returns whether the log has no byte yet.
    pub(super) fn is_log_empty(&self) -> bool {
        fs::metadata(self.log()).map_or(true, |metadata| metadata.len() == 0)
    }

    /// The last `count` lines of the log, without terminal control sequences.
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
            output::note(format_args!("xtask: {name} failed; log, messages and truth: {path}"));
            self.path.parent().into_iter().for_each(keep_newest_in);
        } else {
            // An error is harmless.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Returns whether the process that created the folder still runs: the process or its machine may
/// use the folder.
fn is_in_use(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let pid = name.split('-').nth(1).and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    // Another user's process refuses the signal, but exists.
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}

/// Removes kept folders except the newest and those of running processes.
pub fn keep_newest(project: &Project) {
    keep_newest_in(&runs(project));
}

/// The folder that contains the boots' folders.
fn runs(project: &Project) -> PathBuf {
    project.private().join("run")
}

fn keep_newest_in(runs: &Path) {
    let Ok(entries) = fs::read_dir(runs) else { return };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    for old in folders.iter().rev().skip(KEPT).filter(|folder| !is_in_use(folder)) {
        // After an error the next run tries again.
        let _ = fs::remove_dir_all(old);
    }
}

/// The last `count` lines of `text`, without empty ones and without terminal control sequences.
pub(crate) fn tail(text: &str, count: usize) -> String {
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
    fn old_folders_are_removed_except_those_in_use() {
        let root = std::env::temp_dir().join(format!("xtask-newest-{}", std::process::id()));
        let project = Project { target: root.join("target"), root: root.clone() };
        let runs = project.private().join("run");
        // No process has such a high number.
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
    fn a_folder_is_kept_only_on_a_panic() {
        let root = std::env::temp_dir().join(format!("xtask-panic-{}", std::process::id()));
        let project = Project { target: root.join("target"), root: root.clone() };
        let dropped = Folder::make(&project).unwrap();
        let path = dropped.path.clone();
        drop(dropped);
        assert!(!path.exists());
        let folder = Folder::make(&project).unwrap();
        let path = folder.path.clone();
        let failed = std::panic::catch_unwind(move || {
            assert!(folder.log().exists(), "a failing test");
        });
        assert!(failed.is_err() && path.exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_tail_has_no_control_sequences() {
        assert_eq!(tail("\x1b[2J\x1b[01;01Ha\r\nb\n\nc\n", 2), "b\nc");
        assert_eq!(tail("", 2), "");
    }
}
