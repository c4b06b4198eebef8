//! Calls on scheduling: policies, priorities, nice values, and barriers between threads.
//!
//! The kernel keeps the attributes and returns them; the order of turns does not depend on them
//! ([`crate::task::scheduling`]). All threads are those of the calling program.

use tally_abi::syscall::{
    self,
    errno::{E2BIG, EINVAL, EPERM, ESRCH},
};

use super::answer::Errno;
use crate::{
    machine::clock,
    task::{
        Process,
        scheduling::{Policy, Scheduling},
        thread::Thread,
    },
};

/// `SCHED_RESET_ON_FORK`, beside a policy's number.
const RESET_ON_FORK: u32 = 0x4000_0000;
/// `SCHED_FLAG_RESET_ON_FORK`, `SCHED_FLAG_KEEP_POLICY` and `SCHED_FLAG_KEEP_PARAMS` of a `struct
/// sched_attr`; others are for deadlines and for frequencies.
const FLAG_RESET_ON_FORK: u64 = 1;
const FLAG_KEEP_POLICY: u64 = 8;
const FLAG_KEEP_PARAMETERS: u64 = 0x10;
const FLAGS: u64 = FLAG_RESET_ON_FORK | FLAG_KEEP_POLICY | FLAG_KEEP_PARAMETERS;
/// Bytes of a `struct sched_attr` in its first version and at most (a page), and of the words that
/// the kernel writes.
const FIRST_ATTRIBUTE_BYTES: u64 = 48;
const MAX_ATTRIBUTE_BYTES: u64 = 4096;
const ATTRIBUTE_WORDS: usize = 6;
/// Length of a turn under `SCHED_RR`: the scheduler's tick, which is every policy's.
const TURN_NS: u64 = 10_000_000;

/// `PRIO_PROCESS`, `PRIO_PGRP` and `PRIO_USER`; those of I/O priorities are one more.
const OF_THREAD: u64 = 0;
const OF_GROUP: u64 = 1;
const OF_USER: u64 = 2;
/// The difference that makes `getpriority`'s result positive: 20 - the nice value.
const NICE_OFFSET: i32 = 20;
/// The highest class of I/O priorities, `IOPRIO_CLASS_IDLE`, and the bits below the class.
const IO_CLASSES: u64 = 3;
const IO_CLASS_SHIFT: u32 = 13;

// Commands of `membarrier` (`uapi/linux/membarrier.h`).
const QUERY: u64 = 0;
const GLOBAL: u64 = 1;
const PRIVATE: u64 = 1 << 3;
const REGISTER_PRIVATE: u64 = 1 << 4;
const PRIVATE_SYNC_CORE: u64 = 1 << 5;
const REGISTER_PRIVATE_SYNC_CORE: u64 = 1 << 6;
const GET_REGISTRATIONS: u64 = 1 << 9;
const BARRIERS: u64 = GLOBAL
    | PRIVATE
    | REGISTER_PRIVATE
    | PRIVATE_SYNC_CORE
    | REGISTER_PRIVATE_SYNC_CORE
    | GET_REGISTRATIONS;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, ..]: [u64; 6],
) -> Option<Result<u64, Errno>> {
    Some(match number {
        syscall::SCHED_SETSCHEDULER => set(process, a, Some(b as u32), c),
        syscall::SCHED_SETPARAM => set(process, a, None, b),
        syscall::SCHED_GETSCHEDULER => thread(process, a).map(|thread| {
            let Scheduling { policy, resets_on_fork, .. } = thread.scheduling;
            u64::from(policy as u32 | if resets_on_fork { RESET_ON_FORK } else { 0 })
        }),
        syscall::SCHED_GETPARAM => parameter(process, a, b),
        syscall::SCHED_GET_PRIORITY_MIN => policy(a as u32).map(|it| it.priorities()[0].into()),
        syscall::SCHED_GET_PRIORITY_MAX => policy(a as u32).map(|it| it.priorities()[1].into()),
        syscall::SCHED_RR_GET_INTERVAL => interval(process, a, b),
        syscall::SCHED_SETATTR => set_attributes(process, [a, b, c]),
        syscall::SCHED_GETATTR => attributes(process, [a, b, c, d]),
        syscall::GETPRIORITY => best(process, a, b, |it| (NICE_OFFSET - it.nice) as u64),
        syscall::SETPRIORITY => change(process, a, b, |it| it.set_nice(c as i32)),
        // The lower number is the higher priority.
        syscall::IOPRIO_GET => {
            best(process, a.wrapping_sub(1), b, |it| (u16::MAX - it.io_priority).into())
                .map(|best| u64::from(u16::MAX) - best)
        }
        syscall::IOPRIO_SET if c >> IO_CLASS_SHIFT > IO_CLASSES => Err(Errno(EINVAL)),
        syscall::IOPRIO_SET => {
            change(process, a.wrapping_sub(1), b, |it| it.io_priority = c as u16)
        }
        syscall::MEMBARRIER if b != 0 => Err(Errno(EINVAL)),
        syscall::MEMBARRIER => barrier(process, a & u64::from(u32::MAX)),
        _ => return None,
    })
}

