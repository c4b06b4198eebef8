//! System calls: one dispatcher, and a file for each family.
//!
//! A call gets its CPU's state and the program's registers, and returns a number: a result, an
//! error number of Linux for Linux's calls, or an error of Tally for Tally's. A program's error is
//! a result; a kernel bug is a panic.
//!
//! A call whose work grows with its arguments works in steps and lets the turn end in between
//! ([`Answer::Continue`], decision 21).

mod affinity;
mod answer;
mod files;
mod inspect;
mod memory;
mod paths;
mod poll;
mod process;
mod programs;
mod session;
mod signals;
mod stat;
mod threads;
mod time;
mod trace;
mod transfer;

use core::mem::take;

use tally_abi::{Error, syscall};

use self::{
    answer::{Answer, Errno},
    inspect::preempt_and_restart,
    session::Unanswered,
    trace::Traced,
};

use crate::{
    arch::{
        frame::{Frame, SYSCALL_VECTOR},
        vectors,
    },
    cpu::Cpu,
    measure::Refusal,
    sched,
    task::{Process, handler, signal_frame, thread::Progress},
};

/// The most numbers of unknown calls that the log gets of one program.
const MAX_UNKNOWN_CALLS: usize = 64;

/// Handles one system call. Returns whether the kernel may return by SYSRET: the frame is that of a
/// system call, this one or another thread's. Code that changes where a frame returns to clears its
/// vector.
pub fn dispatch(cpu: &mut Cpu, frame: &mut Frame) -> bool {
    let number = frame.rax;
    let arguments = [frame.rdi, frame.rsi, frame.rdx, frame.r10, frame.r8, frame.r9];
    let (traced, rip) = (Traced::begin(cpu, frame), frame.rip);
    match number {
        syscall::EXIT => sched::end_thread(cpu, frame, arguments[0] as i32),
        syscall::EXIT_GROUP => sched::exit(cpu, frame, arguments[0] as i32),
        syscall::RT_SIGRETURN | syscall::UPCALL_RETURN => end_handler(cpu, frame, number),
        syscall::SCHED_YIELD => {
            frame.rax = 0;
            sched::preempt(cpu, frame);
        }
        syscall::SCHED_SETAFFINITY | syscall::SCHED_GETAFFINITY | syscall::GETCPU => {
            affinity::call(cpu, frame, number, arguments);
        }
        syscall::PROGRAM_LOAD..=syscall::PROGRAM_WAIT => {
            programs::call(cpu, frame, number, arguments);
        }
        syscall::TALLY_BASE.. => match session::call(cpu, number, arguments) {
            Ok(value) => frame.rax = value,
            Err(Unanswered::Error(error) | Unanswered::Refused(Refusal { error, .. })) => {
                frame.rax = error.to_return() as u64;
            }
            Err(Unanswered::Running(lapic)) => preempt_and_restart(cpu, frame, lapic),
        },
        _ => linux(cpu, frame, number, arguments),
    }
    if let Some(traced) = traced {
        traced.end(cpu, frame, rip);
    }
    sched::deliver(cpu, frame);
    frame.vector == SYSCALL_VECTOR
}

/// `rt_sigreturn` and `upcall_return()`: returns from a handler.
fn end_handler(cpu: &mut Cpu, frame: &mut Frame, number: u64) {
    let process = cpu.process();
    let ended = match number {
        syscall::RT_SIGRETURN => signal_frame::leave_handler(process, frame),
        _ => signal_frame::leave_upcall(process, frame).map(|ran| {
            if !ran {
                frame.rax = Error::WrongState.to_return() as u64;
            }
        }),
    };
    match ended {
        Ok(()) => sched::upcall(cpu, frame),
        Err(fault) => sched::raise(cpu, frame, fault),
    }
}

/// A call of Linux's: makes its steps until it has an answer or the turn is over.
fn linux(cpu: &mut Cpu, frame: &mut Frame, number: u64, arguments: [u64; 6]) {
    let progress = take(&mut cpu.process().threads.running().progress);
    let is_continued = progress.is_some();
    let mut progress = progress.unwrap_or_default();
    loop {
        match step(cpu.process(), frame, number, arguments, progress) {
            Ok(Answer::Value(value)) => frame.rax = value,
            Err(Errno(number)) => frame.rax = -number as u64,
            Ok(Answer::Wait(on)) => sched::block(cpu, frame, on),
            Ok(Answer::Continue(next)) if is_preempted(cpu) => {
                // The interrupt comes before the instruction, which makes the next step.
                cpu.process().threads.running().progress = Some(next);
                return handler::repeat_call(frame);
            }
            Ok(Answer::Continue(next)) => {
                progress = next;
                continue;
            }
        }
        break;
    }
    if is_continued {
        // A threshold may have fired meanwhile, whose upcall the call delayed.
        cpu.measure.lock().repost_upcall();
    }
}

/// Returns whether an interrupt is pending that may end the running thread's turn.
fn is_preempted(cpu: &Cpu) -> bool {
    [vectors::TIMER, vectors::PREEMPT_IPI].into_iter().any(|vector| cpu.lapic.is_pending(vector))
}

/// One step of a call of Linux's.
fn step(
    process: &mut Process,
    frame: &mut Frame,
    number: u64,
    arguments: [u64; 6],
    progress: Progress,
) -> Result<Answer, Errno> {
    match number {
        syscall::CLONE => threads::clone(process, frame, arguments).map(Answer::Value),
        syscall::SIGALTSTACK => {
            let [new, old, ..] = arguments;
            signals::stack(process, frame.rsp, new, old).map(Answer::Value)
        }
        _ => of_family(process, number, arguments, progress),
    }
}

/// Handles the call in the family that has it; `ENOSYS` if none has.
fn of_family(
    process: &mut Process,
    number: u64,
    arguments: [u64; 6],
    progress: Progress,
) -> Result<Answer, Errno> {
    let transferred = transfer::call(process, number, arguments, progress.at);
    if let Some(answer) = transferred.or_else(|| memory::call(process, number, arguments, progress))
    {
        return answer;
    }
    for family in [threads::call, signals::call, time::call, poll::call] {
        if let Some(answer) = family(process, number, arguments) {
            return answer;
        }
    }
    for family in [files::call, paths::call, process::call] {
        if let Some(answer) = family(process, number, arguments) {
            return answer.map(Answer::Value);
        }
    }
    if process.unknown_calls.len() < MAX_UNKNOWN_CALLS && process.unknown_calls.insert(number) {
        log::warn!("{}: unknown system call {number}", process.name);
    }
    Err(Errno(syscall::errno::ENOSYS))
}
