//! System calls.
//!
//! The convention is Linux's for x86-64: number in RAX, arguments in RDI, RSI, RDX, R10, R8, R9,
//! result in RAX, RCX and R11 lost. A call that Linux has keeps Linux's number and meaning, so
//! that one program runs here and there; Tally's own begin at [`TALLY_BASE`], which Linux answers
//! with `ENOSYS`. Errors are negative: Linux's numbers for Linux's calls, [`crate::Error`] for
//! Tally's.
//!
//! Long: a constant with its documentation for each call.

/// `read(fd, buffer, bytes)` → bytes read.
pub const READ: u64 = 0;
/// `write(fd, buffer, bytes)` → bytes written. Output of descriptors 1 and 2 goes to the host.
pub const WRITE: u64 = 1;
/// `open(path, flags, mode)` → descriptor. Files of the ramdisk and of memory, `/dev/null`, the
/// outputs. Modes are not kept.
pub const OPEN: u64 = 2;
/// `close(fd)` → 0.
pub const CLOSE: u64 = 3;
/// `stat(path, stat)` → 0. As [`FSTAT`].
pub const STAT: u64 = 4;
/// `fstat(fd, stat)` → 0. Kind and size alone; the rest is zeros.
pub const FSTAT: u64 = 5;
/// `lstat(path, stat)` → 0. There are no links.
pub const LSTAT: u64 = 6;
/// `poll(descriptors, n, milliseconds)` → the number of ready descriptors. Every open descriptor is
/// ready for every event; without one, the call returns after the time or a signal's handler.
pub const POLL: u64 = 7;
/// `lseek(fd, offset, whence)` → new offset.
pub const LSEEK: u64 = 8;
/// `mmap(0, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)` → address. No files, no fixed
/// addresses, nothing executable. Pages with `PROT_NONE` take no memory until [`MPROTECT`] gives
/// them more.
pub const MMAP: u64 = 9;
/// `mprotect(address, bytes, protection)` → 0. Mapped pages of the program's own; nothing becomes
/// executable.
pub const MPROTECT: u64 = 10;
/// `munmap(address, bytes)` → 0. Any pages of the program's own, or none.
pub const MUNMAP: u64 = 11;
/// `brk(address)` → end of the heap, moved to `address` if that can be.
pub const BRK: u64 = 12;
/// `rt_sigaction(signal, action, old, 8)` → 0.
pub const RT_SIGACTION: u64 = 13;
/// `rt_sigprocmask(how, set, old, 8)` → 0.
pub const RT_SIGPROCMASK: u64 = 14;
/// `rt_sigreturn()`: a handler has ended; the thread goes on as the frame says that its handler was
/// given, as far as ring 3 may.
pub const RT_SIGRETURN: u64 = 15;
/// `ioctl(fd, …)`: no descriptor is a terminal, or any other device.
pub const IOCTL: u64 = 16;
/// `pread64(fd, buffer, bytes, offset)` → bytes read.
pub const PREAD64: u64 = 17;
/// `pwrite64(fd, buffer, bytes, offset)` → bytes written.
pub const PWRITE64: u64 = 18;
/// `readv(fd, vector, n)` → bytes read.
pub const READV: u64 = 19;
/// `writev(fd, vector, n)` → bytes written; as `readv`, it ends with the part that makes it 1 MiB.
pub const WRITEV: u64 = 20;
/// `access(path, mode)` → 0 for whatever is there.
pub const ACCESS: u64 = 21;
/// `sched_yield()` → 0.
pub const SCHED_YIELD: u64 = 24;
/// `mremap(start, …)`: no mapping moves; `ENOMEM`, upon which programs copy, or `EFAULT` where
/// nothing is.
pub const MREMAP: u64 = 25;
/// `madvise(start, bytes, advice)` → 0: `MADV_DONTNEED` leaves zeros, what is a mere hint is not
/// taken.
pub const MADVISE: u64 = 28;
/// `dup(fd)` → descriptor.
pub const DUP: u64 = 32;
/// `dup2(fd, to)` → `to`.
pub const DUP2: u64 = 33;
/// `pause()`: waits for a signal's handler.
pub const PAUSE: u64 = 34;
/// `nanosleep(time, left)` → 0. Sleepers wake with the scheduler's timer.
pub const NANOSLEEP: u64 = 35;
/// `getitimer(0, value)` → 0. As [`SETITIMER`].
pub const GETITIMER: u64 = 36;
/// `alarm(seconds)` → seconds that were left. As [`SETITIMER`].
pub const ALARM: u64 = 37;
/// `setitimer(0, value, old)` → 0: a signal after real time; those of the CPU's time are not there.
pub const SETITIMER: u64 = 38;
/// `getpid()` → the program's number.
pub const GETPID: u64 = 39;
/// `sendfile(…)`: `EINVAL`, upon which programs read and write.
pub const SENDFILE: u64 = 40;
/// `clone(flags, stack, parent_tid, child_tid, tls)` → the new thread's number. Threads alone: all
/// that threads of one program share is shared.
pub const CLONE: u64 = 56;
/// `exit(status)`: of the thread that calls it, and of the program with its last; does not return.
pub const EXIT: u64 = 60;
/// `kill(pid, signal)` → 0: the program itself alone. Where there is no handler, a signal ends it
/// with status 128 + `signal`, one that would stop it too.
pub const KILL: u64 = 62;
/// `uname(names)` → 0: Linux's calls, on a machine called `tally`.
pub const UNAME: u64 = 63;
/// `fcntl(fd, command, argument)`: copies, and the flags of access.
pub const FCNTL: u64 = 72;
/// `fsync(fd)` → 0. Files are in memory, where they were written.
pub const FSYNC: u64 = 74;
/// `fdatasync(fd)` → 0. Likewise.
pub const FDATASYNC: u64 = 75;
/// `truncate(path, bytes)` → 0.
pub const TRUNCATE: u64 = 76;
/// `ftruncate(fd, bytes)` → 0.
pub const FTRUNCATE: u64 = 77;
/// `getcwd(buffer, bytes)` → bytes: `/`.
pub const GETCWD: u64 = 79;
/// `rename(from, to)` → 0.
pub const RENAME: u64 = 82;
/// `unlink(path)` → 0. Who has the file open keeps it.
pub const UNLINK: u64 = 87;
/// `readlink(path, buffer, bytes)` → bytes of the target. `/proc/self/exe` alone.
pub const READLINK: u64 = 89;
/// `chmod(path, mode)` → 0. Everybody may do everything with every file.
pub const CHMOD: u64 = 90;
/// `fchmod(fd, mode)` → 0. Likewise.
pub const FCHMOD: u64 = 91;
/// `chown(path, user, group)` → 0. Likewise.
pub const CHOWN: u64 = 92;
/// `fchown(fd, user, group)` → 0. Likewise.
pub const FCHOWN: u64 = 93;
/// `umask(mask)` → 0.
pub const UMASK: u64 = 95;
/// `gettimeofday(time, zone)` → 0: as [`CLOCK_GETTIME`], in microseconds.
pub const GETTIMEOFDAY: u64 = 96;
/// `getuid()`, `getgid()`, `geteuid()`, `getegid()` → 0.
pub const GETUID: u64 = 102;
/// See [`GETUID`].
pub const GETGID: u64 = 104;
/// See [`GETUID`].
pub const GETEUID: u64 = 107;
/// See [`GETUID`].
pub const GETEGID: u64 = 108;
/// `getppid()` → the number of the program that loaded this one, or 0.
pub const GETPPID: u64 = 110;
/// `rt_sigpending(set, 8)` → 0.
pub const RT_SIGPENDING: u64 = 127;
/// `rt_sigtimedwait(set, info, timeout, 8)` → the signal.
pub const RT_SIGTIMEDWAIT: u64 = 128;
/// `rt_sigsuspend(mask, 8)`: waits for a signal's handler.
pub const RT_SIGSUSPEND: u64 = 130;
/// `sigaltstack(stack, old)` → 0.
pub const SIGALTSTACK: u64 = 131;
/// `prctl(…)`: `EINVAL`.
pub const PRCTL: u64 = 157;
/// `arch_prctl(code, address)` → 0: `ARCH_SET_FS` and `ARCH_GET_FS` alone.
pub const ARCH_PRCTL: u64 = 158;
/// `gettid()` → the thread's number; the first one's is the program's.
pub const GETTID: u64 = 186;
/// `tkill(thread, signal)` → 0. A thread of the program.
pub const TKILL: u64 = 200;
/// `time(to)` → seconds. As [`CLOCK_GETTIME`].
pub const TIME: u64 = 201;
/// `futex(word, operation, value, timeout, other, third)`: `FUTEX_WAIT`, `FUTEX_WAKE`, both with a
/// bit set, `FUTEX_REQUEUE` and `FUTEX_CMP_REQUEUE`. A futex is its address: no memory is shared.
pub const FUTEX: u64 = 202;
/// `sched_setaffinity(thread, bytes, set)` → 0: of a thread of the program, or the first one of a
/// program that it loaded.
pub const SCHED_SETAFFINITY: u64 = 203;
/// `sched_getaffinity(thread, bytes, set)` → bytes. Likewise.
pub const SCHED_GETAFFINITY: u64 = 204;
/// `set_tid_address(address)` → the thread's number. When it ends, the word there is cleared, and a
/// waiter woken.
pub const SET_TID_ADDRESS: u64 = 218;
/// `clock_gettime(clock, time)` → 0. Every clock tells the time since boot, real time's too, as no
/// date is known; but that of the program's time on CPUs, and of its thread's if it has one only.
pub const CLOCK_GETTIME: u64 = 228;
/// `clock_getres(clock, time)` → 0: a nanosecond.
pub const CLOCK_GETRES: u64 = 229;
/// `clock_nanosleep(clock, flags, time, left)` → 0. As [`NANOSLEEP`].
pub const CLOCK_NANOSLEEP: u64 = 230;
/// `exit_group(status)`; does not return.
pub const EXIT_GROUP: u64 = 231;
/// `tgkill(program, thread, signal)` → 0. As [`TKILL`].
pub const TGKILL: u64 = 234;
/// `openat(folder, path, flags, mode)` → descriptor. As [`OPEN`], whatever the folder.
pub const OPENAT: u64 = 257;
/// `newfstatat(dirfd, path, stat, flags)` → 0. As [`FSTAT`], of a path, or with an empty one and
/// `AT_EMPTY_PATH` of `dirfd`.
pub const NEWFSTATAT: u64 = 262;
/// `unlinkat(folder, path, flags)` → 0. As [`UNLINK`].
pub const UNLINKAT: u64 = 263;
/// `renameat(folder, from, folder, to)` → 0. As [`RENAME`].
pub const RENAMEAT: u64 = 264;
/// `readlinkat(folder, path, buffer, bytes)`. As [`READLINK`].
pub const READLINKAT: u64 = 267;
/// `faccessat(folder, path, mode)` → 0. As [`ACCESS`].
pub const FACCESSAT: u64 = 269;
/// `ppoll(descriptors, n, time, mask, 8)`. As [`POLL`], with another mask meanwhile; what is left
/// of the time is written.
pub const PPOLL: u64 = 271;
/// `set_robust_list(head, bytes)` → 0. Taken, and not followed: a thread that ends with a robust
/// mutex leaves it locked.
pub const SET_ROBUST_LIST: u64 = 273;
/// `utimensat(folder, path, times, flags)` → 0. Files have no dates.
pub const UTIMENSAT: u64 = 280;
/// `dup3(fd, to, flags)` → `to`.
pub const DUP3: u64 = 292;
/// `prlimit64(0, resource, 0, old)` → 0: the stack's limit, that of descriptors, and none on
/// anything else.
pub const PRLIMIT64: u64 = 302;
/// `getcpu(cpu, node)` → 0.
pub const GETCPU: u64 = 309;
/// `getrandom(buffer, bytes, flags)` → bytes: the same for the same seed and program.
pub const GETRANDOM: u64 = 318;
/// `rseq(…)`: `ENOSYS`; C libraries do without.
pub const RSEQ: u64 = 334;
/// `clone3(…)`: `ENOSYS`, upon which C libraries use [`CLONE`].
pub const CLONE3: u64 = 435;

