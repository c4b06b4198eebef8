//! Runs Debian's apt with its own lists, state and cache, so that nothing on the system changes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    process::{self, Child},
    project::{make_folder, write},
};

/// The mirror if the machine has none configured.
const DEFAULT_MIRROR: &str = "http://deb.debian.org/debian";
/// The suites that packages come from.
const SUITES: &str = "trixie trixie-backports";
/// The keys that Debian's lists are signed with.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// An apt with its own state and current lists.
#[derive(Debug)]
pub(super) struct Apt {
    folder: PathBuf,
    /// The preferred suite.
    suite: String,
}

impl Apt {
    /// Creates the state in `folder` and fetches the lists of packages.
    pub(super) fn prepare(folder: &Path) -> Result<Apt> {
        Apt::prepare_for(folder, SUITES)
    }

    /// Creates the state for other suites.
    pub(super) fn prepare_for(folder: &Path, suites: &str) -> Result<Apt> {
        Apt::prepare_kind(folder, "deb", suites)
    }

    /// Creates the state for source packages of a suite.
    pub(super) fn prepare_sources(folder: &Path, suite: &str) -> Result<Apt> {
        Apt::prepare_kind(folder, "deb-src", suite)
    }

    fn prepare_kind(folder: &Path, kind: &str, suites: &str) -> Result<Apt> {
        if !Path::new(KEYRING).is_file() {
            return Err(Failure::new(
                ExitStatus::HostError,
                "this system lacks Debian's package tools or its archive keyring",
            ));
        }
        for inner in ["state/lists/partial", "cache/archives/partial"] {
            make_folder(&folder.join(inner))?;
        }
        write(&folder.join("state/status"), b"")?;
        let sources = format!(
            "Types: {kind}\nURIs: {}\nSuites: {suites}\nComponents: main\nArchitectures: amd64\n\
             Signed-By: {KEYRING}\n",
            mirror()
        );
        write(&folder.join("tally.sources"), sources.as_bytes())?;
        let last = suites.split(' ').next_back().unwrap_or(suites).to_owned();
        let apt = Apt { folder: folder.to_owned(), suite: last };
        apt.get(&["update"], folder)?;
        Ok(apt)
    }

    /// Downloads `package` without its dependencies into `into` and returns the file.
    pub(super) fn download(&self, package: &str, into: &Path) -> Result<PathBuf> {
        self.download_each(&[package], into)?.pop().ok_or_else(|| {
            Failure::new(ExitStatus::HostError, format!("apt-get downloaded no file for {package}"))
        })
    }

    /// Downloads `packages` without their dependencies into `into` and returns the files there.
    pub(super) fn download_each(&self, packages: &[&str], into: &Path) -> Result<Vec<PathBuf>> {
        self.get(&[&["download"], packages].concat(), into)?;
        archives(into)
    }

    /// Downloads `packages` with all dependencies and returns the files.
    pub(super) fn download_all(&self, packages: &[&str]) -> Result<Vec<PathBuf>> {
        let mut arguments = vec!["install", "--download-only", "-t", &self.suite];
        arguments.extend(packages);
        self.get(&arguments, &self.folder)?;
        archives(&self.folder.join("cache/archives"))
    }

    /// Downloads the files of the source package `package` into `into`.
    pub(super) fn download_source(&self, package: &str, into: &Path) -> Result<()> {
        self.get(&["source", "--download-only", package], into)
    }

    /// The first package that `package` depends on.
    pub(super) fn dependency(&self, package: &str) -> Result<String> {
        let mut depends = self.command("apt-cache", &self.folder);
        let output = process::output(depends.args(["depends", package]))
            .map_err(|error| Failure::new(ExitStatus::HostError, format!("apt-cache: {error}")))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let first = said.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
        first.map(str::to_owned).ok_or_else(|| {
            Failure::new(ExitStatus::HostError, format!("the archive has no package {package}"))
        })
    }

    fn get(&self, arguments: &[&str], folder: &Path) -> Result<()> {
        succeed(self.command("apt-get", folder).args(["-q", "-y"]).args(arguments))
    }

    /// Makes a call of one of apt's programs with this state.
    fn command(&self, program: &str, folder: &Path) -> Command {
        let own = |name: &str, value: &str| format!("{name}={}/{value}", self.folder.display());
        let mut command = Command::new(program);
        command.env("LC_ALL", "C").current_dir(folder);
        for option in [
            own("Dir::State", "state"),
            own("Dir::State::status", "state/status"),
            own("Dir::Cache", "cache"),
            own("Dir::Etc::sourcelist", "tally.sources"),
            own("Dir::Etc::sourceparts", "none"),
            own("Dir::Etc::preferences", "none"),
            own("Dir::Etc::preferencesparts", "none"),
            "APT::Architecture=amd64".into(),
            "APT::Sandbox::User=".into(),
            "APT::Install-Recommends=0".into(),
            "APT::Update::Error-Mode=any".into(),
            "Acquire::Languages=none".into(),
            "Acquire::Retries=2".into(),
            "Acquire::http::Timeout=30".into(),
            "Acquire::https::Timeout=30".into(),
        ] {
            command.arg("-o").arg(option);
        }
        command
    }
}

/// Runs `command` without output; apt's error line becomes the failure's message.
pub(super) fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let refused = |why: String| Failure::new(ExitStatus::HostError, format!("{name}: {why}"));
    let mut child = Child::spawn(command.stdout(Stdio::null()).stderr(Stdio::piped()))
        .map_err(|error| refused(error.to_string()))?;
    let stderr = child.take_stderr().expect("standard error is a pipe");
    let said = std::io::read_to_string(stderr).map_err(|error| refused(error.to_string()))?;
    let status = child.wait().map_err(|error| refused(error.to_string()))?;
    if status.success() {
        return Ok(());
    }
    if said.contains("No space left on device") || said.contains("enough free space") {
        return Err(Failure::new(ExitStatus::NoSpace, format!("{name}: the disk is full")));
    }
    let complaint = said.lines().find(|line| line.starts_with("E:")).or(said.lines().last());
    Err(refused(complaint.map_or_else(|| status.to_string(), str::to_owned)))
}

fn archives(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| Failure::io("read", folder, &error))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "deb"));
    files.sort();
    Ok(files)
}

/// The Debian mirror that this machine has configured.
fn mirror() -> String {
    let format = ["--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"];
    let listed = process::output(Command::new("apt-get").arg("indextargets").args(format))
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    mirror_among(&listed).unwrap_or(DEFAULT_MIRROR).to_owned()
}

/// The first Debian archive among the listed ones; security archives have other suites.
fn mirror_among(listed: &str) -> Option<&str> {
    let archives = listed.lines().filter_map(|line| line.split_once(' '));
    let uris = archives.map(|(_, uri)| uri.trim_end_matches('/'));
    uris.into_iter().find(|uri| uri.ends_with("/debian"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_mirror_is_used() {
        let listed = "Debian http://x/debian-security/\n http://y/debian/\nDebian http://z/debian/";
        assert_eq!(mirror_among(listed), Some("http://y/debian"));
        assert_eq!(mirror_among("Ubuntu http://x/ubuntu/"), None);
    }

    #[test]
    fn the_error_line_is_the_message() {
        let said = succeed(Command::new("sh").args(["-c", "echo E: why >&2; echo x >&2; exit 3"]));
        assert_eq!(said.unwrap_err().message, "sh: E: why");
        let full = "echo No space left on device >&2; exit 1";
        let said = succeed(Command::new("sh").args(["-c", full]));
        assert_eq!(said.unwrap_err().status, ExitStatus::NoSpace);
    }
}
