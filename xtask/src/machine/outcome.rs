//! The outcome of a boot.

use std::{fmt, time::Duration};

use tally_abi::{ExitStatus, registers::Registers};

use crate::{
    process::INTERRUPTED,
    symbols::StackFrame,
    visible::{quoted, visible},
};

/// Number of registers in a line of text.
const REGISTERS_A_LINE: usize = 4;

/// The outcome of a boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Completion: every program ended by itself. Has the first status other than 0, or 0.
    Done(u8),
    /// Refusal: a program could not be started, or the kernel's command line was refused.
    Refused {
        /// The program.
        program: String,
        /// An [`ExitStatus`].
        status: u8,
        /// Reason.
        why: String,
    },
    /// Fault: a program crashed.
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
    /// Panic of the kernel.
    Panicked {
        /// Message and source line.
        message: String,
        /// The processor's registers at the panic.
        registers: Box<Registers>,
        /// Address of the panic, and its callers, innermost first.
        backtrace: Vec<StackFrame>,
    },
    /// Time-out.
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The last lines of the log.
        log_tail: String,
    },
    /// Stop by the user.
    Stopped,
    /// Machine failure: the machine ended without the kernel's last message.
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
            Outcome::Faulted { fault, .. } => ExitStatus::of_fault(fault).into(),
            Outcome::Panicked { .. } => ExitStatus::KernelPanic.into(),
            Outcome::TimedOut { .. } => ExitStatus::TimedOut.into(),
            Outcome::Stopped => INTERRUPTED,
            Outcome::MachineFailed { .. } => ExitStatus::MachineFailed.into(),
        }
    }

    /// The first line of the outcome's message.
    pub fn first_line(&self) -> String {
        self.to_string().lines().next().unwrap_or_default().to_owned()
    }

    /// The messages for a person, the reason last: behind what the machine said before its end.
    pub fn messages(&self) -> Vec<String> {
        let (title, said) = match self {
            Outcome::TimedOut { log_tail, .. } => ("last lines of the log", log_tail),
            Outcome::MachineFailed { said } => ("what the machine said", said),
            _ => return vec![self.to_string()],
        };
        let quoted = (!said.is_empty()).then(|| format!("{title}:\n{}", quoted(said)));
        let reason = match self {
            Outcome::TimedOut { limit, .. } => out_of_time(*limit),
            _ => NO_LAST_MESSAGE.into(),
        };
        quoted.into_iter().chain([reason]).collect()
    }

    /// Returns whether every program ended by itself with status 0.
    pub fn is_success(&self) -> bool {
        *self == Outcome::Done(0)
    }
}

const NO_LAST_MESSAGE: &str = "the machine ended without the kernel's last message";