fn policy(number: u32) -> Result<Policy, Errno> {
    Policy::of(number).ok_or(Errno(EINVAL))
}

/// The calling thread (0), or another one of the program.
fn thread(process: &mut Process, number: u64) -> Result<&mut Thread, Errno> {
    match u32::try_from(number as i32) {
        Err(_) => Err(Errno(EINVAL)),
        Ok(0) => Ok(process.threads.running()),
        Ok(tid) => process.threads.all().find(|it| it.tid == tid).ok_or(Errno(ESRCH)),
    }
}

/// `sched_setscheduler`, and `sched_setparam`, which keeps the policy.
fn set(process: &mut Process, of: u64, number: Option<u32>, from: u64) -> Result<u64, Errno> {
    if from == 0 || number.is_some_and(|number| number as i32 <= -1) {
        return Err(Errno(EINVAL));
    }
    let mut priority = [0; 4];
    process.memory.read(from, &mut priority)?;
    let of = &mut thread(process, of)?.scheduling;
    let policy = match number {
        Some(number) => policy(number & !RESET_ON_FORK)?,
        None => of.policy,
    };
    if !of.set(policy, u32::from_le_bytes(priority)) {
        return Err(Errno(EINVAL));
    }
    of.resets_on_fork = number.map_or(of.resets_on_fork, |number| number & RESET_ON_FORK != 0);
    Ok(0)
}

/// `sched_getparam`: writes the priority.
fn parameter(process: &mut Process, of: u64, to: u64) -> Result<u64, Errno> {
    if to == 0 {
        return Err(Errno(EINVAL));
    }
    let priority = thread(process, of)?.scheduling.priority;
    process.memory.write(to, &priority.to_le_bytes())?;
    Ok(0)
}

/// `sched_rr_get_interval`: writes the length of a turn; 0 for `SCHED_FIFO`, as under Linux.
fn interval(process: &mut Process, of: u64, to: u64) -> Result<u64, Errno> {
    let policy = thread(process, of)?.scheduling.policy;
    let turn_ns = if policy == Policy::Fifo { 0 } else { TURN_NS };
    process.memory.write_words(to, clock::to_timespec(turn_ns))?;
    Ok(0)
}

/// `sched_setattr`: policy, priority and nice value from a `struct sched_attr`.
fn set_attributes(process: &mut Process, [of, from, flags]: [u64; 3]) -> Result<u64, Errno> {
    if from == 0 || flags != 0 {
        return Err(Errno(EINVAL));
    }
    let [head, flags, values, ..]: [u64; ATTRIBUTE_WORDS] = process.memory.read_words(from)?;
    let size = head & u64::from(u32::MAX);
    if size != 0 && !(FIRST_ATTRIBUTE_BYTES..=MAX_ATTRIBUTE_BYTES).contains(&size) {
        process.memory.write(from, &(FIRST_ATTRIBUTE_BYTES as u32).to_le_bytes())?;
        return Err(Errno(E2BIG));
    }
    let of = &mut thread(process, of)?.scheduling;
    let keeps = |flag| flags & flag != 0;
    let wanted = if keeps(FLAG_KEEP_POLICY) { of.policy } else { policy((head >> 32) as u32)? };
    let [nice, mut priority] = [values as u32, (values >> 32) as u32];
    if keeps(FLAG_KEEP_PARAMETERS) {
        priority = of.priority;
    }
    if flags & !FLAGS != 0 || !of.set(wanted, priority) {
        return Err(Errno(EINVAL));
    }
    if !keeps(FLAG_KEEP_PARAMETERS) && !wanted.is_real_time() {
        of.set_nice(nice as i32);
    }
    of.resets_on_fork = keeps(FLAG_RESET_ON_FORK);
    Ok(0)
}