/// Where Tally's own calls begin.
pub const TALLY_BASE: u64 = 0x7a11_0000;
/// `session_open(events, events_bytes, config, detail, detail_bytes, program)` →
/// [`crate::session::Opened`]: session number and number of events.
///
/// `events` is the list of event names, separated by commas or white space; `config` points to
/// [`crate::session::ConfigWords`]; `program` is the number of a program that the caller loaded, or
/// 0 for itself. A session on another program counts while that one runs, outlives it, and cannot
/// be mapped. On error a text for people is written to `detail`, up to `detail_bytes` bytes and
/// ended by a zero byte.
pub const SESSION_OPEN: u64 = TALLY_BASE;
/// `session_start(session)` → 0: counting begins or goes on.
pub const SESSION_START: u64 = TALLY_BASE + 1;
/// `session_stop(session)` → 0: counting pauses.
pub const SESSION_STOP: u64 = TALLY_BASE + 2;
/// `session_read(session, readings, n)` → number of events: the first `n` are written to
/// `readings`, an array of [`crate::reading::ReadingWords`], in the order of the list. May be
/// called while counting.
pub const SESSION_READ: u64 = TALLY_BASE + 3;
/// `session_stats(session, stats)` → 0: [`crate::session::StatsWords`] are written to `stats`.
pub const SESSION_STATS: u64 = TALLY_BASE + 4;
/// `session_close(session)` → 0: the last values go to the host, then the session is gone. A
/// program that ends has its session closed for it.
pub const SESSION_CLOSE: u64 = TALLY_BASE + 5;

