//! System calls: one dispatcher, and a file for each family.
//!
//! A call gets its CPU's state and the program's registers, and gives a number back. Three kinds
//! of answer never mix: a result, an error of Linux's for Linux's calls, an error of Tally's for
//! Tally's. A mistake of the program's is an answer; a mistake of the kernel's is a panic.

mod files;
mod memory;
mod process;
mod programs;
mod session;

use tally_abi::{Error, syscall};

use self::session::Unanswered;

use crate::{
    cpu::{Cpu, entry::Frame, entry::SYSCALL_VECTOR, vectors},
    memory::space::SpaceError,
    task::{self, Process},
};

/// The length of SYSCALL: 0F 05. A call that is to be made again begins so many bytes before.
const SYSCALL_BYTES: u64 = 2;

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
        syscall::SCHED_YIELD => {
            frame.rax = 0;
            task::preempt(cpu, frame);
            return frame.vector == SYSCALL_VECTOR;
        }
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
                task::preempt(cpu, frame);
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

fn linux(process: &mut Process, number: u64, arguments: [u64; 6]) -> Result<u64, Errno> {
    let [a, b, c, d, e, f] = arguments;
    match number {
        syscall::READ => files::read(process, a, b, c),
        syscall::WRITE => files::write(process, a, b, c),
        syscall::OPEN => files::open(process, a, b),
        syscall::CLOSE => files::close(process, a),
        syscall::LSEEK => files::seek(process, a, b as i64, c),
        syscall::MMAP => memory::map(process, [a, b, c, d, e, f]),
        syscall::MPROTECT => memory::protect(process, a, b, c),
        syscall::MUNMAP => memory::unmap(process, a, b),
        syscall::BRK => Ok(process.set_heap_end(a)),
        syscall::IOCTL => Err(Errno(syscall::errno::ENOTTY)),
        syscall::WRITEV => files::write_vector(process, a, b, c),
        syscall::FSTAT => files::stat(process, a, b),
        syscall::OPENAT => files::open(process, b, c),
        syscall::NEWFSTATAT => files::stat_at(process, [a, b, c]),
        syscall::READLINK => files::read_link(process, a, b, c),
        syscall::GETPID | syscall::GETTID | syscall::SET_TID_ADDRESS => Ok(process.pid.into()),
        syscall::GETUID | syscall::GETGID | syscall::GETEUID | syscall::GETEGID => Ok(0),
        syscall::ARCH_PRCTL => process::arch_control(process, a, b),
        syscall::SET_ROBUST_LIST => Ok(0),
        syscall::PRLIMIT64 => process::limit(process, [a, b, c, d]),
        syscall::GETRANDOM => process::random(process, a, b),
        _ => {
            if process.unknown_calls.insert(number) {
                log::warn!("{}: there is no system call {number} here", process.name);
            }
            Err(Errno(syscall::errno::ENOSYS))
        }
    }
}
