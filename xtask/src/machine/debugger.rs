//! gdb for the kernel: the socket of QEMU's gdb stub, and the gdb command that connects to it.
//!
//! With [`super::Request::gdb`] the machine waits at its first instruction for gdb. The boot loader
//! maps the kernel at [`KERNEL_BASE`], so gdb can load its symbols before the kernel is in memory.

use std::{
    env,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::atomic::{AtomicU32, Ordering},
};

use tally_abi::boot::KERNEL_BASE;

use crate::project::Project;

/// An unused path for the stub's socket, short enough for a socket.
pub fn gdb_socket() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: only the numbers have to differ.
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    env::temp_dir().join(format!("tally-gdb-{}-{count}", process::id()))
}

/// The gdb command that connects to `socket`, loads the kernel's symbols and runs the machine up to
/// the kernel's entry. The breakpoint is a hardware one, because the kernel's pages are not mapped
/// yet.
pub fn gdb(symbols: &Path, socket: &Path) -> Command {
    let mut gdb = Command::new("gdb");
    // The symbols' paths are relative to the project.
    gdb.arg("--directory").arg(Project::here().root);
    for step in [
        format!("symbol-file -o {KERNEL_BASE:#x} {}", symbols.display()),
        format!("target remote {}", socket.display()),
        "thbreak *_start".to_owned(),
        "continue".to_owned(),
    ] {
        gdb.args(["-ex", &step]);
    }
    gdb
}

/// A command, quoted for a shell.
pub fn in_shell(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let quoted = words.map(|word| {
        let word = word.to_string_lossy();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if word.chars().all(is_plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_can_be_pasted_into_a_shell() {
        let line = in_shell(&gdb(Path::new("/a b/kernel"), Path::new("/tmp/s")));
        let sources = in_shell(Command::new("--directory").arg(Project::here().root));
        assert_eq!(
            line,
            format!(
                "gdb {sources} -ex 'symbol-file -o 0xffff800000000000 /a b/kernel' \
                 -ex 'target remote /tmp/s' -ex 'thbreak *_start' -ex continue"
            )
        );
        assert_eq!(in_shell(Command::new("echo").arg("it's")), "echo 'it'\\''s'");
        assert_ne!(gdb_socket(), gdb_socket());
    }
}