/// `session_map(session)` → address of the session's logical counter bank ([`crate::bank`]),
/// readable until the session closes; the page before it is the program's to write. From here on
/// the program may use RDPMC.
pub const SESSION_MAP: u64 = TALLY_BASE + 6;
/// `session_threshold(session, event, count, handler, data)` → 0: once, when the event's logical
/// counter, as the session's bank shows it, has come to `count`, a record goes to the trace; and if
/// `handler` is not 0, the program goes on there. In place of the threshold that the event has;
/// none if `count` is [`crate::bank::NO_THRESHOLD`]. After [`SESSION_MAP`].
///
/// The handler has the event in RDI, the count in RSI and `data` in RDX, and a stack that is
/// aligned to 16, below the red zone. It ends with [`UPCALL_RETURN`]; other handlers wait until
/// then.
pub const SESSION_THRESHOLD: u64 = TALLY_BASE + 7;
/// `upcall_return()`: a handler has ended; the program goes on where it was interrupted, with all
/// of its registers.
pub const UPCALL_RETURN: u64 = TALLY_BASE + 8;
/// `session_sample(session, event, period)` → 0: each time when the event's logical counter has
/// gone on by `period`, give or take an eighth at random, what is running is noted: in the trace,
/// and by address in a histogram; 0 for no more samples. In place of the event's threshold. Periods
/// become longer where the engine would take more than the session's budget. A session that is not
/// mapped is: so before it is started.
pub const SESSION_SAMPLE: u64 = TALLY_BASE + 9;
/// `session_samples(session, addresses, n)` → number of addresses in the histogram: the first `n`
/// are written to `addresses`, two words each, address and samples, in no order. Address 0 has
/// those for which there was no room, or no address.
pub const SESSION_SAMPLES: u64 = TALLY_BASE + 10;

