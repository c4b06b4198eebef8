//! Finds or fetches QEMU with plugins, and UEFI firmware.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde::{Deserialize, Serialize};
use tally_abi::ExitStatus;

use super::{
    apt::{self, Apt},
    install::{check_space, clear, install},
};
use crate::{
    Failure, Result, process,
    progress::Step,
    project::{self, Project},
};

/// The oldest version whose plugin interface the virtual PMU can use.
const OLDEST: (u32, u32) = (11, 1);
/// The packages; if the archive lacks one of these versions, the newest are fetched.
const PINNED: [&str; 2] = ["qemu-system-x86=1:11.1.3+ds-1~bpo13+1", "ovmf=2025.02-8+deb13u1"];
/// Size of the packages and their contents.
const NEEDED_MB: u64 = 300;
/// Paths of the firmware on common systems.
const FIRMWARE: [&str; 7] = [
    "/usr/share/OVMF/OVMF_CODE_4M.fd",
    "/usr/share/OVMF/OVMF_CODE.fd",
    "/usr/share/edk2/x64/OVMF_CODE.4m.fd",
    "/usr/share/edk2/ovmf/OVMF_CODE.fd",
    "/usr/share/edk2-ovmf/x64/OVMF_CODE.fd",
    "/usr/share/qemu/edk2-x86_64-code.fd",
    "/usr/local/share/qemu/edk2-x86_64-code.fd",
];

/// The call of QEMU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Qemu {
    /// The program and its first arguments.
    pub argv: Vec<PathBuf>,
    /// The firmware's code image.
    pub firmware: PathBuf,
}

impl Qemu {
    /// Makes a command with these first arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]);
        command
    }

    /// Path and version, as text.
    pub fn describe(&self) -> String {
        let name = "qemu-system-x86_64";
        let program = self.argv.iter().find(|part| part.ends_with(name)).unwrap_or(&self.argv[0]);
        match version(&mut self.command()) {
            Some((major, minor)) => format!("{} (version {major}.{minor})", program.display()),
            None => program.display().to_string(),
        }
    }

    /// The packages unpacked under `folder`, with their own dynamic linker and libraries.
    fn unpacked(folder: &Path) -> Qemu {
        let part = |path: &str| folder.join(path);
        Qemu {
            argv: vec![
                part("usr/lib64/ld-linux-x86-64.so.2"),
                "--library-path".into(),
                part("usr/lib/x86_64-linux-gnu"),
                part("usr/bin/qemu-system-x86_64"),
                "-L".into(),
                part("usr/share/qemu"),
                "-L".into(),
                part("usr/share/seabios"),
            ],
            firmware: part("usr/share/OVMF/OVMF_CODE_4M.fd"),
        }
    }
}

/// The system's QEMU if it is usable, else the project's own.
pub(super) fn find_or_fetch(project: &Project) -> Result<Qemu> {
    let system = system();
    if let Ok(qemu) = system {
        return Ok(qemu);
    }
    let place = project.private().join("qemu");
    let qemu = Qemu::unpacked(&place);
    if !place.exists() {
        fetch(project, &place).map_err(|error| unavailable(&system, error))?;
    }
    match version(&mut qemu.command()) {
        Some(found) if found >= OLDEST && qemu.firmware.is_file() => Ok(qemu),
        _ => Err(Failure::new(
            ExitStatus::QemuUnavailable,
            format!(
                "{} does not run: remove the folder and run the command again",
                place.display()
            ),
        )),
    }
}

fn unavailable(system: &std::result::Result<Qemu, String>, error: Failure) -> Failure {
    if error.status == ExitStatus::NoSpace {
        return error;
    }
    let system = system.as_ref().err().map_or("", String::as_str);
    Failure::new(
        ExitStatus::QemuUnavailable,
        format!(
            "{system}, and QEMU {}.{} could not be fetched ({error}); connect to the network and \
             run the command again, or install QEMU {}.{} or later with plugins, and OVMF",
            OLDEST.0, OLDEST.1, OLDEST.0, OLDEST.1
        ),
    )
}

/// The system's QEMU, or the reason why it is not usable.
fn system() -> std::result::Result<Qemu, String> {
    let name = "qemu-system-x86_64";
    let found = version(&mut Command::new(name)).ok_or("this machine has no QEMU")?;
    if found < OLDEST {
        return Err(format!("this machine's QEMU {}.{} is too old", found.0, found.1));
    }
    let help = process::output(Command::new(name).arg("--help"));
    let help = help.map_err(|error| error.to_string())?;
    if !String::from_utf8_lossy(&help.stdout).contains("-plugin ") {
        return Err("this machine's QEMU was built without plugins".into());
    }
    let firmware = FIRMWARE.iter().map(PathBuf::from).find(|path| path.is_file());
    let firmware = firmware.ok_or("this machine has no OVMF firmware")?;
    Ok(Qemu { argv: vec![name.into()], firmware })
}

fn version(qemu: &mut Command) -> Option<(u32, u32)> {
    let output = process::output(qemu.arg("--version")).ok()?;
    parse_version(&String::from_utf8_lossy(&output.stdout))
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("QEMU emulator version ")?.split(['.', ' ', '\n', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn fetch(project: &Project, place: &Path) -> Result<()> {
    check_space(&project.private(), NEEDED_MB, "QEMU and its firmware")?;
    let step = Step::start("Downloading QEMU 11.1 and OVMF (42 MB)");
    install(project, place, |fresh| {
        let archives = fresh.join("apt");
        let apt = Apt::prepare(&archives)?;
        let newest = PINNED.map(|package| package.split('=').next().unwrap_or(package));
        let files = match apt.download_all(&PINNED) {
            Err(error) if error.status != ExitStatus::NoSpace => apt.download_all(&newest)?,
            files => files?,
        };
        let mut names = String::new();
        for file in &files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            step.at(&format!("unpacking {name}"));
            apt::succeed(Command::new("dpkg-deb").arg("-x").arg(file).arg(fresh))?;
            names.push_str(&name);
            names.push('\n');
        }
        project::write(&fresh.join("PACKAGES"), names.as_bytes())?;
        clear(&archives)
    })?;
    step.done();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let debian = "QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1~bpo13+1)\nCopyright";
        assert_eq!(parse_version(debian), Some((11, 1)));
        assert_eq!(parse_version("QEMU emulator version 7.2\n"), Some((7, 2)));
        assert_eq!(parse_version("bash: not found"), None);
    }
}