/// `sched_getattr`: writes a `struct sched_attr`, without deadlines.
fn attributes(process: &mut Process, [of, to, size, flags]: [u64; 4]) -> Result<u64, Errno> {
    let size_fits = (FIRST_ATTRIBUTE_BYTES..=MAX_ATTRIBUTE_BYTES).contains(&size);
    if to == 0 || flags != 0 || !size_fits {
        return Err(Errno(EINVAL));
    }
    let Scheduling { policy, priority, nice, resets_on_fork, .. } = thread(process, of)?.scheduling;
    let nice = if policy.is_real_time() { 0 } else { nice };
    let words: [u64; ATTRIBUTE_WORDS] = [
        u64::from(policy as u32) << 32 | FIRST_ATTRIBUTE_BYTES,
        if resets_on_fork { FLAG_RESET_ON_FORK } else { 0 },
        u64::from(priority) << 32 | u64::from(nice as u32),
        0,
        0,
        0,
    ];
    process.memory.write_words(to, words)?;
    Ok(0)
}

/// The threads that `which` and `who` name: one, or all, as the program is its group's and its
/// user's only one.
fn threads(
    process: &mut Process,
    which: u64,
    who: u64,
) -> Result<impl Iterator<Item = &mut Scheduling>, Errno> {
    let own = process.threads.running().tid;
    let (pid, who) = (process.pid, who as u32);
    let only = match which {
        OF_THREAD if who == 0 => Some(own),
        OF_THREAD => Some(who),
        OF_GROUP if [0, pid].contains(&who) => None,
        OF_USER if who == 0 => None,
        OF_GROUP | OF_USER => Some(0),
        _ => return Err(Errno(EINVAL)),
    };
    let all = process.threads.all().filter(move |it| only.is_none_or(|only| only == it.tid));
    Ok(all.map(|it| &mut it.scheduling))
}

/// The highest value of the named threads.
fn best(
    process: &mut Process,
    which: u64,
    who: u64,
    value: impl Fn(&Scheduling) -> u64,
) -> Result<u64, Errno> {
    threads(process, which, who)?.map(|it| value(it)).max().ok_or(Errno(ESRCH))
}

/// Changes each of the named threads.
fn change(
    process: &mut Process,
    which: u64,
    who: u64,
    with: impl Fn(&mut Scheduling),
) -> Result<u64, Errno> {
    let changed = threads(process, which, who)?.map(with).count();
    if changed == 0 { Err(Errno(ESRCH)) } else { Ok(0) }
}

/// `membarrier`: threads take turns on one CPU, and an entry to the kernel orders all that the
/// calling one did before, so that every barrier is done when the call returns.
fn barrier(process: &mut Process, command: u64) -> Result<u64, Errno> {
    match command {
        QUERY => return Ok(BARRIERS),
        GLOBAL => {}
        REGISTER_PRIVATE | REGISTER_PRIVATE_SYNC_CORE => process.settings.barriers |= command,
        // A registration is the bit above its command.
        PRIVATE | PRIVATE_SYNC_CORE if process.settings.barriers & command << 1 != 0 => {}
        PRIVATE | PRIVATE_SYNC_CORE => return Err(Errno(EPERM)),
        GET_REGISTRATIONS => return Ok(process.settings.barriers),
        _ => return Err(Errno(EINVAL)),
    }
    Ok(0)
}