/// `direct_open(events, events_bytes, mode, indices, detail, detail_bytes)` → number of events.
///
/// Puts all the events on counters at once, at the privilege that is word 0 of
/// [`crate::session::ConfigWords`], from 0 on, and lets the program read them: for each, in the
/// order of the list, RDPMC's ECX is written to `indices`, an array of words. They are the
/// program's until it closes them or ends; nobody switches them, and nothing interrupts. On error
/// `detail` as with [`SESSION_OPEN`].
pub const DIRECT_OPEN: u64 = TALLY_BASE + 0x10;
/// `direct_close()` → 0: the program's counters are taken away.
pub const DIRECT_CLOSE: u64 = TALLY_BASE + 0x11;
/// `trace_map(cpu)` → address of the trace ring of a CPU ([`crate::ring`], of
/// [`crate::trace::RING_WORDS`] in [`crate::trace::RING_PAGES`]), which the program may read for as
/// long as it lives. With the records of all programs: only where `paranoid=0` permits it.
/// `WrongState` where no trace is kept.
pub const TRACE_MAP: u64 = TALLY_BASE + 0x18;
/// `program_load(words, words_bytes, detail, detail_bytes)` → the new program's number.
///
/// `words` are the program's name in the ramdisk and its arguments, each ended by a zero byte. It
/// begins with [`PROGRAM_RUN`], so that there is time to open a session on it. On error `detail` as
/// with [`SESSION_OPEN`].
pub const PROGRAM_LOAD: u64 = TALLY_BASE + 0x20;
/// `program_run(program)` → 0: a program that the caller loaded begins.
pub const PROGRAM_RUN: u64 = TALLY_BASE + 0x21;
/// `program_wait(program)` → its status, 0 to 255, when it has ended: a program that the caller
/// loaded and let run, which is forgotten then. `-EINTR` when a signal's handler without
/// `SA_RESTART` has run.
pub const PROGRAM_WAIT: u64 = TALLY_BASE + 0x22;

