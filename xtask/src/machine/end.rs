//! Judges how a boot ended, from the kernel's messages, the log and what QEMU printed.

use std::{fs, time::Duration};

use super::{folder::Folder, outcome::Outcome, transcript::Transcript};

/// Lines of the log that are shown where it tells more than we know.
const SHOWN_LINES: usize = 15;

/// How the QEMU process ended, whatever the guest reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    ByItself,
    OutOfTime,
}

/// Why the virtual PMU refused its options, if it did: QEMU ended before the machine printed a
/// byte.
pub(crate) fn refused_options(folder: &Folder) -> Option<String> {
    let errors = fs::read_to_string(folder.errors()).unwrap_or_default();
    let refused = errors.lines().find_map(|line| line.strip_prefix("tally-vpmu: "));
    refused.filter(|_| folder.is_log_empty()).map(|why| format!("virtual PMU: {why}"))
}

/// The outcome of a boot: the kernel's last message decides, if it came.
pub(super) fn outcome(end: End, said: &Transcript, limit: Duration, folder: &Folder) -> Outcome {
    if let Some(message) = &said.panicked {
        return Outcome::Panicked { message: message.clone() };
    }
    match (said.done, end) {
        (Some(status), _) => said.troubles.first().cloned().unwrap_or(Outcome::Done(status)),
        (None, End::OutOfTime) => {
            Outcome::TimedOut { limit, log_tail: folder.log_tail(SHOWN_LINES) }
        }
        // Whatever became of programs before.
        (None, End::ByItself) => Outcome::MachineFailed { said: complaint(folder) },
    }
}

/// What QEMU said of errors, not of features that its processor lacks; or else the log's end.
fn complaint(folder: &Folder) -> String {
    let errors = fs::read_to_string(folder.errors()).unwrap_or_default();
    let lines: Vec<&str> =
        errors.lines().filter(|line| !line.contains(": warning: ")).take(SHOWN_LINES).collect();
    match lines.is_empty() {
        true => folder.log_tail(SHOWN_LINES),
        false => lines.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Project;

    #[test]
    fn a_program_s_crash_does_not_hide_the_machine_s() {
        let root = std::env::temp_dir().join(format!("xtask-outcome-{}", std::process::id()));
        let folder = Folder::make(&Project { target: root.join("target"), root: root.clone() });
        let folder = folder.unwrap();
        let refused = Outcome::Refused { program: "p".into(), status: 68, why: "no".into() };
        let mut said = Transcript::default();
        said.troubles.push(refused.clone());
        let of = |end, said: &Transcript| outcome(end, said, Duration::from_secs(1), &folder);
        assert!(matches!(of(End::ByItself, &said), Outcome::MachineFailed { .. }));
        assert!(matches!(of(End::OutOfTime, &said), Outcome::TimedOut { .. }));
        said.done = Some(68);
        assert_eq!(of(End::ByItself, &said), refused);
        drop(folder);
        fs::remove_dir_all(root).unwrap();
    }
}
