//! System calls: one dispatcher, and a file for each family.
//!
//! A call gets its CPU's state and the program's registers, and returns a number: a result, an
//! error number of Linux for Linux's calls, or an error of Tally for Tally's. A program's error is
//! a result; a kernel bug is a panic.
//!
//! A call whose work grows with its arguments works in steps, and a turn can end between two steps
//! ([`Answer::Continue`]), so that it delays no other program (decision 21).

mod affinity;
mod answer;
mod copy;
mod cpus;
mod dates;
mod files;
mod folders;
mod futex;
mod inspect;
mod length;
mod locks;
mod memory;
mod open;
mod paths;
mod poll;
mod process;
mod programs;
mod readings;
mod scheduling;
mod session;
mod signal_files;
mod signals;
mod stat;
mod steps;
mod streams;
mod system;
mod texts;
mod threads;
mod thresholds;
mod time;
mod timers;
mod trace;
mod transfer;

use tally_abi::{Error, syscall, trace::ThreadNameRecord};

use self::{
    answer::{Answer, CHANGED, Errno, RETRY, Unanswered},
    inspect::preempt_and_restart,
    steps::in_steps,
    trace::Traced,
};
use crate::{
    arch::frame::{Frame, SYSCALL_VECTOR},
    cpu::Cpu,
    measure::Refusal,
    sched,
    task::{
        Process,
        call::Progress,
        signal_frame,
        thread::{Thread, Wait},
    },
};

/// Handles a system call. Returns whether the kernel may return by SYSRET: the frame is that of a
/// system call, this one or another thread's. Code that changes a frame's return address clears its
/// vector.
pub fn dispatch(cpu: &mut Cpu, frame: &mut Frame) -> bool {
    let number = frame.rax;
    let arguments = [frame.rdi, frame.rsi, frame.rdx, frame.r10, frame.r8, frame.r9];
    cpu.enter_kernel();
    if !matches!(number, syscall::RT_SIGRETURN | syscall::UPCALL_RETURN) {
        // A handler's return may come between two steps of another call, whose state it must not
        // change.
        cpu.process().threads.running().call.begin(frame);
    }
    let (traced, rip) = (Traced::begin(cpu, frame), frame.rip);
    match number {
        syscall::EXIT => sched::end_thread(cpu, frame, arguments[0] as i32),
        syscall::EXIT_GROUP => sched::exit(cpu, arguments[0] as i32),
        syscall::RT_SIGRETURN | syscall::UPCALL_RETURN => end_handler(cpu, frame, number),
        syscall::SCHED_YIELD => {
            frame.rax = 0;
            sched::preempt(cpu, frame);
        }
        syscall::SCHED_SETAFFINITY | syscall::SCHED_GETAFFINITY | syscall::GETCPU => {
            affinity::call(cpu, frame, number, arguments);
        }
        syscall::PROGRAM_LOAD..=syscall::PROGRAM_KILL => {
            programs::call(cpu, frame, number, arguments);
        }
        syscall::TALLY_BASE.. => tally(cpu, frame, number, arguments),
        syscall::PRCTL => {
            linux(cpu, frame, number, arguments);
            if arguments[0] == process::SET_NAME {
                note_name(cpu);
            }
        }
        _ => linux(cpu, frame, number, arguments),
    }
    if let Some(traced) = traced {
        traced.end(cpu, frame, rip);
    }
    sched::deliver(cpu, frame);
    if let Some(process) = &mut cpu.current {
        process.memory.check();
    }
    cpu.leave_kernel();
    frame.vector == SYSCALL_VECTOR
}

/// Reports the running thread's name, which may have changed, to sessions that count threads
/// separately, and adds it to the trace.
fn note_name(cpu: &mut Cpu) {
    let measure = cpu.measure;
    let Thread { tid, name, .. } = *cpu.process().threads.running();
    let program = cpu.process().pid;
    let mut measure = measure.lock();
    measure.rename_thread(tid, name);
    measure.trace_name(ThreadNameRecord::new(program, tid, name));
}

