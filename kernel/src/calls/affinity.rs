//! Calls on CPU affinity: the program's own threads, and programs that it loaded.
//!
//! Threads of a program take turns on one CPU, so a program learns of one: a library that starts a
//! thread for each CPU would let them wait for each other.

use tally_abi::syscall::{
    self,
    errno::{EINVAL, ESRCH},
};

use super::{answer::Errno, inspect::preempt_and_restart};
use crate::{
    arch::frame::Frame,
    cpu::{Cpu, online},
    sched::{
        self,
        table::{self, Lookup},
    },
    task::Process,
};

/// Bytes of a set of CPUs: a bit for each.
const SET_BYTES: u64 = 8;

/// Handles a call. If the running thread may no longer run on this CPU, the CPU runs another thread
/// or program after the call.
pub(super) fn call(cpu: &mut Cpu, frame: &mut Frame, number: u64, arguments: [u64; 6]) {
    let index = u32::from(cpu.index);
    let process = cpu.process();
    let [a, b, c, ..] = arguments;
    let answer = match number {
        syscall::GETCPU => write_cpu(process, index, a, b).map(Lookup::Parked),
        syscall::SCHED_GETAFFINITY => get(process, 1 << index, [a, b, c]),
        _ => set(process, a, b, c),
    };
    match answer {
        Ok(Lookup::Parked(value)) => frame.rax = value,
        Ok(Lookup::Running(lapic)) => return preempt_and_restart(cpu, frame, lapic),
        Ok(Lookup::Ended | Lookup::Unknown) => frame.rax = -ESRCH as u64,
        Err(Errno(number)) => frame.rax = -number as u64,
    }
    let here = cpu.bit();
    let process = cpu.process();
    if process.threads.running().affinity & here == 0 {
        process.threads.enqueue_running(frame);
        sched::run_next_thread(cpu, frame);
    }
}

/// `getcpu`: writes the CPU, and memory node 0, as there is only one node.
fn write_cpu(process: &mut Process, index: u32, cpu: u64, node: u64) -> Result<u64, Errno> {
    for (to, number) in [(cpu, index), (node, 0)] {
        if to != 0 {
            process.memory.write(to, &number.to_le_bytes())?;
        }
    }
    Ok(0)
}

/// `sched_getaffinity`: writes one CPU of the set, `here` if that is one of them. Returns the
/// number of bytes written.
fn get(process: &mut Process, here: u64, [of, bytes, to]: [u64; 3]) -> Result<Lookup<u64>, Errno> {
    if bytes == 0 || !bytes.is_multiple_of(SET_BYTES) {
        return Err(Errno(EINVAL));
    }
    let set = match with_affinity(process, of, |affinity| *affinity)? {
        Lookup::Parked(set) => set & online::mask(),
        other => return Ok(other),
    };
    let first = set & set.wrapping_neg();
    process.memory.write_words(to, [if set & here == 0 { first } else { here }])?;
    Ok(Lookup::Parked(SET_BYTES))
}

/// `sched_setaffinity`.
fn set(process: &mut Process, of: u64, bytes: u64, from: u64) -> Result<Lookup<u64>, Errno> {
    let mut set = [0; SET_BYTES as usize];
    let room = (bytes as usize).min(set.len());
    process.memory.read(from, &mut set[..room])?;
    let wanted = u64::from_le_bytes(set);
    if wanted & online::mask() == 0 {
        return Err(Errno(EINVAL));
    }
    with_affinity(process, of, |affinity| {
        *affinity = wanted;
        0
    })
}

/// Calls `with` with the CPUs of a thread: the calling one (0), another one of the program, or the
/// first one of a child.
fn with_affinity(
    process: &mut Process,
    of: u64,
    with: impl FnOnce(&mut u64) -> u64,
) -> Result<Lookup<u64>, Errno> {
    let tid = u32::try_from(of).map_err(|_| Errno(ESRCH))?;
    if tid == 0 {
        return Ok(Lookup::Parked(with(&mut process.threads.running().affinity)));
    }
    if let Some(thread) = process.threads.all().find(|thread| thread.tid == tid) {
        return Ok(Lookup::Parked(with(&mut thread.affinity)));
    }
    let mut table = table::lock();
    if !table.is_child(tid, process.pid) {
        return Err(Errno(ESRCH));
    }
    let found = table.inspect(tid, |child| {
        // A program's first thread has the program's number.
        let first = child.threads.all().find(|thread| thread.tid == tid);
        first.map(|thread| with(&mut thread.affinity))
    });
    Ok(match found {
        Lookup::Parked(Some(answer)) => Lookup::Parked(answer),
        Lookup::Running(lapic) => Lookup::Running(lapic),
        Lookup::Parked(None) | Lookup::Ended | Lookup::Unknown => Lookup::Unknown,
    })
}
