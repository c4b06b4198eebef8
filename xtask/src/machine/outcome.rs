//! How a boot ended.

use std::{fmt, fs, time::Duration};

use tally_abi::ExitStatus;

use super::{End, Folder, Transcript};

/// Lines of the log that are shown where it tells more than we know.
const SHOWN_LINES: usize = 15;

/// How a boot ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every program ended by itself; the first status other than 0, or 0.
    Done(u8),
    /// A program could not be started, or the command line not be followed.
    Refused {
        /// The program.
        program: String,
        /// An [`ExitStatus`].
        status: u8,
        /// Why.
        why: String,
    },
    /// A program crashed.
    Faulted {
        /// The program.
        program: String,
        /// What it did.
        fault: String,
        /// The address that it touched.
        address: Option<u64>,
        /// The instruction.
        instruction: u64,
    },
    /// The kernel found a mistake of its own.
    Panicked {
        /// Message and place.
        message: String,
    },
    /// The time limit was reached.
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The last lines of the log.
        log_tail: String,
    },
    /// The machine ended without the kernel's last word.
    MachineFailed {
        /// What QEMU said, or the last lines of the log.
        said: String,
    },
}

impl Outcome {
    pub(super) fn of(end: End, said: &Transcript, limit: Duration, folder: &Folder) -> Outcome {
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

    /// The status to exit with.
    pub fn status(&self) -> u8 {
        match self {
            Outcome::Done(status) | Outcome::Refused { status, .. } => *status,
            Outcome::Faulted { .. } => ExitStatus::ProgramFault.into(),
            Outcome::Panicked { .. } => ExitStatus::KernelPanic.into(),
            Outcome::TimedOut { .. } => ExitStatus::TimedOut.into(),
            Outcome::MachineFailed { .. } => ExitStatus::MachineFailed.into(),
        }
    }

    /// Whether every program ended by itself with status 0.
    pub fn is_success(&self) -> bool {
        *self == Outcome::Done(0)
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

/// That the time limit was reached, for people.
pub(crate) fn out_of_time(limit: Duration) -> String {
    let limit = limit.as_secs();
    format!(
        "the machine did not end within {limit} s and was stopped (`--time-limit` sets another limit)"
    )
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Done(status) => write!(f, "the programs ended with status {status}"),
            Outcome::Refused { program, why, .. } if program.is_empty() => write!(f, "{why}"),
            Outcome::Refused { program, why, .. } => write!(f, "{program}: {why}"),
            Outcome::Faulted { program, fault, address, instruction } => {
                write!(f, "{program} crashed: {fault}")?;
                if let Some(address) = address {
                    write!(f, ", address {address:#x}")?;
                }
                write!(f, ", by the instruction at {instruction:#x}")
            }
            Outcome::Panicked { message } => write!(f, "the kernel panicked: {message}"),
            Outcome::TimedOut { limit, log_tail } => {
                write!(f, "{}; its last lines:\n{log_tail}", out_of_time(*limit))
            }
            Outcome::MachineFailed { said } => {
                write!(f, "the machine ended without the kernel's last word:\n{said}")
            }
        }
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
        let of = |end, said: &Transcript| Outcome::of(end, said, Duration::from_secs(1), &folder);
        assert!(matches!(of(End::ByItself, &said), Outcome::MachineFailed { .. }));
        assert!(matches!(of(End::OutOfTime, &said), Outcome::TimedOut { .. }));
        said.done = Some(68);
        assert_eq!(of(End::ByItself, &said), refused);
        drop(folder);
        fs::remove_dir_all(root).unwrap();
    }
}
