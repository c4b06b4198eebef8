//! System calls.
//!
//! The convention is Linux's for x86-64: the number in RAX, the arguments in RDI, RSI, RDX, R10,
//! R8 and R9, the result in RAX; RCX and R11 are overwritten. Linux's calls have Linux's numbers
//! and meanings, so that one binary runs on Tally and on Linux. Tally's own calls begin at
//! [`TALLY_BASE`]; Linux answers them with `ENOSYS`. Errors are negative results: Linux's error
//! numbers for Linux's calls, [`crate::Error`] for Tally's.
//!
//! Long: a constant with its documentation for each call.

/// First of Tally's own calls.
pub const TALLY_BASE: u64 = 0x7a11_0000;

/// Defines constants, and a function from a number to the name of its constant.
macro_rules! numbers {
    (
        $(#[doc = $about:literal])+
        fn name($number:ty);
        $($(#[doc = $line:literal])+ $name:ident = $value:expr;)*
    ) => {
        $($(#[doc = $line])+ pub const $name: $number = $value;)*

        $(#[doc = $about])+
        pub fn name(number: $number) -> Option<&'static str> {
            match number {
                $($name => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

numbers! {
    /// Returns the name of a call's constant; `None` if no call has this number.
    fn name(u64);

    /// `read(fd, buffer, bytes)` → bytes read.
    READ = 0;
    /// `write(fd, buffer, bytes)` → bytes written. Output of descriptors 1 and 2 goes to the host.
    WRITE = 1;
    /// `open(path, flags, mode)` → descriptor. Opens files of the ramdisk and files in memory,
    /// folders, `/dev/null` and other devices, the standard outputs, and the texts of `/proc` and
    /// `/sys`. Files have no modes.
    OPEN = 2;
    /// `close(fd)` → 0.
    CLOSE = 3;
    /// `stat(path, stat)` → 0. As [`FSTAT`], for a path; follows symbolic links.
    STAT = 4;
    /// `fstat(fd, stat)` → 0. Writes device, inode number, links, type and permissions, size, block
    /// size, blocks and dates. The owner is 0.
    FSTAT = 5;
    /// `lstat(path, stat)` → 0. As [`STAT`], but does not follow a symbolic link at the end of the
    /// path.
    LSTAT = 6;
    /// `poll(descriptors, n, milliseconds)` → number of ready descriptors. Files, folders and
    /// devices are always ready to read and write, standard outputs to write; pipes, sockets, event
    /// counters, timers, `signalfd` and `epoll` descriptors when they have data or room. The call
    /// waits for a ready descriptor, the timeout or a signal handler.
    POLL = 7;
    /// `lseek(fd, offset, whence)` → new offset.
    LSEEK = 8;
    /// `mmap(address, bytes, protection, flags, fd, offset)` → address. Pages take memory when they
    /// are touched. A page that would be writable and executable: `EACCES`, without `jit=yes`.
    MMAP = 9;
    /// `mprotect(address, bytes, protection)` → 0. Works only on pages that the program has mapped.
    /// A page that would be writable and executable: `EACCES`, without `jit=yes`.
    MPROTECT = 10;
    /// `munmap(address, bytes)` → 0. Works only on the program's own mappings; the range may
    /// contain none.
    MUNMAP = 11;
    /// `brk(address)` → end of the heap. Moves the end to `address` if that is possible.
    BRK = 12;
    /// `rt_sigaction(signal, action, old, 8)` → 0.
    RT_SIGACTION = 13;
    /// `rt_sigprocmask(how, set, old, 8)` → 0.
    RT_SIGPROCMASK = 14;
    /// `rt_sigreturn()`: returns from a signal handler. The thread continues with the registers of
    /// its signal frame; the kernel ignores or rejects values that ring 3 may not set.
    RT_SIGRETURN = 15;
    /// `ioctl(fd, request, argument)` → 0. `FIONREAD`, `FIONBIO`, `FIOCLEX` and `FIONCLEX`; others:
    /// `ENOTTY`, as no descriptor is a terminal.
    IOCTL = 16;
    /// `pread64(fd, buffer, bytes, offset)` → bytes read.
    PREAD64 = 17;
    /// `pwrite64(fd, buffer, bytes, offset)` → bytes written.
    PWRITE64 = 18;
    /// `readv(fd, vector, n)` → bytes read.
    READV = 19;
    /// `writev(fd, vector, n)` → bytes written. `readv` and `writev` take at most 1,024 buffers and
    /// transfer at most 7FFF_F000H bytes.
    WRITEV = 20;
    /// `access(path, mode)` → 0 for every existing file. `X_OK` on a device or a generated text:
    /// `EACCES`.
    ACCESS = 21;
    /// `pipe(ends)` → 0. Makes a pipe of 64 KiB; both ends are the program's own.
    PIPE = 22;
    /// `select(n, read, write, errors, time)` → ready descriptors. As [`POLL`].
    SELECT = 23;
    /// `sched_yield()` → 0.
    SCHED_YIELD = 24;
    /// `mremap(start, old, bytes, flags, to)` → address. The mapping moves only with
    /// `MREMAP_MAYMOVE`; with `MREMAP_FIXED` too, it moves to `to` and replaces the mappings there.
    MREMAP = 25;
    /// `msync(start, bytes, flags)` → 0 if the whole range is mapped. Files are in memory, so
    /// nothing is written.
    MSYNC = 26;
    /// `mincore(start, bytes, to)` → 0. Writes a byte for each page to `to`: 1 if it is there.
    MINCORE = 27;
    /// `madvise(start, bytes, advice)` → 0. `MADV_DONTNEED` drops the pages; the kernel ignores
    /// hints.
    MADVISE = 28;
    /// `dup(fd)` → descriptor.
    DUP = 32;
    /// `dup2(fd, to)` → `to`.
    DUP2 = 33;
    /// `pause()`: waits for a signal handler.
    PAUSE = 34;
    /// `nanosleep(time, left)` → 0. The scheduler wakes threads at its ticks, every 10 ms.
    NANOSLEEP = 35;
    /// `getitimer(which, value)` → 0. As [`SETITIMER`].
    GETITIMER = 36;
    /// `alarm(seconds)` → seconds that the previous alarm had left. As [`SETITIMER`].
    ALARM = 37;
    /// `setitimer(which, value, old)` → 0. Sends a signal after a real time, or after the program
    /// has used that much CPU time: in ring 3, or in both rings.
    SETITIMER = 38;
    /// `getpid()` → the program's number.
    GETPID = 39;
    /// `sendfile(out, in, offset, bytes)` → bytes copied, from a file to a file, a pipe, a socket
    /// or the standard output. A copy within one file may be short.
    SENDFILE = 40;
    /// `socket(…)`: `EAFNOSUPPORT`. There is no network.
    SOCKET = 41;
    /// `sendto(fd, buffer, bytes, flags, 0, 0)` → bytes sent. Only on a socket of [`SOCKETPAIR`].
    SENDTO = 44;
    /// `recvfrom(fd, buffer, bytes, flags, 0, 0)` → bytes received. Only on a socket of
    /// [`SOCKETPAIR`].
    RECVFROM = 45;
    /// `shutdown(fd, how)` → 0. Only on a socket of [`SOCKETPAIR`].
    SHUTDOWN = 48;
    /// `socketpair(AF_UNIX, SOCK_STREAM, 0, ends)` → 0. Both ends are the program's own.
    SOCKETPAIR = 53;
    /// `clone(flags, stack, parent_tid, child_tid, tls)` → the new thread's number. Makes threads
    /// only: without `CLONE_VM`, `CLONE_SIGHAND` and `CLONE_THREAD`, `ENOSYS`.
    CLONE = 56;
    /// `exit(status)`: ends the calling thread; the last thread's end ends the program. Does not
    /// return.
    EXIT = 60;
    /// `wait4(child, status, options, usage)` → `-ECHILD`: no program has a child of
    /// Linux's kind.
    WAIT4 = 61;
    /// `kill(pid, signal)` → 0. A program can send signals only to itself. A signal without a
    /// handler ends the program with status 128 + `signal`, even if Linux would stop the program.
    KILL = 62;
    /// `uname(names)` → 0: Linux as the system, `tally` as the machine.
    UNAME = 63;
    /// `fcntl(fd, command, argument)`: duplicates descriptors, reads and sets their flags, reads a
    /// pipe's capacity, sets and tests record locks.
    FCNTL = 72;
    /// `flock(fd, operation)` → 0. Takes or releases an advisory lock on the whole file.
    FLOCK = 73;
    /// `fsync(fd)` → 0. Files are in memory: the call has nothing to do.
    FSYNC = 74;
    /// `fdatasync(fd)` → 0. As [`FSYNC`].
    FDATASYNC = 75;
    /// `truncate(path, bytes)` → 0.
    TRUNCATE = 76;
    /// `ftruncate(fd, bytes)` → 0.
    FTRUNCATE = 77;
    /// `getcwd(buffer, bytes)` → bytes of the working folder's path, its zero byte included.
    GETCWD = 79;
    /// `chdir(path)` → 0.
    CHDIR = 80;
    /// `fchdir(fd)` → 0.
    FCHDIR = 81;
    /// `rename(from, to)` → 0.
    RENAME = 82;
    /// `mkdir(path, mode)` → 0.
    MKDIR = 83;
    /// `rmdir(path)` → 0.
    RMDIR = 84;
    /// `creat(path, mode)` → descriptor. As [`OPEN`].
    CREAT = 85;
    /// `link(from, to)` → 0.
    LINK = 86;
    /// `unlink(path)` → 0. Open descriptors of the file stay valid.
    UNLINK = 87;
    /// `symlink(target, path)` → 0.
    SYMLINK = 88;
    /// `readlink(path, buffer, bytes)` → bytes of the symbolic link's target, cut to the buffer.
    /// `/proc/self/exe` is a link to the program's file; other files: `EINVAL`.
    READLINK = 89;
    /// `chmod(path, mode)` → 0. Has no effect: files have no modes and no owners.
    CHMOD = 90;
    /// `fchmod(fd, mode)` → 0. As [`CHMOD`].
    FCHMOD = 91;
    /// `chown(path, user, group)` → 0. As [`CHMOD`].
    CHOWN = 92;
    /// `fchown(fd, user, group)` → 0. As [`CHMOD`].
    FCHOWN = 93;
    /// `lchown(path, user, group)` → 0. As [`CHOWN`].
    LCHOWN = 94;
    /// `umask(mask)` → the mask before, 022 octal at first. Has no effect: files have no modes.
    UMASK = 95;
    /// `gettimeofday(time, zone)` → 0. Writes the date as [`CLOCK_GETTIME`] does, in microseconds.
    GETTIMEOFDAY = 96;
    /// `getrlimit(resource, limit)` → 0. As [`PRLIMIT64`].
    GETRLIMIT = 97;
    /// `getrusage(who, usage)` → 0. Writes time on CPUs, memory, page faults and context switches.
    /// `RUSAGE_CHILDREN` covers the programs that the caller has waited for.
    GETRUSAGE = 98;
    /// `sysinfo(info)` → 0. Writes memory, programs and time since boot.
    SYSINFO = 99;
    /// `times(times)` → ticks since boot. Writes time on CPUs, in hundredths of a second.
    TIMES = 100;
    /// `getuid()`, `getgid()`, `geteuid()`, `getegid()` → 0.
    GETUID = 102;
    /// See [`GETUID`].
    GETGID = 104;
    /// See [`GETUID`].
    GETEUID = 107;
    /// See [`GETUID`].
    GETEGID = 108;
    /// `getppid()` → the number of the program that loaded this one, or 0.
    GETPPID = 110;
    /// `getpgrp()` → the program's number.
    GETPGRP = 111;
    /// `getgroups(n, groups)` → 0: the program is in no group.
    GETGROUPS = 115;
    /// `getresuid(real, effective, saved)` → 0. Writes 0 to all three.
    GETRESUID = 118;
    /// `getresgid(real, effective, saved)` → 0. Writes 0 to all three.
    GETRESGID = 120;
    /// `getpgid(program)` → the calling program's number.
    GETPGID = 121;
    /// `getsid(program)` → the calling program's number.
    GETSID = 124;
    /// `rt_sigpending(set, 8)` → 0.
    RT_SIGPENDING = 127;
    /// `rt_sigtimedwait(set, info, timeout, 8)` → the signal. Consumes a pending signal of the set,
    /// or waits for one, without calling its handler.
    RT_SIGTIMEDWAIT = 128;
    /// `rt_sigqueueinfo(program, signal, info)` → 0. Sends a signal with a value; only to the
    /// program itself.
    RT_SIGQUEUEINFO = 129;
    /// `rt_sigsuspend(mask, 8)`: waits for a signal's handler.
    RT_SIGSUSPEND = 130;
    /// `sigaltstack(stack, old)` → 0.
    SIGALTSTACK = 131;
    /// `personality(number)` → the number before. `ADDR_NO_RANDOMIZE` has no effect, because
    /// addresses are the same in every run; others: `EINVAL`. FFFF_FFFFH only asks.
    PERSONALITY = 135;
    /// `statfs(path, room)` → 0. Writes the room for files in memory: half of the memory.
    STATFS = 137;
    /// `fstatfs(fd, room)` → 0. As [`STATFS`].
    FSTATFS = 138;
    /// `getpriority(which, who)` → 20 - the nice value, of the calling program's threads.
    GETPRIORITY = 140;
    /// `setpriority(which, who, nice)` → 0. As [`SCHED_SETSCHEDULER`].
    SETPRIORITY = 141;
    /// `sched_setparam(thread, priority)` → 0. As [`SCHED_SETSCHEDULER`].
    SCHED_SETPARAM = 142;
    /// `sched_getparam(thread, priority)` → 0.
    SCHED_GETPARAM = 143;
    /// `sched_setscheduler(thread, policy, priority)` → 0. Sets attributes of a thread of the
    /// calling program, which do not change the order in which threads take turns. No
    /// `SCHED_DEADLINE`.
    SCHED_SETSCHEDULER = 144;
    /// `sched_getscheduler(thread)` → policy.
    SCHED_GETSCHEDULER = 145;
    /// `sched_get_priority_max(policy)` → the highest priority.
    SCHED_GET_PRIORITY_MAX = 146;
    /// `sched_get_priority_min(policy)` → the lowest priority.
    SCHED_GET_PRIORITY_MIN = 147;
    /// `sched_rr_get_interval(thread, time)` → 0. Writes the length of a turn.
    SCHED_RR_GET_INTERVAL = 148;
    /// `mlock(start, bytes)` → 0 if the whole range is mapped. Memory is never swapped out.
    MLOCK = 149;
    /// `munlock(start, bytes)` → 0. As [`MLOCK`].
    MUNLOCK = 150;
    /// `mlockall(flags)` → 0. Has no effect: memory is never swapped out.
    MLOCKALL = 151;
    /// `munlockall()` → 0. As [`MLOCKALL`].
    MUNLOCKALL = 152;
    /// `prctl(code, argument)`: `PR_SET_NAME` and `PR_GET_NAME` of the calling thread;
    /// `PR_CAPBSET_READ` → 1 for every capability. Others: `EINVAL`.
    PRCTL = 157;
    /// `arch_prctl(code, address)` → 0. Only `ARCH_SET_FS` and `ARCH_GET_FS`.
    ARCH_PRCTL = 158;
    /// `setrlimit(resource, limits)` → 0. As [`PRLIMIT64`].
    SETRLIMIT = 160;
    /// `sync()` → 0. Has no effect: files are in memory.
    SYNC = 162;
    /// `gettid()` → the thread's number. The first thread has the program's number.
    GETTID = 186;
    /// `setxattr(path, name, value, bytes, flags)` → `EOPNOTSUPP`: files have no extended
    /// attributes, as on a file system without them.
    SETXATTR = 188;
    /// `lsetxattr(path, name, value, bytes, flags)` → as [`SETXATTR`].
    LSETXATTR = 189;
    /// `fsetxattr(fd, name, value, bytes, flags)` → as [`SETXATTR`].
    FSETXATTR = 190;
    /// `getxattr(path, name, value, bytes)` → as [`SETXATTR`].
    GETXATTR = 191;
    /// `lgetxattr(path, name, value, bytes)` → as [`SETXATTR`].
    LGETXATTR = 192;
    /// `fgetxattr(fd, name, value, bytes)` → as [`SETXATTR`].
    FGETXATTR = 193;
    /// `listxattr(path, list, bytes)` → as [`SETXATTR`].
    LISTXATTR = 194;
    /// `llistxattr(path, list, bytes)` → as [`SETXATTR`].
    LLISTXATTR = 195;
    /// `flistxattr(fd, list, bytes)` → as [`SETXATTR`].
    FLISTXATTR = 196;
    /// `removexattr(path, name)` → as [`SETXATTR`].
    REMOVEXATTR = 197;
    /// `lremovexattr(path, name)` → as [`SETXATTR`].
    LREMOVEXATTR = 198;
    /// `fremovexattr(fd, name)` → as [`SETXATTR`].
    FREMOVEXATTR = 199;
    /// `tkill(thread, signal)` → 0. Sends a signal to a thread of the calling program.
    TKILL = 200;
    /// `time(to)` → the date in seconds since 1970. As [`CLOCK_GETTIME`].
    TIME = 201;
    /// `futex(word, operation, value, timeout, other, third)`: `FUTEX_WAIT`, `FUTEX_WAKE`, their
    /// `_BITSET` forms, `FUTEX_REQUEUE`, `FUTEX_CMP_REQUEUE`, `FUTEX_WAKE_OP`, and the mutexes of
    /// `FUTEX_LOCK_PI`, `FUTEX_LOCK_PI2`, `FUTEX_TRYLOCK_PI` and `FUTEX_UNLOCK_PI`, which the
    /// kernel hands over to the thread that has waited longest. All futexes are private: the word's
    /// address in the program identifies the futex.
    FUTEX = 202;
    /// `sched_setaffinity(thread, bytes, set)` → 0. Sets the CPUs of a thread of the calling
    /// program, or of the first thread of a program that it loaded.
    SCHED_SETAFFINITY = 203;
    /// `sched_getaffinity(thread, bytes, set)` → bytes written. Accepts the threads of
    /// [`SCHED_SETAFFINITY`].
    SCHED_GETAFFINITY = 204;
    /// `epoll_create(n)` → descriptor.
    EPOLL_CREATE = 213;
    /// `getdents64(fd, buffer, bytes)` → bytes. Writes the names in a folder.
    GETDENTS64 = 217;
    /// `set_tid_address(address)` → the thread's number. When the thread ends, the kernel clears
    /// the word at `address` and wakes one waiter of that futex.
    SET_TID_ADDRESS = 218;
    /// `fadvise64(fd, offset, bytes, advice)` → 0.
    FADVISE64 = 221;
    /// `timer_create(clock, event, timer)` → 0. Writes the timer's number.
    TIMER_CREATE = 222;
    /// `timer_settime(timer, flags, new, old)` → 0.
    TIMER_SETTIME = 223;
    /// `timer_gettime(timer, value)` → 0.
    TIMER_GETTIME = 224;
    /// `timer_getoverrun(timer)` → expirations of the timer while its last delivered signal was
    /// pending.
    TIMER_GETOVERRUN = 225;
    /// `timer_delete(timer)` → 0.
    TIMER_DELETE = 226;
    /// `clock_gettime(clock, time)` → 0. `CLOCK_REALTIME`, its coarse and alarm forms and
    /// `CLOCK_TAI` show the date: the one of the command line ([`crate::boot::CommandLine::date`])
    /// plus the time since boot. The clocks of CPU time show a program's or a thread's. All others
    /// show the time since boot.
    CLOCK_GETTIME = 228;
    /// `clock_getres(clock, time)` → 0: one nanosecond.
    CLOCK_GETRES = 229;
    /// `clock_nanosleep(clock, flags, time, left)` → 0. As [`NANOSLEEP`].
    CLOCK_NANOSLEEP = 230;
    /// `exit_group(status)`; does not return.
    EXIT_GROUP = 231;
    /// `epoll_wait(fd, events, n, milliseconds)` → events. As [`POLL`].
    EPOLL_WAIT = 232;
    /// `epoll_ctl(fd, operation, descriptor, event)` → 0. Closing the descriptor's number ends its
    /// registration.
    EPOLL_CTL = 233;
    /// `tgkill(program, thread, signal)` → 0. As [`TKILL`].
    TGKILL = 234;
    /// `waitid(which, child, info, options, usage)` → `-ECHILD`. As [`WAIT4`].
    WAITID = 247;
    /// `ioprio_set(which, who, priority)` → 0. Kept without effect.
    IOPRIO_SET = 251;
    /// `ioprio_get(which, who)` → the highest I/O priority.
    IOPRIO_GET = 252;
    /// `openat(folder, path, flags, mode)` → descriptor. As [`OPEN`]; a relative path begins at the
    /// descriptor `folder`, or at the working folder with `AT_FDCWD`.
    OPENAT = 257;
    /// `mkdirat(folder, path, mode)` → 0. As [`MKDIR`].
    MKDIRAT = 258;
    /// `fchownat(folder, path, user, group, flags)` → 0. As [`CHOWN`].
    FCHOWNAT = 260;
    /// `newfstatat(folder, path, stat, flags)` → 0. As [`STAT`], with `folder` as for [`OPENAT`];
    /// as [`LSTAT`] with `AT_SYMLINK_NOFOLLOW`; of `folder` itself with an empty path and
    /// `AT_EMPTY_PATH`.
    NEWFSTATAT = 262;
    /// `unlinkat(folder, path, flags)` → 0. As [`UNLINK`].
    UNLINKAT = 263;
    /// `renameat(folder, from, folder, to)` → 0. As [`RENAME`].
    RENAMEAT = 264;
    /// `linkat(folder, from, folder, to, flags)` → 0. As [`LINK`].
    LINKAT = 265;
    /// `symlinkat(target, folder, path)` → 0. As [`SYMLINK`].
    SYMLINKAT = 266;
    /// `readlinkat(folder, path, buffer, bytes)`. As [`READLINK`].
    READLINKAT = 267;
    /// `fchmodat(folder, path, mode)` → 0. As [`CHMOD`].
    FCHMODAT = 268;
    /// `faccessat(folder, path, mode)` → 0. As [`ACCESS`].
    FACCESSAT = 269;
    /// `pselect6(n, read, write, errors, time, mask)` → ready descriptors. As [`SELECT`].
    PSELECT6 = 270;
    /// `ppoll(descriptors, n, time, mask, 8)`. As [`POLL`], with another signal mask during the
    /// wait. Writes the remaining time to `time`.
    PPOLL = 271;
    /// `set_robust_list(head, 24)` → 0. Sets the address of the thread's list of robust mutexes.
    SET_ROBUST_LIST = 273;
    /// `sync_file_range(fd, offset, bytes, flags)` → 0. As [`FSYNC`].
    SYNC_FILE_RANGE = 277;
    /// `get_robust_list(0, head, bytes)` → 0. Only the calling thread's list can be read.
    GET_ROBUST_LIST = 274;
    /// `utimensat(folder, path, times, flags)` → 0. Sets the date of a file's last change. Files
    /// have no other date, and folders have none.
    UTIMENSAT = 280;
    /// `epoll_pwait(fd, events, n, milliseconds, mask, 8)` → events. As [`EPOLL_WAIT`].
    EPOLL_PWAIT = 281;
    /// `signalfd(fd, set, 8)` → descriptor. As [`SIGNALFD4`].
    SIGNALFD = 282;
    /// `timerfd_create(clock, flags)` → descriptor.
    TIMERFD_CREATE = 283;
    /// `eventfd(count)` → descriptor.
    EVENTFD = 284;
    /// `fallocate(fd, mode, offset, bytes)` → 0. Extends the file; with `FALLOC_FL_KEEP_SIZE` only
    /// checks that there is room. Other modes: `EOPNOTSUPP`.
    FALLOCATE = 285;
    /// `timerfd_settime(fd, flags, new, old)` → 0.
    TIMERFD_SETTIME = 286;
    /// `timerfd_gettime(fd, value)` → 0.
    TIMERFD_GETTIME = 287;
    /// `signalfd4(fd, set, 8, flags)` → descriptor. Makes a descriptor if `fd` is −1, else sets its
    /// signals. Reading it consumes pending signals of the set.
    SIGNALFD4 = 289;
    /// `eventfd2(count, flags)` → descriptor.
    EVENTFD2 = 290;
    /// `epoll_create1(flags)` → descriptor.
    EPOLL_CREATE1 = 291;
    /// `dup3(fd, to, flags)` → `to`.
    DUP3 = 292;
    /// `pipe2(ends, flags)` → 0. As [`PIPE`].
    PIPE2 = 293;
    /// `preadv(fd, vector, n, offset)` → bytes read.
    PREADV = 295;
    /// `pwritev(fd, vector, n, offset)` → bytes written.
    PWRITEV = 296;
    /// `rt_tgsigqueueinfo(program, thread, signal, info)` → 0. As [`RT_SIGQUEUEINFO`], to a thread.
    RT_TGSIGQUEUEINFO = 297;
    /// `prlimit64(0, resource, new, old)` → 0. Sets and reads limits of the calling program. Hard
    /// limits do not rise. The limit of descriptors has an effect; at first the stack, descriptors,
    /// pending signals and core dumps have one.
    PRLIMIT64 = 302;
    /// `syncfs(fd)` → 0. As [`FSYNC`].
    SYNCFS = 306;
    /// `getcpu(cpu, node)` → 0. Writes the CPU's index and node 0.
    GETCPU = 309;
    /// `sched_setattr(thread, attributes, 0)` → 0. As [`SCHED_SETSCHEDULER`] and [`SETPRIORITY`].
    SCHED_SETATTR = 314;
    /// `sched_getattr(thread, attributes, bytes, 0)` → 0. Writes the first version of `struct
    /// sched_attr`.
    SCHED_GETATTR = 315;
    /// `renameat2(folder, from, folder, to, flags)` → 0. As [`RENAME`]; `RENAME_NOREPLACE` is the
    /// only flag.
    RENAMEAT2 = 316;
    /// `getrandom(buffer, bytes, flags)` → bytes, at most 256. A program gets the same bytes in
    /// each run with the same seed.
    GETRANDOM = 318;
    /// `memfd_create(name, flags)` → descriptor of a new file that no path names.
    MEMFD_CREATE = 319;
    /// `membarrier(command, 0)` → 0. `MEMBARRIER_CMD_GLOBAL`, the private expedited ones, also with
    /// `SYNC_CORE`, and their registrations: done at once, as threads take turns on one CPU.
    MEMBARRIER = 324;
    /// `mlock2(start, bytes, flags)` → 0. As [`MLOCK`].
    MLOCK2 = 325;
    /// `copy_file_range(in, in_offset, out, out_offset, bytes, 0)` → bytes copied between files. A
    /// copy within one file may be short.
    COPY_FILE_RANGE = 326;
    /// `statx(folder, path, flags, mask, stat)` → 0. As [`NEWFSTATAT`].
    STATX = 332;
    /// `rseq(…)`: `ENOSYS`. C libraries work without this call.
    RSEQ = 334;
    /// `clone3(…)`: `ENOSYS`. C libraries use [`CLONE`] instead.
    CLONE3 = 435;

    /// `close_range(first, last, flags)` → 0. With `CLOSE_RANGE_CLOEXEC` closes nothing.
    CLOSE_RANGE = 436;
    /// `faccessat2(folder, path, mode, flags)` → 0. As [`ACCESS`].
    FACCESSAT2 = 439;
    /// `epoll_pwait2(fd, events, n, time, mask, 8)` → events. As [`EPOLL_WAIT`].
    EPOLL_PWAIT2 = 441;
    /// `session_open(events, events_bytes, config, detail, detail_bytes, program)` →
    /// [`crate::Opened`]: session number and number of events.
    ///
    /// `events` is the list of event names, separated by commas or white space. `config` points to
    /// [`crate::session::ConfigWords`]. `program` is the number of a program that the caller
    /// loaded, or 0 for the caller. A session on another program counts while that program runs,
    /// can be read after its end, and its bank has no RDPMC. If the configuration's scope is CPUs,
    /// `program` points to the set of CPUs, [`crate::CpuSetWords`], or is 0 for all;
    /// [`SESSION_INSTANCE`] reads such a session. On error the kernel writes a message to `detail`:
    /// up to `detail_bytes` bytes, the last of them zero. Where the program has other sessions it
    /// writes what the counting beside them costs all of them.
    SESSION_OPEN = TALLY_BASE;
    /// `session_start(session)` → 0. Starts or resumes counting.
    SESSION_START = TALLY_BASE + 1;
    /// `session_stop(session)` → 0. Stops counting.
    SESSION_STOP = TALLY_BASE + 2;
    /// `session_read(session, readings, n)` → number of events. Writes the first `n` readings to
    /// `readings`, an array of [`crate::reading::ReadingWords`], in the order of the list. May be
    /// called while the session counts.
    SESSION_READ = TALLY_BASE + 3;
    /// `session_stats(session, stats)` → 0. Writes [`crate::session::StatsWords`] to `stats`.
    SESSION_STATS = TALLY_BASE + 4;
    /// `session_close(session)` → 0. Sends the session's last values to the host and closes it. The
    /// kernel closes a program's sessions when the program ends.
    SESSION_CLOSE = TALLY_BASE + 5;

    /// `session_map(session, cpu, sequences)` → address of the session's logical counter bank
    /// ([`crate::bank`]). The kernel maps the bank read-only until the session closes, and the page
    /// before it writable. From then on the program may use RDPMC. The call must precede
    /// [`SESSION_START`]. In a session on whole CPUs each CPU has a bank, without RDPMC; `cpu` is
    /// its index among the instances. `sequences` is the address of the program's restartable
    /// sequences, with which it stops and starts the counters, or 0.
    SESSION_MAP = TALLY_BASE + 6;
    /// `session_threshold(session, event, count, handler, data, cpu)` → 0. Sets the event's
    /// threshold and replaces an earlier one; [`crate::bank::NO_THRESHOLD`] as `count` removes it.
    /// The threshold fires once, when the event's logical counter, as the bank shows it, reaches
    /// `count`. Then the kernel writes a trace record and, if `handler` is not 0, calls the handler
    /// at that address (an upcall). The session must be mapped ([`SESSION_MAP`]). In a session on
    /// whole CPUs the threshold belongs to the CPU whose index among the instances is `cpu`.
    ///
    /// The handler gets the event in RDI, the count in RSI and `data` in RDX. Its stack is aligned
    /// to 16 bytes and lies below the red zone. The handler ends with [`UPCALL_RETURN`]; other
    /// upcalls stay pending until then.
    SESSION_THRESHOLD = TALLY_BASE + 7;
    /// `upcall_return()`: returns from an upcall's handler. The program continues where it was
    /// interrupted, with all of its registers.
    UPCALL_RETURN = TALLY_BASE + 8;
    /// `session_sample(session, event, period, stack, hz, branches)` → 0. Takes a sample each time
    /// the event's logical counter has counted another `period`: writes a trace record and counts
    /// the address in the session's histogram. A period of 0 ends sampling. If `stack` is not 0,
    /// each sample in ring 3 also copies the thread's registers and `stack` bytes of its stack, at
    /// most [`crate::trace::MAX_STACK_BYTES`], to the trace, if there is one; the host finds the
    /// callers in them. If `hz` is not 0, at most [`crate::session::MAX_SAMPLE_HZ`], the engine
    /// adapts the period to take `hz` samples in each second in which the session counts. If
    /// `branches` is not 0, the bits of a [`crate::branches::BranchFilter`], each sample in the
    /// trace has the branches before it; `EventNotSupported` if this processor does not record
    /// them.
    ///
    /// The period varies at random by up to an eighth in either direction, and the engine lengthens
    /// it to keep the budget. Sampling replaces the event's threshold. The call maps a session that
    /// is not mapped yet; then it must precede [`SESSION_START`].
    SESSION_SAMPLE = TALLY_BASE + 9;
    /// `session_samples(session, addresses, n)` → number of entries of the histogram. Writes the
    /// first `n` to `addresses`, two words each, address and samples, in no particular order. The
    /// entry of address 0 counts the samples without an address and those whose address had no
    /// room.
    SESSION_SAMPLES = TALLY_BASE + 10;

    /// `session_thread(session, words, n)` → number of events. Writes the first `n` words of
    /// [`crate::thread`]: counts of the calling thread alone, in the caller's own session. A
    /// thread's counts begin with its first call. The session needs planned shares: adaptive shares
    /// restate earlier counts.
    SESSION_THREAD = TALLY_BASE + 11;

    /// `session_phases(session, config, handler, data)` → 0. Tracks the phases of the program from
    /// now on, in the caller's own session, which must not be started; `config` points to
    /// [`crate::phase::PhaseConfigWords`]. The session counts the cost model's events that this
    /// machine has; a cost without events is 0 (`EventNotSupported` if all are). If `handler` is
    /// not 0, the kernel calls it when the program has changed, as for [`SESSION_THRESHOLD`], with
    /// the phase in RDI and the number of changes in RSI. `SliceOutOfRange` if an interval is
    /// shorter than a round.
    SESSION_PHASES = TALLY_BASE + 12;
    /// `session_phase(session, words)` → 0. Writes [`crate::phase::PhaseWords`]; `WrongState` if
    /// phases are not tracked.
    SESSION_PHASE = TALLY_BASE + 13;

    /// `session_instance(session, index, instance, readings, n)` → number of instances. For a
    /// session that counts instances separately ([`crate::instance::Scope`]). Writes the instance
    /// at `index`, if it exists: its [`crate::instance::InstanceWords`] and the first `n` of its
    /// readings, as [`SESSION_READ`] does. Instances keep their index. Such a session has at most
    /// [`crate::instance::MAX_INSTANCE_EVENTS`] events, is not on the caller, and has no values of
    /// the whole: [`SESSION_READ`] returns `WrongState`.
    SESSION_INSTANCE = TALLY_BASE + 14;
    /// `session_unit(session, counts, n)` → number of events. Writes the counter unit's first `n`
    /// counts up to now, a word each, in the order of the list. `WrongState` if the session does
    /// not count on the unit too ([`crate::SessionConfig::unit`]).
    SESSION_UNIT = TALLY_BASE + 15;

    /// `direct_open(events, events_bytes, mode, indices, detail, detail_bytes)` → number of events.
    ///
    /// Starts direct mode: assigns a counter to each event of the list for the program alone, and
    /// counts from 0 at the privilege `mode`, encoded as word 0 of [`crate::session::ConfigWords`].
    /// Writes RDPMC's ECX for each event to `indices`, an array of words in the order of the list.
    /// Nothing is multiplexed and no overflow interrupt occurs. Direct mode lasts until
    /// [`DIRECT_CLOSE`] or the program's end. On error the kernel writes a message to `detail`, as
    /// for [`SESSION_OPEN`].
    DIRECT_OPEN = TALLY_BASE + 0x10;
    /// `direct_close()` → 0. Ends direct mode.
    DIRECT_CLOSE = TALLY_BASE + 0x11;
    /// `session_scaled(session, readings, n)` → number of events. As [`SESSION_READ`], but by
    /// linear scaling: the value of an event is its count, times all cycles, divided by the cycles
    /// for which the event was counted, with that estimate's error. The counts of
    /// [`SESSION_THREAD`] can be scaled in the same way, although the session has better values.
    /// The value may be below an earlier one, or below the value of an event that is a part of it.
    SESSION_SCALED = TALLY_BASE + 0x12;
    /// `trace_map(cpu)` → address of a CPU's trace ring ([`crate::ring`]):
    /// [`crate::trace::RING_WORDS`] words in [`crate::trace::RING_PAGES`] pages. The ring stays
    /// mapped read-only until the program ends. The ring has the records of all programs, so the
    /// call needs `paranoid=0`. `WrongState` if the kernel writes no trace.
    TRACE_MAP = TALLY_BASE + 0x18;
    /// `program_load(words, words_bytes, detail, detail_bytes)` → the new program's number.
    ///
    /// `words` are the program's name in the ramdisk and its arguments, each ended by a zero byte.
    /// The program starts at [`PROGRAM_RUN`], so that the caller can open a session on it before.
    /// The program has the caller's environment, working folder, CPUs, blocked and ignored signals,
    /// and standard input, a file of which is opened anew at its position. On error the kernel
    /// writes a message to `detail`, as for [`SESSION_OPEN`].
    PROGRAM_LOAD = TALLY_BASE + 0x20;
    /// `program_run(program)` → 0. Starts a program that the caller loaded.
    PROGRAM_RUN = TALLY_BASE + 0x21;
    /// `program_wait(program)` → its exit status, 0 to 255. Waits for the end of a program that the
    /// caller loaded and started; afterwards the program's number is no longer valid. `-EINTR` if a
    /// signal handler without `SA_RESTART` ran.
    PROGRAM_WAIT = TALLY_BASE + 0x22;
    /// `program_wait_for(program, nanoseconds)` → as [`PROGRAM_WAIT`], or `-ETIMEDOUT` after this
    /// time. The scheduler checks the time at its ticks, every 10 ms.
    PROGRAM_WAIT_FOR = TALLY_BASE + 0x23;
    /// `program_usage(program, usage)` → 0. Writes [`crate::usage::UsageWords`]: what a program
    /// used that the caller loaded and has not waited for. With 0 as `program`: the sum over all
    /// programs that the caller has waited for.
    PROGRAM_USAGE = TALLY_BASE + 0x24;
    /// `program_kill(program)` → 0. Sends `SIGKILL` to a program that the caller loaded and that
    /// has not ended. The program ends with status 137.
    PROGRAM_KILL = TALLY_BASE + 0x25;
}

/// Linux's error numbers that the calls above return, as positive numbers.
pub mod errno {
    numbers! {
        /// Returns the name of a positive error number; `None` if no call returns this number.
        fn name(i64);

        /// Operation not permitted.
        EPERM = 1;
        /// No such file.
        ENOENT = 2;
        /// No such program.
        ESRCH = 3;
        /// A signal handler interrupted the call.
        EINTR = 4;
        /// The position is beyond the end of the file.
        ENXIO = 6;
        /// The structure has another size.
        E2BIG = 7;
        /// Bad file descriptor.
        EBADF = 9;
        /// No child.
        ECHILD = 10;
        /// Temporarily not possible; for `clone`, too many threads.
        EAGAIN = 11;
        /// Out of memory.
        ENOMEM = 12;
        /// Access denied.
        EACCES = 13;
        /// A buffer is not in the program's memory.
        EFAULT = 14;
        /// The kernel owns the name.
        EBUSY = 16;
        /// The file exists.
        EEXIST = 17;
        /// The call cannot be used on a descriptor of this kind.
        ENODEV = 19;
        /// A part of the path is not a folder.
        ENOTDIR = 20;
        /// The path names a folder.
        EISDIR = 21;
        /// Invalid argument.
        EINVAL = 22;
        /// Too many open files.
        EMFILE = 24;
        /// Not a terminal.
        ENOTTY = 25;
        /// No memory left for the file.
        ENOSPC = 28;
        /// The descriptor has no position.
        ESPIPE = 29;
        /// The pipe has no reader.
        EPIPE = 32;
        /// The buffer is too small.
        ERANGE = 34;
        /// The thread holds the mutex itself.
        EDEADLK = 35;
        /// The path is too long.
        ENAMETOOLONG = 36;
        /// Too many locks.
        ENOLCK = 37;
        /// No such system call.
        ENOSYS = 38;
        /// The folder is not empty.
        ENOTEMPTY = 39;
        /// Too many links in the path.
        ELOOP = 40;
        /// A number is too large for a file.
        EOVERFLOW = 75;
        /// The descriptor is not a socket.
        ENOTSOCK = 88;
        /// No such kind of socket.
        EPROTONOSUPPORT = 93;
        /// Not supported for files in memory.
        EOPNOTSUPP = 95;
        /// There is no network.
        EAFNOSUPPORT = 97;
        /// Timed out.
        ETIMEDOUT = 110;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_name_of_its_constant() {
        let named = [WRITE, PROGRAM_WAIT, TALLY_BASE, 500].map(name);
        let names = [Some("WRITE"), Some("PROGRAM_WAIT"), Some("SESSION_OPEN"), None];
        assert_eq!(named, names);
        assert_eq!([errno::ENOENT, 200].map(errno::name), [Some("ENOENT"), None]);
    }
}
