//! Calls on CPU affinity: the program's own threads, and programs that it loaded.
//!
//! Threads of a program take turns on one CPU, so a program learns of one: a library that starts a
//! thread for each CPU would let them wait for each other.

use alloc::vec::Vec;

use tally_abi::{
    CpuSet, CpuSetWords,
    syscall::{
        self,
        errno::{EINVAL, ESRCH},
    },
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

/// Bytes of a word of a set.
const WORD_BYTES: usize = size_of::<u64>();

/// Handles a call. If the running thread may no longer run on this CPU, the CPU runs another thread
/// or program after the call.
pub(super) fn call(cpu: &mut Cpu, frame: &mut Frame, number: u64, arguments: [u64; 6]) {
    let index = cpu.index;
    let process = cpu.process();
    let [a, b, c, ..] = arguments;
    let answer = match number {
        syscall::GETCPU => write_cpu(process, index.into(), a, b).map(Lookup::Parked),
        syscall::SCHED_GETAFFINITY => get(process, index.into(), [a, b, c]),
        _ => set(process, a, b, c),
    };
    match answer {
        Ok(Lookup::Parked(value)) => frame.rax = value,
        Ok(Lookup::Running(lapic)) => return preempt_and_restart(cpu, frame, lapic),
        Ok(Lookup::Ended | Lookup::Unknown) => frame.rax = -ESRCH as u64,
        Err(Errno(number)) => frame.rax = -number as u64,
    }
    let affinity = cpu.process().threads.running().affinity;
    if !cpu.is_in(&affinity) {
        let process = cpu.process();
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

/// `sched_getaffinity`: writes one CPU of the set, `here` if that is one of them, as a set of all
/// online CPUs. Returns the number of bytes written.
fn get(
    process: &mut Process,
    here: usize,
    [of, bytes, to]: [u64; 3],
) -> Result<Lookup<u64>, Errno> {
    let written = online::count().div_ceil(u64::BITS) as usize * WORD_BYTES;
    if bytes < written as u64 || !bytes.is_multiple_of(WORD_BYTES as u64) {
        return Err(Errno(EINVAL));
    }
    let set = match with_affinity(process, of, |affinity| *affinity)? {
        Lookup::Parked(set) => set.intersection(online::set()),
        other => return Ok(other.map(|_| 0)),
    };
    let one = if set.contains(here) { Some(here) } else { set.lowest() };
    let words = one.map_or(CpuSet::default(), CpuSet::of).to_words();
    let set = words.iter().flat_map(|word| word.to_le_bytes()).take(written);
    process.memory.write(to, &set.collect::<Vec<u8>>())?;
    Ok(Lookup::Parked(written as u64))
}

/// `sched_setaffinity`.
fn set(process: &mut Process, of: u64, bytes: u64, from: u64) -> Result<Lookup<u64>, Errno> {
    let mut set = [0; size_of::<CpuSetWords>()];
    let room = (bytes as usize).min(set.len());
    process.memory.read(from, &mut set[..room])?;
    let (words, _) = set.as_chunks::<WORD_BYTES>();
    let wanted = CpuSet::from_words(core::array::from_fn(|at| u64::from_le_bytes(words[at])));
    if wanted.intersection(online::set()).is_empty() {
        return Err(Errno(EINVAL));
    }
    with_affinity(process, of, |affinity| *affinity = wanted).map(|found| found.map(|()| 0))
}

/// Calls `with` with the CPUs of a thread: the calling one (0), another one of the program, or the
/// first one of a child.
fn with_affinity<T>(
    process: &mut Process,
    of: u64,
    with: impl FnOnce(&mut CpuSet) -> T,
) -> Result<Lookup<T>, Errno> {
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