/// The names of numbers, which are their constants' names.
macro_rules! names {
    ($(#[doc = $about:literal])+ $number:ty: $($name:ident,)*) => {
        $(#[doc = $about])+
        pub fn name(number: $number) -> Option<&'static str> {
            match number {
                $($name => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

names! {
    /// The name of a call, as its constant is called; none if there is no such call.
    u64:
    READ, WRITE, OPEN, CLOSE, STAT, FSTAT, LSTAT, POLL, LSEEK, MMAP, MPROTECT, MUNMAP, BRK,
    RT_SIGACTION, RT_SIGPROCMASK, RT_SIGRETURN, IOCTL, PREAD64, PWRITE64, READV, WRITEV, ACCESS,
    SCHED_YIELD, MREMAP, MADVISE, DUP, DUP2, PAUSE, NANOSLEEP, GETITIMER, ALARM, SETITIMER, GETPID,
    SENDFILE, CLONE, EXIT, KILL, UNAME, FCNTL, FSYNC, FDATASYNC, TRUNCATE, FTRUNCATE, GETCWD,
    RENAME, UNLINK, READLINK, CHMOD, FCHMOD, CHOWN, FCHOWN, UMASK, GETTIMEOFDAY, GETUID, GETGID,
    GETEUID, GETEGID, GETPPID, RT_SIGPENDING, RT_SIGTIMEDWAIT, RT_SIGSUSPEND, SIGALTSTACK, PRCTL,
    ARCH_PRCTL, GETTID, TKILL, TIME, FUTEX, SCHED_SETAFFINITY, SCHED_GETAFFINITY, SET_TID_ADDRESS,
    CLOCK_GETTIME, CLOCK_GETRES, CLOCK_NANOSLEEP, EXIT_GROUP, TGKILL, OPENAT, NEWFSTATAT, UNLINKAT,
    RENAMEAT, READLINKAT, FACCESSAT, PPOLL, SET_ROBUST_LIST, UTIMENSAT, DUP3, PRLIMIT64, GETCPU,
    GETRANDOM, RSEQ, CLONE3, SESSION_OPEN, SESSION_START, SESSION_STOP, SESSION_READ, SESSION_STATS,
    SESSION_CLOSE, SESSION_MAP, SESSION_THRESHOLD, UPCALL_RETURN, SESSION_SAMPLE, SESSION_SAMPLES,
    DIRECT_OPEN, DIRECT_CLOSE, TRACE_MAP, PROGRAM_LOAD, PROGRAM_RUN, PROGRAM_WAIT,
}

/// Linux's error numbers that the calls above return, as positive numbers.
pub mod errno {
    /// It may not be done now.
    pub const EPERM: i64 = 1;
    /// No such file.
    pub const ENOENT: i64 = 2;
    /// No such program.
    pub const ESRCH: i64 = 3;
    /// A signal's handler ran meanwhile.
    pub const EINTR: i64 = 4;
    /// Bad file descriptor.
    pub const EBADF: i64 = 9;
    /// Not now; for a thread, one too many.
    pub const EAGAIN: i64 = 11;
    /// Out of memory.
    pub const ENOMEM: i64 = 12;
    /// A buffer is not in the program's memory.
    pub const EFAULT: i64 = 14;
    /// There is such a file.
    pub const EEXIST: i64 = 17;
    /// It is a folder.
    pub const EISDIR: i64 = 21;
    /// Invalid argument.
    pub const EINVAL: i64 = 22;
    /// Too many open files.
    pub const EMFILE: i64 = 24;
    /// Not a terminal.
    pub const ENOTTY: i64 = 25;
    /// No memory for what is written.
    pub const ENOSPC: i64 = 28;
    /// Not a file that has positions.
    pub const ESPIPE: i64 = 29;
    /// The buffer is too small.
    pub const ERANGE: i64 = 34;
    /// The path is too long.
    pub const ENAMETOOLONG: i64 = 36;
    /// No such system call.
    pub const ENOSYS: i64 = 38;
    /// Timed out.
    pub const ETIMEDOUT: i64 = 110;

    names! {
        /// The name of an error number, positive; none if no call returns it.
        i64:
        EPERM, ENOENT, ESRCH, EINTR, EBADF, EAGAIN, ENOMEM, EFAULT, EEXIST, EISDIR, EINVAL, EMFILE,
        ENOTTY, ENOSPC, ESPIPE, ERANGE, ENAMETOOLONG, ENOSYS, ETIMEDOUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every constant of this file with its number's type, but for [`TALLY_BASE`].
    fn constants(number: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
        let lines = include_str!("syscall.rs").lines().map(str::trim);
        let marked = lines.filter_map(|line| line.strip_prefix("pub const ")?.strip_suffix(';'));
        marked.filter_map(move |line| {
            let (name, value) = line.split_once(": ")?;
            value.strip_prefix(number)?.strip_prefix(" = ").map(|value| (name, value))
        })
    }

    #[test]
    fn every_call_and_every_error_number_has_its_name() {
        assert_eq!(
            (name(WRITE), name(PROGRAM_WAIT), name(500)),
            (Some("WRITE"), Some("PROGRAM_WAIT"), None)
        );
        assert_eq!((errno::name(errno::ENOENT), errno::name(200)), (Some("ENOENT"), None));
        let text = |value: &str| match value.split_once("TALLY_BASE") {
            None => value.replace('_', "").parse().ok(),
            Some((_, "")) => Some(TALLY_BASE),
            Some((_, more)) => {
                let more = more.trim_start_matches(" + ");
                let more = match more.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16),
                    None => more.parse(),
                };
                more.ok().map(|more| TALLY_BASE + more)
            }
        };
        let calls = constants("u64").filter(|(constant, _)| *constant != "TALLY_BASE");
        for (constant, value) in calls {
            assert_eq!(name(text(value).unwrap()), Some(constant), "{value}");
        }
        for (constant, value) in constants("i64") {
            assert_eq!(errno::name(value.parse().unwrap()), Some(constant));
        }
        assert!(constants("u64").count() > 100 && constants("i64").count() > 10);
    }
}
