//! Calls on the machine and on programs' use of it.

use tally_abi::{
    syscall::{self, errno::EINVAL},
    usage::Usage,
};

use super::answer::Errno;
use crate::{
    machine::clock::{self, SECOND_NS},
    memory::frames,
    sched::table,
    task::{CLOCK_TICKS, Process},
};

/// `RUSAGE_SELF`, `RUSAGE_CHILDREN` and `RUSAGE_THREAD`, as C's `int`.
const OF_SELF: i32 = 0;
const OF_CHILDREN: i32 = -1;
const OF_THREAD: i32 = 1;
const MICROSECOND_NS: u64 = 1000;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, ..]: [u64; 6],
) -> Option<Result<u64, Errno>> {
    Some(match number {
        syscall::SYSINFO => describe(process, a),
        syscall::GETRUSAGE => usage(process, a as i32, b),
        syscall::TIMES => times(process, a),
        _ => return None,
    })
}

/// `sysinfo`: writes a `struct sysinfo`, in units of a byte.
fn describe(process: &mut Process, to: u64) -> Result<u64, Errno> {
    let frames::Usage { all, free } = frames::usage();
    let uptime = clock::now_ns() / SECOND_NS;
    let programs = table::lock().len() as u64;
    let words = [uptime, 0, 0, 0, all, free, 0, 0, 0, 0, programs, 0, 0, 1];
    process.memory.write_words(to, words)?;
    Ok(0)
}

/// `getrusage`: time in ring 3 and in ring 0, memory, page faults and context switches; for
/// children, the sum over those that were waited for.
fn usage(process: &mut Process, of: i32, to: u64) -> Result<u64, Errno> {
    let resident = process.memory.space.resident_bytes();
    let (used, resident) = match of {
        OF_SELF => (process.usage(), resident),
        OF_THREAD => {
            let own = process.threads.running().tid;
            let ran = process.threads.ran(Some(own)).unwrap_or_default();
            let (user_ns, system_ns) = (ran.user_ns(), ran.system_ns());
            (Usage { user_ns, system_ns, ..Usage::default() }, resident)
        }
        OF_CHILDREN => (table::lock().children_usage(process.pid), 0),
        _ => return Err(Errno(EINVAL)),
    };
    let mut words = [0; 18];
    for (place, time) in [used.user_ns, used.system_ns].into_iter().enumerate() {
        let [seconds, rest] = clock::to_timespec(time);
        words[2 * place..][..2].copy_from_slice(&[seconds, rest / MICROSECOND_NS]);
    }
    words[4] = resident >> 10;
    [words[8], words[16], words[17]] = [used.page_faults, used.waits, used.preemptions];
    process.memory.write_words(to, words)?;
    Ok(0)
}

/// `times`: time in ring 3 and in ring 0, of the program and of children that were waited for;
/// returns the time since boot.
fn times(process: &mut Process, to: u64) -> Result<u64, Errno> {
    let ticks = |time: u64| time / (SECOND_NS / CLOCK_TICKS);
    if to != 0 {
        let (own, children) = (process.usage(), table::lock().children_usage(process.pid));
        let times = [own.user_ns, own.system_ns, children.user_ns, children.system_ns];
        process.memory.write_words(to, times.map(ticks))?;
    }
    Ok(ticks(clock::now_ns()))
}