/// Adds to the trace that an `mmap` mapped a file's code at `address`.
fn note_mapping(cpu: &mut Cpu, number: u64, arguments: [u64; 6], address: u64) {
    let measure = cpu.measure;
    if number == syscall::MMAP
        && let Some(record) = memory::mapped_code(cpu.process(), arguments, address)
    {
        measure.lock().trace_map(record);
    }
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

/// Handles one of Tally's calls.
fn tally(cpu: &mut Cpu, frame: &mut Frame, number: u64, arguments: [u64; 6]) {
    let step = |cpu: &mut Cpu, _: &mut Frame, mut progress: Progress| {
        let answer = session::call(cpu, number, arguments, &mut progress);
        if matches!(answer, Err(Unanswered::Running(_))) && !progress.is_none() {
            cpu.process().threads.running().call.progress = Some(progress);
        }
        answer
    };
    frame.rax = match in_steps(cpu, frame, step) {
        None => return,
        Some(Ok(Answer::Value(value))) => value,
        Some(Err(Unanswered::Error(error) | Unanswered::Refused(Refusal { error, .. }))) => {
            error.to_return() as u64
        }
        Some(Err(Unanswered::Running(lapic))) => return preempt_and_restart(cpu, frame, lapic),
        Some(Ok(
            Answer::Wait(_) | Answer::Retry { .. } | Answer::Partial(_) | Answer::Continue(_),
        )) => {
            unreachable!("steps end with an answer")
        }
    };
}

/// Handles one of Linux's calls.
fn linux(cpu: &mut Cpu, frame: &mut Frame, number: u64, arguments: [u64; 6]) {
    let make_step = |cpu: &mut Cpu, frame: &mut Frame, progress| {
        step(cpu.process(), frame, number, arguments, progress)
    };
    let done_before = cpu.process().threads.running().call.progress.as_ref().map_or(0, |it| it.at);
    let answer = match in_steps(cpu, frame, make_step) {
        Some(Err(Errno(RETRY))) => {
            let due = streams::due(cpu.process(), arguments[0]);
            Ok(Answer::Retry { deadline: None, due, left: 0 })
        }
        Some(answer) => answer,
        None => {
            // The call may wait in its next turn for threads that wait for the work of this turn.
            if uses_descriptors(number) {
                cpu.process().threads.wake_retrying();
            }
            return;
        }
    };
    let process = cpu.process();
    process.threads.running().call.retried = None;
    match answer {
        Ok(Answer::Partial(done)) => wait_for_rest(cpu, frame, number, (done_before, done)),
        Ok(Answer::Value(value)) => {
            frame.rax = value;
            if uses_descriptors(number) {
                process.threads.wake_retrying();
            }
            note_mapping(cpu, number, arguments, value);
        }
        Err(Errno(error)) => {
            frame.rax = -error as u64;
            process.refused.count(number, error);
        }
        Ok(Answer::Wait(on)) => sched::block(cpu, frame, on),
        Ok(Answer::Retry { deadline, due, left }) => {
            process.threads.running().call.retried = Some(deadline);
            let until = deadline.into_iter().chain(due).min();
            sched::block(cpu, frame, Wait::Retry { number, until, left });
        }
        Ok(Answer::Continue(_)) => {}
    }
}

/// Makes a transfer wait for more room after `done` bytes, of which `done_before` were moved before
/// this turn. If a signal is due, `done` is the result instead.
fn wait_for_rest(cpu: &mut Cpu, frame: &mut Frame, number: u64, (done_before, done): (u64, u64)) {
    let process = cpu.process();
    if done > done_before {
        process.threads.wake_retrying();
    }
    if process.has_signal() {
        frame.rax = done;
        return;
    }
    process.threads.running().call.progress = Some(Progress { at: done, ..Progress::default() });
    sched::block(cpu, frame, Wait::Retry { number, until: None, left: 0 });
}

/// Returns whether other threads may wait for the call's effect on a descriptor.
fn uses_descriptors(number: u64) -> bool {
    use syscall::*;
    matches!(
        number,
        READ | READV
            | WRITE
            | WRITEV
            | SENDFILE
            | CLOSE
            | CLOSE_RANGE
            | DUP2
            | DUP3
            | SENDTO
            | RECVFROM
            | SHUTDOWN
            | TIMERFD_SETTIME
            | SIGNALFD
            | SIGNALFD4
            | EPOLL_CTL
            | FCNTL
            | FLOCK
    )
}

/// Makes a step of one of Linux's calls.
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

/// Handles the call in its family; `ENOSYS` if no family has it.
fn of_family(
    process: &mut Process,
    number: u64,
    arguments: [u64; 6],
    progress: Progress,
) -> Result<Answer, Errno> {
    let transferred = transfer::call(process, number, arguments, progress.at)
        .or_else(|| copy::call(process, number, arguments, progress.at));
    if let Some(answer) =
        transferred.or_else(|| memory::call(process, number, arguments, &progress))
    {
        return answer;
    }
    match number {
        syscall::FCNTL => return locks::fcntl(process, arguments),
        syscall::FLOCK => return locks::flock(process, arguments[0], arguments[1]),
        _ => {}
    }
    for family in
        [threads::call, signals::call, timers::call, time::call, poll::call, streams::call]
    {
        if let Some(answer) = family(process, number, arguments) {
            return answer;
        }
    }
    for family in [
        files::call,
        signal_files::call,
        paths::call,
        dates::call,
        folders::call,
        system::call,
        process::call,
        scheduling::call,
    ] {
        if let Some(answer) = family(process, number, arguments) {
            return match answer {
                Err(Errno(CHANGED)) => Ok(Answer::continue_at(0)),
                answer => answer.map(Answer::Value),
            };
        }
    }
    Err(Errno(syscall::errno::ENOSYS))
}
