//! Determines a boot's outcome from the kernel's messages, the log and QEMU's standard error.

use std::{fs, path::Path, time::Duration};

use super::{folder::Folder, outcome::Outcome, reported::Panic, transcript::Transcript};
use crate::symbols::{StackFrame, Symbols};

/// Lines of the log that a message quotes.
const SHOWN_LINES: usize = 15;

/// End of the QEMU process, independent of the guest's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QemuEnd {
    ByItself,
    OutOfTime,
    /// Stop by the observer.
    Stopped,
}

/// The reason why the virtual PMU refused its options, if it did: QEMU ended before the machine
/// printed a byte.
pub(crate) fn refused_options(folder: &Folder) -> Option<String> {
    let errors = fs::read_to_string(folder.errors()).unwrap_or_default();
    let refused = errors.lines().find_map(|line| line.strip_prefix("tally-vpmu: "));
    refused.filter(|_| folder.is_log_empty()).map(|why| format!("virtual PMU: {why}"))
}

/// The error after which KVM has paused the machine, which then waits for ever: its emulator of
/// instructions cannot go on, or the processor refused to enter the guest.
pub(super) fn kvm_error(folder: &Folder) -> Option<String> {
    let errors = fs::read_to_string(folder.errors()).unwrap_or_default();
    let is_error = |line: &&str| {
        ["KVM internal error", "KVM: entry failed", "kvm run failed"]
            .iter()
            .any(|it| line.contains(it))
    };
    errors.lines().find(is_error).map(|line| line.trim().to_owned())
}

/// The outcome of a boot: decided by the kernel's last message, if it came.
pub(super) fn outcome(
    end: QemuEnd,
    transcript: &Transcript,
    limit: Duration,
    folder: &Folder,
    symbols: &Path,
) -> Outcome {
    if let Some(panic) = &transcript.panicked {
        return panicked(panic, symbols);
    }
    match (transcript.done, end) {
        (Some(status), QemuEnd::ByItself) => {
            transcript.failures.first().cloned().unwrap_or(Outcome::Done(status))
        }
        (_, QemuEnd::Stopped) => Outcome::Stopped,
        (_, QemuEnd::OutOfTime) => {
            let has_ended = transcript.done.is_some();
            let log_tail = (!has_ended).then(|| folder.log_tail(SHOWN_LINES));
            Outcome::TimedOut { limit, log_tail: log_tail.unwrap_or_default() }
        }
        // The machine's failure hides earlier failures of programs.
        (None, QemuEnd::ByItself) => Outcome::MachineFailed { said: qemu_errors(folder) },
    }
}

/// The outcome of a panic, with its backtrace. If the symbols cannot be read, the backtrace has one
/// address and no name.
fn panicked(panic: &Panic, symbols: &Path) -> Outcome {
    let Panic { message, registers, stack } = panic;
    let backtrace = Symbols::read(symbols).map_or_else(
        |_| vec![StackFrame { address: registers.frame.rip, places: Vec::new() }],
        |symbols| symbols.backtrace(registers, stack),
    );
    Outcome::Panicked { message: message.clone(), registers: Box::new(*registers), backtrace }
}

/// QEMU's error lines, without its warnings of missing CPU features; if there are none, the log's
/// last lines.
fn qemu_errors(folder: &Folder) -> String {
    let errors = fs::read_to_string(folder.errors()).unwrap_or_default();
    let lines: Vec<&str> =
        errors.lines().filter(|line| !line.contains(": warning: ")).take(SHOWN_LINES).collect();
    if lines.is_empty() { folder.log_tail(SHOWN_LINES) } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Project;

    #[test]
    fn an_error_after_which_kvm_pauses_the_machine_is_told_from_a_warning() {
        let root = std::env::temp_dir().join(format!("xtask-kvm-{}", std::process::id()));
        let folder = Folder::make(&Project { target: root.join("target"), root: root.clone() });
        let folder = folder.unwrap();
        let error = |said: &str| {
            fs::write(folder.errors(), said).unwrap();
            kvm_error(&folder)
        };
        let warning = "qemu-system-x86_64: warning: host doesn't support requested feature\n";
        assert_eq!(error(warning), None);
        let said = format!("{warning}KVM internal error. Suberror: 1\nextra data[0]: 0x0\n");
        assert_eq!(error(&said).as_deref(), Some("KVM internal error. Suberror: 1"));
        drop(folder);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_machine_s_failure_hides_a_program_s() {
        let root = std::env::temp_dir().join(format!("xtask-outcome-{}", std::process::id()));
        let folder = Folder::make(&Project { target: root.join("target"), root: root.clone() });
        let folder = folder.unwrap();
        let refused = Outcome::Refused { program: "p".into(), status: 68, why: "no".into() };
        let mut said = Transcript::default();
        said.failures.push(refused.clone());
        let (limit, symbols) = (Duration::from_secs(1), Path::new("/no/such/kernel"));
        let of = |end, said: &Transcript| outcome(end, said, limit, &folder, symbols);
        assert!(matches!(of(QemuEnd::ByItself, &said), Outcome::MachineFailed { .. }));
        assert!(matches!(of(QemuEnd::OutOfTime, &said), Outcome::TimedOut { .. }));
        said.done = Some(68);
        assert_eq!(of(QemuEnd::ByItself, &said), refused);
        // A kernel that was asked to end has results, and its programs did not end by themselves.
        let why = Outcome::TimedOut { limit, log_tail: String::new() };
        assert_eq!(of(QemuEnd::OutOfTime, &said), why);
        assert_eq!(of(QemuEnd::Stopped, &said), Outcome::Stopped);
        drop(folder);
        fs::remove_dir_all(root).unwrap();
    }
}
