//! Calls on other programs: loading, starting, waiting for their end.

use alloc::{boxed::Box, string::String, vec, vec::Vec};

use tally_abi::{Error, ExitStatus, program::MAX_ARGUMENT_BYTES, syscall};

use super::{
    inspect::preempt_and_restart,
    open::{Caller, explain},
};
use crate::{
    arch::frame::Frame,
    cpu::Cpu,
    machine::clock,
    measure::Refusal,
    memory::{frames, kernel},
    sched::{
        self,
        children::ChildState,
        table::{self, Lookup},
    },
    task::{Process, thread::Wait},
};

/// Upper bound of the kernel memory for loading a program, with the most arguments.
const MAX_LOAD_BYTES: u64 = 6 << 20;

/// Handles a call. If it blocks, the CPU runs another thread or program after it.
pub(super) fn call(cpu: &mut Cpu, frame: &mut Frame, number: u64, arguments: [u64; 6]) {
    let process = cpu.process();
    let caller = process.pid;
    let [program, argument, ..] = arguments;
    let child = u32::try_from(program).map_err(|_| Error::NoProgram);
    let answer = match number {
        syscall::PROGRAM_LOAD => load(process, arguments),
        syscall::PROGRAM_RUN => child.and_then(|pid| run(pid, caller)),
        syscall::PROGRAM_USAGE | syscall::PROGRAM_KILL => {
            let found = child.and_then(|pid| match number {
                syscall::PROGRAM_USAGE => usage(process, pid, argument),
                _ => kill(pid, caller),
            });
            match found {
                Ok(Some(lapic)) => return preempt_and_restart(cpu, frame, lapic),
                Ok(None) => Ok(0),
                Err(error) => Err(error),
            }
        }
        _ => match child.map(|pid| (pid, table::lock().child_state(pid, caller))) {
            Ok((_, ChildState::Ended(status))) => Ok(status.into()),
            Ok((pid, ChildState::Alive)) => {
                let is_timed = number == syscall::PROGRAM_WAIT_FOR;
                let until = is_timed.then(|| clock::now_ns().saturating_add(argument));
                return sched::block(cpu, frame, Wait::Child(pid, until));
            }
            Ok((_, ChildState::New)) => Err(Error::WrongState),
            Ok((_, ChildState::Unknown)) => Err(Error::NoProgram),
            Err(error) => Err(error),
        },
    };
    frame.rax = answer.unwrap_or_else(|error| error.to_return() as u64);
}

/// `program_load(words, words_bytes, detail, detail_bytes)`.
fn load(process: &mut Process, arguments: [u64; 6]) -> Result<u64, Error> {
    let [words, bytes, detail, detail_bytes, ..] = arguments;
    let _claim = frames::claim(MAX_LOAD_BYTES).ok_or(Error::NoMemory)?;
    if !table::lock().may_load(process.pid) {
        return Err(Error::TooManyPrograms);
    }
    let caller = Caller { process, detail, detail_bytes };
    let loaded = read_words(caller.process, words, bytes).and_then(|words| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let surroundings = caller.process.surroundings();
        let pid = table::lock().allocate_number().ok_or(Refusal::from(Error::TooManyPrograms))?;
        Process::load(pid, &words, surroundings, kernel::space()).map_err(|(status, why)| Refusal {
            error: match status {
                ExitStatus::ProgramNotFound => Error::NoProgram,
                ExitStatus::NotRunnable => Error::NotAProgram,
                _ => Error::NoMemory,
            },
            detail: alloc::format!("{}: {why}", words.first().copied().unwrap_or_default()),
        })
    });
    match loaded {
        Ok(child) => {
            let pid = child.pid;
            table::lock().add(Box::new(child), Some(caller.process.pid));
            Ok(pid.into())
        }
        Err(refusal) => Err(explain(caller, refusal)?),
    }
}

fn read_words(process: &mut Process, address: u64, bytes: u64) -> Result<Vec<String>, Refusal> {
    if bytes > MAX_ARGUMENT_BYTES as u64 {
        let detail = alloc::format!(
            "arguments of {bytes} bytes exceed the maximum of {MAX_ARGUMENT_BYTES}: shorten them"
        );
        return Err(Refusal { error: Error::BadArgument, detail });
    }
    let mut text = vec![0; bytes as usize];
    process.memory.read(address, &mut text).map_err(|_| Refusal::from(Error::BadPointer))?;
    let text = String::from_utf8(text).map_err(|_| Refusal::from(Error::BadArgument))?;
    let words = text.strip_suffix('\0').ok_or(Refusal::from(Error::BadArgument))?;
    Ok(words.split('\0').map(String::from).collect())
}

fn run(pid: u32, caller: u32) -> Result<u64, Error> {
    let mut table = table::lock();
    if table.start(pid, caller) {
        Ok(0)
    } else if table.is_child(pid, caller) {
        Err(Error::WrongState)
    } else {
        Err(Error::NoProgram)
    }
}

/// `program_usage(program, usage)`. If a CPU runs the program, returns that CPU, which has to park
/// it first.
fn usage(process: &mut Process, pid: u32, to: u64) -> Result<Option<u32>, Error> {
    let mut table = table::lock();
    let used = match pid {
        0 => Lookup::Parked(table.children_usage(process.pid)),
        _ if !table.is_child(pid, process.pid) => Lookup::Unknown,
        _ => table.usage(pid),
    };
    match used {
        Lookup::Parked(usage) => {
            let written = process.memory.write_words(to, usage.to_words());
            written.map(|()| None).map_err(|_| Error::BadPointer)
        }
        Lookup::Running(lapic) => Ok(Some(lapic)),
        Lookup::Ended | Lookup::Unknown => Err(Error::NoProgram),
    }
}

/// `program_kill(program)`. Returns a CPU as [`usage`] does.
fn kill(pid: u32, caller: u32) -> Result<Option<u32>, Error> {
    let mut table = table::lock();
    if !table.is_child(pid, caller) {
        return Err(Error::NoProgram);
    }
    match table.kill(pid, caller) {
        Lookup::Parked(Ok(())) => Ok(None),
        Lookup::Parked(Err(_)) => Err(Error::WrongState),
        Lookup::Running(lapic) => Ok(Some(lapic)),
        // The program has ended by itself.
        Lookup::Ended => Ok(None),
        Lookup::Unknown => Err(Error::NoProgram),
    }
}