/// The message that the time limit was reached.
pub fn out_of_time(limit: Duration) -> String {
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
                let mut lines = message.lines();
                write!(f, "the kernel panicked: {}", visible(lines.next().unwrap_or_default()))?;
                lines.try_for_each(|line| write!(f, "\n  {}", visible(line)))?;
                for (i, (name, value)) in registers.named().enumerate() {
                    f.write_str(if i % REGISTERS_A_LINE == 0 { "\n " } else { "" })?;
                    write!(f, " {name:>6} {value:016x}")?;
                }
                backtrace
                    .iter()
                    .enumerate()
                    .try_for_each(|(i, frame)| write!(f, "\n{i:>3}  {frame}"))
            }
            // Of a machine that ended when it was asked, the results say what happened.
            Outcome::TimedOut { limit, log_tail } if log_tail.is_empty() => {
                f.write_str(&out_of_time(*limit))
            }
            Outcome::TimedOut { limit, log_tail } => {
                write!(f, "{}; last lines of the log:\n{}", out_of_time(*limit), quoted(log_tail))
            }
            Outcome::Stopped => f.write_str("the machine was stopped before its programs ended"),
            Outcome::MachineFailed { said } => {
                write!(f, "{NO_LAST_MESSAGE}:\n{}", quoted(said))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Place;
    use expect_test::expect;
    use tally_abi::registers::Frame;

    #[test]
    fn every_outcome_has_a_message() {
        let fault = Outcome::Faulted {
            program: "crash".into(),
            fault: "page fault".into(),
            address: Some(0x10),
            instruction: 0x20_0004,
        };
        let refused = |program: &str, why: &str| Outcome::Refused {
            program: program.into(),
            status: ExitStatus::Usage.into(),
            why: why.into(),
        };
        let outcomes = [
            Outcome::Done(3),
            refused("nobody", "not in the ramdisk"),
            refused("", "unknown option colour=red"),
            fault,
            Outcome::TimedOut { limit: Duration::from_secs(15), log_tail: "the last line".into() },
            Outcome::Stopped,
            Outcome::MachineFailed { said: "qemu: no such device".into() },
        ];
        let text = outcomes.map(|outcome| format!("{}: {outcome}\n", outcome.status())).concat();
        expect![[r#"
            3: the programs ended with status 3
            64: nobody: not in the ramdisk
            64: unknown option colour=red
            76: crash crashed: page fault, address 0x10, by the instruction at 0x200004
            75: the machine did not end within 15 s and was stopped; `--time-limit` sets another limit; last lines of the log:
              the last line
            130: the machine was stopped before its programs ended
            80: the machine ended without the kernel's last message:
              qemu: no such device
        "#]].assert_eq(&text);
    }

    #[test]
    fn the_last_message_is_the_reason() {
        let (limit, log_tail) = (Duration::from_secs(15), "the last line".to_owned());
        let [said, why] = &Outcome::TimedOut { limit, log_tail }.messages()[..] else { panic!() };
        assert_eq!(said, "last lines of the log:\n  the last line");
        assert!(why.starts_with("the machine did not end within 15 s"), "{why}");
        let failed = Outcome::MachineFailed { said: "qemu: no such device".into() };
        assert_eq!(failed.messages().last().unwrap(), NO_LAST_MESSAGE);
        assert_eq!(Outcome::Stopped.messages(), [Outcome::Stopped.to_string()]);
    }

    #[test]
    fn a_panic_has_registers_and_a_backtrace() {
        let place = |function: &str, line| Place {
            function: function.into(),
            file: Some("kernel/src/a.rs".into()),
            line: Some(line),
            ..Place::default()
        };
        let frame = |address, places: &[Place]| StackFrame { address, places: places.to_vec() };
        let interrupted = Frame { rax: 1 << 63, rip: 0xffff_8000_0000_1234, ..Default::default() };
        let registers = Registers { frame: interrupted, ..Default::default() };
        let panicked = Outcome::Panicked {
            message: "no frame is free".into(),
            registers: registers.into(),
            backtrace: vec![
                frame(0xffff_8000_0000_1234, &[place("inlined", 7), place("outer", 20)]),
                frame(0xffff_8000_0000_5678, &[]),
            ],
        };
        expect![[r#"
            the kernel panicked: no frame is free
                  ss 0000000000000000    rsp 0000000000000000 rflags 0000000000000000     cs 0000000000000000
                 rip ffff800000001234  error 0000000000000000 vector 0000000000000000    rax 8000000000000000
                 rbx 0000000000000000    rcx 0000000000000000    rdx 0000000000000000    rsi 0000000000000000
                 rdi 0000000000000000    rbp 0000000000000000     r8 0000000000000000     r9 0000000000000000
                 r10 0000000000000000    r11 0000000000000000    r12 0000000000000000    r13 0000000000000000
                 r14 0000000000000000    r15 0000000000000000    cr0 0000000000000000    cr2 0000000000000000
                 cr3 0000000000000000    cr4 0000000000000000 apic_id 0000000000000000
              0  0xffff800000001234 inlined at kernel/src/a.rs:7
                 inlined into outer at kernel/src/a.rs:20
              1  0xffff800000005678"#]].assert_eq(&panicked.to_string());
    }
}
