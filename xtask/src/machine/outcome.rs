//! How a boot ended.

use std::{fmt, time::Duration};

use tally_abi::{ExitStatus, wire::Registers};

use crate::symbols::StackFrame;

/// Registers in a line of text.
const REGISTERS_A_LINE: usize = 4;

/// How a boot ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every program ended by itself; with the first status other than 0, or 0.
    Done(u8),
    /// A program could not be started, or the kernel's command line was refused.
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
        /// The kind of fault.
        fault: String,
        /// The accessed address, if the fault has one.
        address: Option<u64>,
        /// The instruction's address.
        instruction: u64,
    },
    /// The kernel panicked.
    Panicked {
        /// Message and source line.
        message: String,
        /// The processor's registers there.
        registers: Box<Registers>,
        /// Where it stopped, and its callers, innermost first.
        backtrace: Vec<StackFrame>,
    },
    /// The time limit was reached.
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The last lines of the log.
        log_tail: String,
    },
    /// The machine ended without the kernel's last message.
    MachineFailed {
        /// QEMU's errors, or the last lines of the log.
        said: String,
    },
}

impl Outcome {
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

    /// Returns whether every program ended by itself with status 0.
    pub fn is_success(&self) -> bool {
        *self == Outcome::Done(0)
    }
}

/// The message that the time limit was reached.
pub(crate) fn out_of_time(limit: Duration) -> String {
    let limit = limit.as_secs();
    format!(
        "the machine did not end within {limit} s and was stopped; `--time-limit` sets another limit"
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
            Outcome::Panicked { message, registers, backtrace } => {
                write!(f, "the kernel panicked: {message}")?;
                for (i, (name, value)) in
                    Registers::NAMES.iter().zip(registers.values()).enumerate()
                {
                    f.write_str(if i % REGISTERS_A_LINE == 0 { "\n " } else { "" })?;
                    write!(f, " {name:>6} {value:016x}")?;
                }
                backtrace
                    .iter()
                    .enumerate()
                    .try_for_each(|(i, frame)| write!(f, "\n{i:>3}  {frame}"))
            }
            Outcome::TimedOut { limit, log_tail } => {
                write!(f, "{}; last lines of the log:\n{log_tail}", out_of_time(*limit))
            }
            Outcome::MachineFailed { said } => {
                write!(f, "the machine ended without the kernel's last message:\n{said}")
            }
        }
    }
}
