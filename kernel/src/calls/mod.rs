//! System calls: one dispatcher, and a file for each family.
//!
//! A call gets its CPU's state and the program's registers, and gives a number back. Three kinds
//! of answer never mix: a result, an error of Linux's for Linux's calls, an error of Tally's for
//! Tally's. A mistake of the program's is an answer; a mistake of the kernel's is a panic.

mod files;
mod memory;
mod paths;
mod process;
mod programs;
mod session;
mod time;

use tally_abi::{Error, syscall};

use self::session::Unanswered;

use crate::{
    cpu::{Cpu, entry::Frame, entry::SYSCALL_VECTOR, vectors},
    memory::space::SpaceError,
    task::{self, Process},
};

/// The length of SYSCALL: 0F 05. A call that is to be made again begins so many bytes before.
const SYSCALL_BYTES: u64 = 2;

/// The status of a program that a signal ended, as shells tell it: this and the signal's number.
const SIGNALLED: i32 = 128;

/// An error number of Linux's, positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Errno(i64);

impl From<SpaceError> for Errno {
    fn from(error: SpaceError) -> Self {
        match error {
            SpaceError::OutOfMemory => Errno(syscall::errno::ENOMEM),
            SpaceError::BadAddress => Errno(syscall::errno::EFAULT),
            SpaceError::Overlap => Errno(syscall::errno::EINVAL),
        }
    }
}

impl From<SpaceError> for BadPointer {
    fn from(_: SpaceError) -> Self {
        BadPointer
    }
}

/// A buffer of a Tally call is not in the program's memory.
struct BadPointer;

impl From<BadPointer> for Error {
    fn from(_: BadPointer) -> Self {
        Error::BadPointer
    }
}

/// Handles one system call. Gives whether the frame is still the caller's, with all that SYSRET
/// needs in it.
pub fn dispatch(cpu: &mut Cpu, frame: &mut Frame) -> bool {
    let number = frame.rax;
    let arguments = [frame.rdi, frame.rsi, frame.rdx, frame.r10, frame.r8, frame.r9];
    match number {
        syscall::EXIT | syscall::EXIT_GROUP => {
            task::exit(cpu, frame, arguments[0] as i32);
            return false;
        }
        syscall::UPCALL_RETURN => {
            if task::upcall::finish(cpu, frame) {
                return false;
            }
            frame.rax = Error::WrongState.to_return() as u64;
            return true;
        }
        syscall::SCHED_YIELD => {
            frame.rax = 0;
            task::preempt(cpu, frame);
            return frame.vector == SYSCALL_VECTOR;
        }
        syscall::NANOSLEEP | syscall::CLOCK_NANOSLEEP => return sleep(cpu, frame, arguments),
        syscall::KILL | syscall::TKILL | syscall::TGKILL => return kill(cpu, frame, arguments),
        _ => {}
    }
    frame.rax = if let syscall::PROGRAM_LOAD..=syscall::PROGRAM_WAIT = number {
        programs::call(cpu, frame, number, arguments);
        return false;
    } else if number >= syscall::TALLY_BASE {
        match session::call(cpu, number, arguments) {
            Ok(value) => value,
            Err(Unanswered::Error(error)) => error.to_return() as u64,
            Err(Unanswered::Away(lapic)) => {
                cpu.lapic.interrupt(lapic, vectors::COME);
                frame.rip -= SYSCALL_BYTES;
                // SYSRET, by which another call may return to this program, goes by RCX.
                frame.rcx = frame.rip;
                task::give_way(cpu, frame);
                return false;
            }
        }
    } else {
        let process = cpu.current.as_deref_mut().expect("a system call comes from a program");
        match linux(process, number, arguments) {
            Ok(value) => value,
            Err(Errno(number)) => -number as u64,
        }
    };
    true
}

fn sleep(cpu: &mut Cpu, frame: &mut Frame, arguments: [u64; 6]) -> bool {
    let process = cpu.current.as_deref_mut().expect("a system call comes from a program");
    let until = time::wake_time(process, frame.rax, arguments);
    frame.rax = until.map_or_else(|Errno(number)| -number as u64, |_| 0);
    if let Ok(until) = until {
        task::sleep(cpu, frame, until);
    }
    false
}

/// `kill`, `tkill` and `tgkill`: the one program that a program can send signals to is itself, and the
/// one thing that they do is to end it.
fn kill(cpu: &mut Cpu, frame: &mut Frame, [a, b, c, ..]: [u64; 6]) -> bool {
    let process = cpu.current.as_deref_mut().expect("a system call comes from a program");
    let (to, signal) = if frame.rax == syscall::TGKILL { (b, c) } else { (a, b) };
    let answer = match signal {
        _ if to != u64::from(process.pid) => -syscall::errno::ESRCH,
        0 => 0,
        1..=64 => {
            task::exit(cpu, frame, SIGNALLED + signal as i32);
            return false;
        }
        _ => -syscall::errno::EINVAL,
    };
    frame.rax = answer as u64;
    true
}

/// A call of Linux's: whichever family knows it.
fn linux(process: &mut Process, number: u64, arguments: [u64; 6]) -> Result<u64, Errno> {
    let families = [files::call, paths::call, memory::call, process::call, time::call];
    for family in families {
        if let Some(answer) = family(process, number, arguments) {
            return answer;
        }
    }
    if process.unknown_calls.insert(number) {
        log::warn!("{}: there is no system call {number} here", process.name);
    }
    Err(Errno(syscall::errno::ENOSYS))
}
