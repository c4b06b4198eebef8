//! System calls.
//!
//! The convention is Linux's for x86-64: the number in RAX, the arguments in RDI, RSI, RDX, R10,
//! R8 and R9, the result in RAX; RCX and R11 are overwritten. Linux's calls have Linux's numbers
//! and meanings, so that one binary runs on Tally and on Linux. Tally's own calls begin at
//! [`TALLY_BASE`]; Linux answers them with `ENOSYS`. Errors are negative results: Linux's error
//! numbers for Linux's calls, [`crate::Error`] for Tally's.
//!
//! Long: a constant with its documentation for each call.

/// `read(fd, buffer, bytes)` → bytes read.
pub const READ: u64 = 0;
/// `write(fd, buffer, bytes)` → bytes written. Output of descriptors 1 and 2 goes to the host.
pub const WRITE: u64 = 1;
/// `open(path, flags, mode)` → descriptor. Opens files of the ramdisk and files in memory, folders,
/// `/dev/null` and other devices, the standard outputs, and the texts of `/proc` and `/sys`. Files
/// have no modes.
pub const OPEN: u64 = 2;
/// `close(fd)` → 0.
pub const CLOSE: u64 = 3;
/// `stat(path, stat)` → 0. As [`FSTAT`], for a path; follows symbolic links.
pub const STAT: u64 = 4;
/// `fstat(fd, stat)` → 0. Writes device, inode number, links, type and permissions, size, block
/// size and blocks. Owner and dates are 0.
pub const FSTAT: u64 = 5;
/// `lstat(path, stat)` → 0. As [`STAT`], but does not follow a symbolic link at the end of the
/// path.
pub const LSTAT: u64 = 6;
/// `poll(descriptors, n, milliseconds)` → number of ready descriptors. Files, folders and devices
/// are always ready to read and write, standard outputs to write; pipes, sockets, event counters,
/// timers, `signalfd` and `epoll` descriptors when they have data or room. The call waits for a
/// ready descriptor, the timeout or a signal handler.
pub const POLL: u64 = 7;
/// `lseek(fd, offset, whence)` → new offset.
pub const LSEEK: u64 = 8;
/// `mmap(address, bytes, protection, flags, fd, offset)` → address. Pages take memory when they are
/// touched. A page that would be writable and executable: `EACCES`, without `jit=yes`.
pub const MMAP: u64 = 9;
/// `mprotect(address, bytes, protection)` → 0. Works only on pages that the program has mapped. A
/// page that would be writable and executable: `EACCES`, without `jit=yes`.
pub const MPROTECT: u64 = 10;
/// `munmap(address, bytes)` → 0. Works only on the program's own mappings; the range may contain
/// none.
pub const MUNMAP: u64 = 11;
/// `brk(address)` → end of the heap. Moves the end to `address` if that is possible.
pub const BRK: u64 = 12;
/// `rt_sigaction(signal, action, old, 8)` → 0.
pub const RT_SIGACTION: u64 = 13;
/// `rt_sigprocmask(how, set, old, 8)` → 0.
pub const RT_SIGPROCMASK: u64 = 14;
/// `rt_sigreturn()`: returns from a signal handler. The thread continues with the registers of its
/// signal frame; the kernel ignores or rejects values that ring 3 may not set.
pub const RT_SIGRETURN: u64 = 15;
/// `ioctl(fd, request, argument)` → 0. `FIONREAD`, `FIONBIO`, `FIOCLEX` and `FIONCLEX`; others:
/// `ENOTTY`, as no descriptor is a terminal.
pub const IOCTL: u64 = 16;
/// `pread64(fd, buffer, bytes, offset)` → bytes read.
pub const PREAD64: u64 = 17;
/// `pwrite64(fd, buffer, bytes, offset)` → bytes written.
pub const PWRITE64: u64 = 18;
/// `readv(fd, vector, n)` → bytes read.
pub const READV: u64 = 19;
/// `writev(fd, vector, n)` → bytes written. `readv` and `writev` take at most 1,024 buffers and
/// transfer at most 7FFF_F000H bytes.
pub const WRITEV: u64 = 20;
/// `access(path, mode)` → 0 for every existing file. `X_OK` on a device or a generated text:
/// `EACCES`.
pub const ACCESS: u64 = 21;
/// `pipe(ends)` → 0. Makes a pipe of 64 KiB; both ends are the program's own.
pub const PIPE: u64 = 22;
/// `select(n, read, write, errors, time)` → ready descriptors. As [`POLL`].
pub const SELECT: u64 = 23;
/// `sched_yield()` → 0.
pub const SCHED_YIELD: u64 = 24;
/// `mremap(start, old, bytes, flags, to)` → address. The mapping moves only with `MREMAP_MAYMOVE`;
/// with `MREMAP_FIXED` too, it moves to `to` and replaces the mappings there.
pub const MREMAP: u64 = 25;
/// `msync(start, bytes, flags)` → 0 if the whole range is mapped. Files are in memory, so nothing
/// is written.
pub const MSYNC: u64 = 26;
/// `madvise(start, bytes, advice)` → 0. `MADV_DONTNEED` drops the pages; the kernel ignores hints.
pub const MADVISE: u64 = 28;
/// `dup(fd)` → descriptor.
pub const DUP: u64 = 32;
/// `dup2(fd, to)` → `to`.
pub const DUP2: u64 = 33;
/// `pause()`: waits for a signal handler.
pub const PAUSE: u64 = 34;
/// `nanosleep(time, left)` → 0. The scheduler wakes threads at its ticks, every 10 ms.
pub const NANOSLEEP: u64 = 35;
/// `getitimer(which, value)` → 0. As [`SETITIMER`].
pub const GETITIMER: u64 = 36;
/// `alarm(seconds)` → seconds that the previous alarm had left. As [`SETITIMER`].
pub const ALARM: u64 = 37;
/// `setitimer(which, value, old)` → 0. Sends a signal after a real time, or after the program has
/// used that much CPU time: in ring 3, or in both rings.
pub const SETITIMER: u64 = 38;
/// `getpid()` → the program's number.
pub const GETPID: u64 = 39;
/// `sendfile(out, in, offset, bytes)` → bytes copied, from a file to a file, a pipe, a socket or
/// the standard output. A copy within one file may be short.
pub const SENDFILE: u64 = 40;
/// `socket(…)`: `EAFNOSUPPORT`. There is no network.
pub const SOCKET: u64 = 41;
/// `sendto(fd, buffer, bytes, flags, 0, 0)` → bytes sent. Only on a socket of [`SOCKETPAIR`].
pub const SENDTO: u64 = 44;
/// `recvfrom(fd, buffer, bytes, flags, 0, 0)` → bytes received. Only on a socket of [`SOCKETPAIR`].
pub const RECVFROM: u64 = 45;
/// `shutdown(fd, how)` → 0. Only on a socket of [`SOCKETPAIR`].
pub const SHUTDOWN: u64 = 48;
/// `socketpair(AF_UNIX, SOCK_STREAM, 0, ends)` → 0. Both ends are the program's own.
pub const SOCKETPAIR: u64 = 53;
/// `clone(flags, stack, parent_tid, child_tid, tls)` → the new thread's number. Makes threads only:
/// without `CLONE_VM`, `CLONE_SIGHAND` and `CLONE_THREAD`, `ENOSYS`.
pub const CLONE: u64 = 56;
/// `exit(status)`: ends the calling thread; the last thread's end ends the program. Does not
/// return.
pub const EXIT: u64 = 60;
/// `kill(pid, signal)` → 0. A program can send signals only to itself. A signal without a handler
/// ends the program with status 128 + `signal`, even if Linux would stop the program.
pub const KILL: u64 = 62;
/// `uname(names)` → 0: Linux as the system, `tally` as the machine.
pub const UNAME: u64 = 63;
/// `fcntl(fd, command, argument)`: duplicates descriptors, reads and sets their flags, reads a
/// pipe's capacity, sets and tests record locks.
pub const FCNTL: u64 = 72;
/// `flock(fd, operation)` → 0. Takes or releases an advisory lock on the whole file.
pub const FLOCK: u64 = 73;
/// `fsync(fd)` → 0. Files are in memory: the call has nothing to do.
pub const FSYNC: u64 = 74;
/// `fdatasync(fd)` → 0. As [`FSYNC`].
pub const FDATASYNC: u64 = 75;
/// `truncate(path, bytes)` → 0.
pub const TRUNCATE: u64 = 76;
/// `ftruncate(fd, bytes)` → 0.
pub const FTRUNCATE: u64 = 77;
/// `getcwd(buffer, bytes)` → bytes of the working folder's path, its zero byte included.
pub const GETCWD: u64 = 79;
/// `chdir(path)` → 0.
pub const CHDIR: u64 = 80;
/// `fchdir(fd)` → 0.
pub const FCHDIR: u64 = 81;
/// `rename(from, to)` → 0.
pub const RENAME: u64 = 82;
/// `mkdir(path, mode)` → 0.
pub const MKDIR: u64 = 83;
/// `rmdir(path)` → 0.
pub const RMDIR: u64 = 84;
/// `creat(path, mode)` → descriptor. As [`OPEN`].
pub const CREAT: u64 = 85;
/// `link(from, to)` → 0.
pub const LINK: u64 = 86;
/// `unlink(path)` → 0. Open descriptors of the file stay valid.
pub const UNLINK: u64 = 87;
/// `symlink(target, path)` → 0.
pub const SYMLINK: u64 = 88;
/// `readlink(path, buffer, bytes)` → bytes of the symbolic link's target, cut to the buffer.
/// `/proc/self/exe` is a link to the program's file; other files: `EINVAL`.
pub const READLINK: u64 = 89;
/// `chmod(path, mode)` → 0. Has no effect: files have no modes and no owners.
pub const CHMOD: u64 = 90;
/// `fchmod(fd, mode)` → 0. As [`CHMOD`].
pub const FCHMOD: u64 = 91;
/// `chown(path, user, group)` → 0. As [`CHMOD`].
pub const CHOWN: u64 = 92;
/// `fchown(fd, user, group)` → 0. As [`CHMOD`].
pub const FCHOWN: u64 = 93;
/// `lchown(path, user, group)` → 0. As [`CHOWN`].
pub const LCHOWN: u64 = 94;
/// `umask(mask)` → the mask before, 022 octal at first. Has no effect: files have no modes.
pub const UMASK: u64 = 95;
/// `gettimeofday(time, zone)` → 0. Writes the date as [`CLOCK_GETTIME`] does, in microseconds.
pub const GETTIMEOFDAY: u64 = 96;
/// `getrlimit(resource, limit)` → 0. As [`PRLIMIT64`].
pub const GETRLIMIT: u64 = 97;
/// `getrusage(who, usage)` → 0. Writes time on CPUs, memory, page faults and context switches.
/// `RUSAGE_CHILDREN` covers the programs that the caller has waited for.
pub const GETRUSAGE: u64 = 98;
/// `sysinfo(info)` → 0. Writes memory, programs and time since boot.
pub const SYSINFO: u64 = 99;
/// `times(times)` → ticks since boot. Writes time on CPUs, in hundredths of a second.
pub const TIMES: u64 = 100;
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
/// `getpgrp()` → the program's number.
pub const GETPGRP: u64 = 111;
/// `getgroups(n, groups)` → 0: the program is in no group.
pub const GETGROUPS: u64 = 115;
/// `getresuid(real, effective, saved)` → 0. Writes 0 to all three.
pub const GETRESUID: u64 = 118;
/// `getresgid(real, effective, saved)` → 0. Writes 0 to all three.
pub const GETRESGID: u64 = 120;
/// `getpgid(program)` → the calling program's number.
pub const GETPGID: u64 = 121;
/// `getsid(program)` → the calling program's number.
pub const GETSID: u64 = 124;
/// `rt_sigpending(set, 8)` → 0.
pub const RT_SIGPENDING: u64 = 127;
/// `rt_sigtimedwait(set, info, timeout, 8)` → the signal. Consumes a pending signal of the set, or
/// waits for one, without calling its handler.
pub const RT_SIGTIMEDWAIT: u64 = 128;
/// `rt_sigqueueinfo(program, signal, info)` → 0. Sends a signal with a value; only to the program
/// itself.
pub const RT_SIGQUEUEINFO: u64 = 129;
/// `rt_sigsuspend(mask, 8)`: waits for a signal's handler.
pub const RT_SIGSUSPEND: u64 = 130;
/// `sigaltstack(stack, old)` → 0.
pub const SIGALTSTACK: u64 = 131;
/// `personality(number)` → the number before. `ADDR_NO_RANDOMIZE` has no effect, because addresses
/// are the same in every run; others: `EINVAL`. FFFF_FFFFH only asks.
pub const PERSONALITY: u64 = 135;
/// `statfs(path, room)` → 0. Writes the room for files in memory: half of the memory.
pub const STATFS: u64 = 137;
/// `fstatfs(fd, room)` → 0. As [`STATFS`].
pub const FSTATFS: u64 = 138;
/// `getpriority(which, who)` → 20 - the nice value, of the calling program's threads.
pub const GETPRIORITY: u64 = 140;
/// `setpriority(which, who, nice)` → 0. As [`SCHED_SETSCHEDULER`].
pub const SETPRIORITY: u64 = 141;
/// `sched_setparam(thread, priority)` → 0. As [`SCHED_SETSCHEDULER`].
pub const SCHED_SETPARAM: u64 = 142;
/// `sched_getparam(thread, priority)` → 0.
pub const SCHED_GETPARAM: u64 = 143;
/// `sched_setscheduler(thread, policy, priority)` → 0. Sets attributes of a thread of the calling
/// program, which do not change the order in which threads take turns. No `SCHED_DEADLINE`.
pub const SCHED_SETSCHEDULER: u64 = 144;
/// `sched_getscheduler(thread)` → policy.
pub const SCHED_GETSCHEDULER: u64 = 145;
/// `sched_get_priority_max(policy)` → the highest priority.
pub const SCHED_GET_PRIORITY_MAX: u64 = 146;
/// `sched_get_priority_min(policy)` → the lowest priority.
pub const SCHED_GET_PRIORITY_MIN: u64 = 147;
/// `sched_rr_get_interval(thread, time)` → 0. Writes the length of a turn.
pub const SCHED_RR_GET_INTERVAL: u64 = 148;
/// `mlock(start, bytes)` → 0 if the whole range is mapped. Memory is never swapped out.
pub const MLOCK: u64 = 149;
/// `munlock(start, bytes)` → 0. As [`MLOCK`].
pub const MUNLOCK: u64 = 150;
/// `mlockall(flags)` → 0. Has no effect: memory is never swapped out.
pub const MLOCKALL: u64 = 151;
/// `munlockall()` → 0. As [`MLOCKALL`].
pub const MUNLOCKALL: u64 = 152;
/// `prctl(code, argument)`: `PR_SET_NAME` and `PR_GET_NAME` of the calling thread;
/// `PR_CAPBSET_READ` → 1 for every capability. Others: `EINVAL`.
pub const PRCTL: u64 = 157;
/// `arch_prctl(code, address)` → 0. Only `ARCH_SET_FS` and `ARCH_GET_FS`.
pub const ARCH_PRCTL: u64 = 158;
/// `setrlimit(resource, limits)` → 0. As [`PRLIMIT64`].
pub const SETRLIMIT: u64 = 160;
/// `sync()` → 0. Has no effect: files are in memory.
pub const SYNC: u64 = 162;
/// `gettid()` → the thread's number. The first thread has the program's number.
pub const GETTID: u64 = 186;
/// `setxattr(path, name, value, bytes, flags)` → `EOPNOTSUPP`: files have no extended
/// attributes, as on a file system without them.
pub const SETXATTR: u64 = 188;
/// `lsetxattr(path, name, value, bytes, flags)` → as [`SETXATTR`].
pub const LSETXATTR: u64 = 189;
/// `fsetxattr(fd, name, value, bytes, flags)` → as [`SETXATTR`].
pub const FSETXATTR: u64 = 190;
/// `getxattr(path, name, value, bytes)` → as [`SETXATTR`].
pub const GETXATTR: u64 = 191;
/// `lgetxattr(path, name, value, bytes)` → as [`SETXATTR`].
pub const LGETXATTR: u64 = 192;
/// `fgetxattr(fd, name, value, bytes)` → as [`SETXATTR`].
pub const FGETXATTR: u64 = 193;
/// `listxattr(path, list, bytes)` → as [`SETXATTR`].
pub const LISTXATTR: u64 = 194;
/// `llistxattr(path, list, bytes)` → as [`SETXATTR`].
pub const LLISTXATTR: u64 = 195;
/// `flistxattr(fd, list, bytes)` → as [`SETXATTR`].
pub const FLISTXATTR: u64 = 196;
/// `removexattr(path, name)` → as [`SETXATTR`].
pub const REMOVEXATTR: u64 = 197;
/// `lremovexattr(path, name)` → as [`SETXATTR`].
pub const LREMOVEXATTR: u64 = 198;
/// `fremovexattr(fd, name)` → as [`SETXATTR`].
pub const FREMOVEXATTR: u64 = 199;
/// `tkill(thread, signal)` → 0. Sends a signal to a thread of the calling program.
pub const TKILL: u64 = 200;
/// `time(to)` → the date in seconds since 1970. As [`CLOCK_GETTIME`].
pub const TIME: u64 = 201;
/// `futex(word, operation, value, timeout, other, third)`: `FUTEX_WAIT`, `FUTEX_WAKE`, their
/// `_BITSET` forms, `FUTEX_REQUEUE`, `FUTEX_CMP_REQUEUE`, `FUTEX_WAKE_OP`, and the mutexes of
/// `FUTEX_LOCK_PI`, `FUTEX_LOCK_PI2`, `FUTEX_TRYLOCK_PI` and `FUTEX_UNLOCK_PI`, which the kernel
/// hands over to the thread that has waited longest. All futexes are private: the word's address in
/// the program identifies the futex.
pub const FUTEX: u64 = 202;
/// `sched_setaffinity(thread, bytes, set)` → 0. Sets the CPUs of a thread of the calling program,
/// or of the first thread of a program that it loaded.
pub const SCHED_SETAFFINITY: u64 = 203;
/// `sched_getaffinity(thread, bytes, set)` → bytes written. Accepts the threads of
/// [`SCHED_SETAFFINITY`].
pub const SCHED_GETAFFINITY: u64 = 204;
/// `epoll_create(n)` → descriptor.
pub const EPOLL_CREATE: u64 = 213;
/// `getdents64(fd, buffer, bytes)` → bytes. Writes the names in a folder.
pub const GETDENTS64: u64 = 217;
/// `set_tid_address(address)` → the thread's number. When the thread ends, the kernel clears the
/// word at `address` and wakes one waiter of that futex.
pub const SET_TID_ADDRESS: u64 = 218;
/// `fadvise64(fd, offset, bytes, advice)` → 0.
pub const FADVISE64: u64 = 221;
/// `timer_create(clock, event, timer)` → 0. Writes the timer's number.
pub const TIMER_CREATE: u64 = 222;
/// `timer_settime(timer, flags, new, old)` → 0.
pub const TIMER_SETTIME: u64 = 223;
/// `timer_gettime(timer, value)` → 0.
pub const TIMER_GETTIME: u64 = 224;
/// `timer_getoverrun(timer)` → expirations of the timer while its last delivered signal was
/// pending.
pub const TIMER_GETOVERRUN: u64 = 225;
/// `timer_delete(timer)` → 0.
pub const TIMER_DELETE: u64 = 226;
/// `clock_gettime(clock, time)` → 0. `CLOCK_REALTIME`, its coarse and alarm forms and `CLOCK_TAI`
/// show the date: the one of the command line ([`crate::boot::CommandLine::date`]) plus the time
/// since boot. The clocks of CPU time show a program's or a thread's. All others show the time
/// since boot.
pub const CLOCK_GETTIME: u64 = 228;
/// `clock_getres(clock, time)` → 0: one nanosecond.
pub const CLOCK_GETRES: u64 = 229;
/// `clock_nanosleep(clock, flags, time, left)` → 0. As [`NANOSLEEP`].
pub const CLOCK_NANOSLEEP: u64 = 230;
/// `exit_group(status)`; does not return.
pub const EXIT_GROUP: u64 = 231;
/// `epoll_wait(fd, events, n, milliseconds)` → events. As [`POLL`].
pub const EPOLL_WAIT: u64 = 232;
/// `epoll_ctl(fd, operation, descriptor, event)` → 0. Closing the descriptor's number ends its
/// registration.
pub const EPOLL_CTL: u64 = 233;
/// `tgkill(program, thread, signal)` → 0. As [`TKILL`].
pub const TGKILL: u64 = 234;
/// `ioprio_set(which, who, priority)` → 0. Kept without effect.
pub const IOPRIO_SET: u64 = 251;
/// `ioprio_get(which, who)` → the highest I/O priority.
pub const IOPRIO_GET: u64 = 252;
/// `openat(folder, path, flags, mode)` → descriptor. As [`OPEN`]; a relative path begins at the
/// descriptor `folder`, or at the working folder with `AT_FDCWD`.
pub const OPENAT: u64 = 257;
/// `mkdirat(folder, path, mode)` → 0. As [`MKDIR`].
pub const MKDIRAT: u64 = 258;
/// `fchownat(folder, path, user, group, flags)` → 0. As [`CHOWN`].
pub const FCHOWNAT: u64 = 260;
/// `newfstatat(folder, path, stat, flags)` → 0. As [`STAT`], with `folder` as for [`OPENAT`]; as
/// [`LSTAT`] with `AT_SYMLINK_NOFOLLOW`; of `folder` itself with an empty path and `AT_EMPTY_PATH`.
pub const NEWFSTATAT: u64 = 262;
/// `unlinkat(folder, path, flags)` → 0. As [`UNLINK`].
pub const UNLINKAT: u64 = 263;
/// `renameat(folder, from, folder, to)` → 0. As [`RENAME`].
pub const RENAMEAT: u64 = 264;
/// `linkat(folder, from, folder, to, flags)` → 0. As [`LINK`].
pub const LINKAT: u64 = 265;
/// `symlinkat(target, folder, path)` → 0. As [`SYMLINK`].
pub const SYMLINKAT: u64 = 266;
/// `readlinkat(folder, path, buffer, bytes)`. As [`READLINK`].
pub const READLINKAT: u64 = 267;
/// `fchmodat(folder, path, mode)` → 0. As [`CHMOD`].
pub const FCHMODAT: u64 = 268;
/// `faccessat(folder, path, mode)` → 0. As [`ACCESS`].
pub const FACCESSAT: u64 = 269;
/// `pselect6(n, read, write, errors, time, mask)` → ready descriptors. As [`SELECT`].
pub const PSELECT6: u64 = 270;
/// `ppoll(descriptors, n, time, mask, 8)`. As [`POLL`], with another signal mask during the wait.
/// Writes the remaining time to `time`.
pub const PPOLL: u64 = 271;
/// `set_robust_list(head, 24)` → 0. Sets the address of the thread's list of robust mutexes.
pub const SET_ROBUST_LIST: u64 = 273;
/// `sync_file_range(fd, offset, bytes, flags)` → 0. As [`FSYNC`].
pub const SYNC_FILE_RANGE: u64 = 277;
/// `get_robust_list(0, head, bytes)` → 0. Only the calling thread's list can be read.
pub const GET_ROBUST_LIST: u64 = 274;
/// `utimensat(folder, path, times, flags)` → 0. Sets the date of a file's last change.
/// Files have no other date, and folders have none.
pub const UTIMENSAT: u64 = 280;
/// `epoll_pwait(fd, events, n, milliseconds, mask, 8)` → events. As [`EPOLL_WAIT`].
pub const EPOLL_PWAIT: u64 = 281;
/// `signalfd(fd, set, 8)` → descriptor. As [`SIGNALFD4`].
pub const SIGNALFD: u64 = 282;
/// `timerfd_create(clock, flags)` → descriptor.
pub const TIMERFD_CREATE: u64 = 283;
/// `eventfd(count)` → descriptor.
pub const EVENTFD: u64 = 284;
/// `fallocate(fd, mode, offset, bytes)` → 0. Extends the file; with `FALLOC_FL_KEEP_SIZE` only
/// checks that there is room. Other modes: `EOPNOTSUPP`.
pub const FALLOCATE: u64 = 285;
/// `timerfd_settime(fd, flags, new, old)` → 0.
pub const TIMERFD_SETTIME: u64 = 286;
/// `timerfd_gettime(fd, value)` → 0.
pub const TIMERFD_GETTIME: u64 = 287;
/// `signalfd4(fd, set, 8, flags)` → descriptor. Makes a descriptor if `fd` is −1, else sets its
/// signals. Reading it consumes pending signals of the set.
pub const SIGNALFD4: u64 = 289;
/// `eventfd2(count, flags)` → descriptor.
pub const EVENTFD2: u64 = 290;
/// `epoll_create1(flags)` → descriptor.
pub const EPOLL_CREATE1: u64 = 291;
/// `dup3(fd, to, flags)` → `to`.
pub const DUP3: u64 = 292;
/// `pipe2(ends, flags)` → 0. As [`PIPE`].
pub const PIPE2: u64 = 293;
/// `preadv(fd, vector, n, offset)` → bytes read.
pub const PREADV: u64 = 295;
/// `pwritev(fd, vector, n, offset)` → bytes written.
pub const PWRITEV: u64 = 296;
/// `rt_tgsigqueueinfo(program, thread, signal, info)` → 0. As [`RT_SIGQUEUEINFO`], to a thread.
pub const RT_TGSIGQUEUEINFO: u64 = 297;
/// `prlimit64(0, resource, new, old)` → 0. Sets and reads limits of the calling program. Hard
/// limits do not rise. The limit of descriptors has an effect; at first the stack, descriptors,
/// pending signals and core dumps have one.
pub const PRLIMIT64: u64 = 302;
/// `syncfs(fd)` → 0. As [`FSYNC`].
pub const SYNCFS: u64 = 306;
/// `getcpu(cpu, node)` → 0. Writes the CPU's index and node 0.
pub const GETCPU: u64 = 309;
/// `sched_setattr(thread, attributes, 0)` → 0. As [`SCHED_SETSCHEDULER`] and [`SETPRIORITY`].
pub const SCHED_SETATTR: u64 = 314;
/// `sched_getattr(thread, attributes, bytes, 0)` → 0. Writes the first version of `struct
/// sched_attr`.
pub const SCHED_GETATTR: u64 = 315;
/// `renameat2(folder, from, folder, to, flags)` → 0. As [`RENAME`]; `RENAME_NOREPLACE` is the only
/// flag.
pub const RENAMEAT2: u64 = 316;
/// `getrandom(buffer, bytes, flags)` → bytes, at most 256. A program gets the same bytes in each
/// run with the same seed.
pub const GETRANDOM: u64 = 318;
/// `memfd_create(name, flags)` → descriptor of a new file that no path names.
pub const MEMFD_CREATE: u64 = 319;
/// `membarrier(command, 0)` → 0. `MEMBARRIER_CMD_GLOBAL`, the private expedited ones, also with
/// `SYNC_CORE`, and their registrations: done at once, as threads take turns on one CPU.
pub const MEMBARRIER: u64 = 324;
/// `mlock2(start, bytes, flags)` → 0. As [`MLOCK`].
pub const MLOCK2: u64 = 325;
/// `copy_file_range(in, in_offset, out, out_offset, bytes, 0)` → bytes copied between files. A copy
/// within one file may be short.
pub const COPY_FILE_RANGE: u64 = 326;
/// `statx(folder, path, flags, mask, stat)` → 0. As [`NEWFSTATAT`].
pub const STATX: u64 = 332;
/// `rseq(…)`: `ENOSYS`. C libraries work without this call.
pub const RSEQ: u64 = 334;
/// `clone3(…)`: `ENOSYS`. C libraries use [`CLONE`] instead.
pub const CLONE3: u64 = 435;

/// `close_range(first, last, flags)` → 0. With `CLOSE_RANGE_CLOEXEC` closes nothing.
pub const CLOSE_RANGE: u64 = 436;
/// `faccessat2(folder, path, mode, flags)` → 0. As [`ACCESS`].
pub const FACCESSAT2: u64 = 439;
/// `epoll_pwait2(fd, events, n, time, mask, 8)` → events. As [`EPOLL_WAIT`].
pub const EPOLL_PWAIT2: u64 = 441;
/// The first of Tally's own calls.
pub const TALLY_BASE: u64 = 0x7a11_0000;
/// `session_open(events, events_bytes, config, detail, detail_bytes, program)` →
/// [`crate::Opened`]: session number and number of events.
///
/// `events` is the list of event names, separated by commas or white space. `config` points to
/// [`crate::session::ConfigWords`]. `program` is the number of a program that the caller loaded, or
/// 0 for the caller. A session on another program counts while that program runs, can be read after
/// its end, and its bank has no RDPMC. If the configuration's scope is CPUs, `program` is the set
/// of CPUs, a bit for each, or 0 for all; [`SESSION_INSTANCE`] reads such a session. On error the
/// kernel writes a message to `detail`: up to `detail_bytes` bytes, the last of them zero. Where
/// the program has other sessions it writes what the counting beside them costs all of them.
pub const SESSION_OPEN: u64 = TALLY_BASE;
/// `session_start(session)` → 0. Starts or resumes counting.
pub const SESSION_START: u64 = TALLY_BASE + 1;
/// `session_stop(session)` → 0. Stops counting.
pub const SESSION_STOP: u64 = TALLY_BASE + 2;
/// `session_read(session, readings, n)` → number of events. Writes the first `n` readings to
/// `readings`, an array of [`crate::reading::ReadingWords`], in the order of the list. May be
/// called while the session counts.
pub const SESSION_READ: u64 = TALLY_BASE + 3;
/// `session_stats(session, stats)` → 0. Writes [`crate::session::StatsWords`] to `stats`.
pub const SESSION_STATS: u64 = TALLY_BASE + 4;
/// `session_close(session)` → 0. Sends the session's last values to the host and closes it. The
/// kernel closes a program's sessions when the program ends.
pub const SESSION_CLOSE: u64 = TALLY_BASE + 5;

/// `session_map(session, cpu, sequences)` → address of the session's logical counter bank
/// ([`crate::bank`]). The kernel maps the bank read-only until the session closes, and the page
/// before it writable. From then on the program may use RDPMC. The call must precede
/// [`SESSION_START`]. In a session on whole CPUs each CPU has a bank, without RDPMC; `cpu` is its
/// index among the instances. `sequences` is the address of the program's restartable sequences,
/// with which it stops and starts the counters, or 0.
pub const SESSION_MAP: u64 = TALLY_BASE + 6;
/// `session_threshold(session, event, count, handler, data, cpu)` → 0. Sets the event's threshold
/// and replaces an earlier one; [`crate::bank::NO_THRESHOLD`] as `count` removes it. The threshold
/// fires once, when the event's logical counter, as the bank shows it, reaches `count`. Then the
/// kernel writes a trace record and, if `handler` is not 0, calls the handler at that address (an
/// upcall). The session must be mapped ([`SESSION_MAP`]). In a session on whole CPUs the threshold
/// belongs to the CPU whose index among the instances is `cpu`.
///
/// The handler gets the event in RDI, the count in RSI and `data` in RDX. Its stack is aligned to
/// 16 bytes and lies below the red zone. The handler ends with [`UPCALL_RETURN`]; other upcalls
/// stay pending until then.
pub const SESSION_THRESHOLD: u64 = TALLY_BASE + 7;
/// `upcall_return()`: returns from an upcall's handler. The program continues where it was
/// interrupted, with all of its registers.
pub const UPCALL_RETURN: u64 = TALLY_BASE + 8;
/// `session_sample(session, event, period, stack, hz)` → 0. Takes a sample each time the event's
/// logical counter has counted another `period`: writes a trace record and counts the address in
/// the session's histogram. A period of 0 ends sampling. If `stack` is not 0, each sample in ring 3
/// also copies the thread's registers and `stack` bytes of its stack, at most
/// [`crate::trace::MAX_STACK_BYTES`], to the trace, if there is one; the host finds the callers in
/// them. If `hz` is not 0, at most [`crate::session::MAX_SAMPLE_HZ`], the engine adapts the period
/// to take `hz` samples in each second in which the session counts.
///
/// The period varies at random by up to an eighth in either direction, and the engine lengthens it
/// to keep the budget. Sampling replaces the event's threshold. The call maps a session that is not
/// mapped yet; then it must precede [`SESSION_START`].
pub const SESSION_SAMPLE: u64 = TALLY_BASE + 9;
/// `session_samples(session, addresses, n)` → number of entries of the histogram. Writes the first
/// `n` to `addresses`, two words each, address and samples, in no particular order. The entry of
/// address 0 counts the samples without an address and those whose address had no room.
pub const SESSION_SAMPLES: u64 = TALLY_BASE + 10;

/// `session_thread(session, words, n)` → number of events. Writes the first `n` words of
/// [`crate::thread`]: counts of the calling thread alone, in the caller's own session. A thread's
/// counts begin with its first call. The session needs planned shares: adaptive shares restate
/// earlier counts.
pub const SESSION_THREAD: u64 = TALLY_BASE + 11;

/// `session_phases(session, config, handler, data)` → 0. Tracks the phases of the program from now
/// on, in the caller's own session, which must not be started; `config` points to
/// [`crate::phase::PhaseConfigWords`]. The session counts the cost model's events that this machine
/// has; a cost without events is 0 (`EventNotSupported` if all are). If `handler` is not 0, the
/// kernel calls it when the program has changed, as for [`SESSION_THRESHOLD`], with the phase in
/// RDI and the number of changes in RSI. `SliceOutOfRange` if an interval is shorter than a round.
pub const SESSION_PHASES: u64 = TALLY_BASE + 12;
/// `session_phase(session, words)` → 0. Writes [`crate::phase::PhaseWords`]; `WrongState` if phases
/// are not tracked.
pub const SESSION_PHASE: u64 = TALLY_BASE + 13;

/// `session_instance(session, index, instance, readings, n)` → number of instances. For a session
/// that counts instances separately ([`crate::instance::Scope`]). Writes the instance at `index`,
/// if it exists: its [`crate::instance::InstanceWords`] and the first `n` of its readings, as
/// [`SESSION_READ`] does. Instances keep their index. Such a session has at most
/// [`crate::instance::MAX_INSTANCE_EVENTS`] events, is not on the caller, and has no values of the
/// whole: [`SESSION_READ`] returns `WrongState`.
pub const SESSION_INSTANCE: u64 = TALLY_BASE + 14;
/// `session_unit(session, counts, n)` → number of events. Writes the counter unit's first `n`
/// counts up to now, a word each, in the order of the list. `WrongState` if the session does not
/// count on the unit too ([`crate::SessionConfig::unit`]).
pub const SESSION_UNIT: u64 = TALLY_BASE + 15;

/// `direct_open(events, events_bytes, mode, indices, detail, detail_bytes)` → number of events.
///
/// Starts direct mode: assigns a counter to each event of the list for the program alone, and
/// counts from 0 at the privilege `mode`, encoded as word 0 of [`crate::session::ConfigWords`].
/// Writes RDPMC's ECX for each event to `indices`, an array of words in the order of the list.
/// Nothing is multiplexed and no overflow interrupt occurs. Direct mode lasts until
/// [`DIRECT_CLOSE`] or the program's end. On error the kernel writes a message to `detail`, as for
/// [`SESSION_OPEN`].
pub const DIRECT_OPEN: u64 = TALLY_BASE + 0x10;
/// `direct_close()` → 0. Ends direct mode.
pub const DIRECT_CLOSE: u64 = TALLY_BASE + 0x11;
/// `session_scaled(session, readings, n)` → number of events. As [`SESSION_READ`], but by linear
/// scaling: the value of an event is its count, times all cycles, divided by the cycles for which
/// the event was counted, with that estimate's error. The counts of [`SESSION_THREAD`] can be
/// scaled in the same way, although the session has better values. The value may be below an
/// earlier one, or below the value of an event that is a part of it.
pub const SESSION_SCALED: u64 = TALLY_BASE + 0x12;
/// `trace_map(cpu)` → address of a CPU's trace ring ([`crate::ring`]): [`crate::trace::RING_WORDS`]
/// words in [`crate::trace::RING_PAGES`] pages. The ring stays mapped read-only until the program
/// ends. The ring has the records of all programs, so the call needs `paranoid=0`. `WrongState` if
/// the kernel writes no trace.
pub const TRACE_MAP: u64 = TALLY_BASE + 0x18;
/// `program_load(words, words_bytes, detail, detail_bytes)` → the new program's number.
///
/// `words` are the program's name in the ramdisk and its arguments, each ended by a zero byte. The
/// program starts at [`PROGRAM_RUN`], so that the caller can open a session on it before. The
/// program has the caller's environment, working folder, CPUs, blocked and ignored signals, and
/// standard input, a file of which is opened anew at its position. On error the kernel writes a
/// message to `detail`, as for [`SESSION_OPEN`].
pub const PROGRAM_LOAD: u64 = TALLY_BASE + 0x20;
/// `program_run(program)` → 0. Starts a program that the caller loaded.
pub const PROGRAM_RUN: u64 = TALLY_BASE + 0x21;
/// `program_wait(program)` → its exit status, 0 to 255. Waits for the end of a program that the
/// caller loaded and started; afterwards the program's number is no longer valid. `-EINTR` if a
/// signal handler without `SA_RESTART` ran.
pub const PROGRAM_WAIT: u64 = TALLY_BASE + 0x22;
/// `program_wait_for(program, nanoseconds)` → as [`PROGRAM_WAIT`], or `-ETIMEDOUT` after this time.
/// The scheduler checks the time at its ticks, every 10 ms.
pub const PROGRAM_WAIT_FOR: u64 = TALLY_BASE + 0x23;
/// `program_usage(program, usage)` → 0. Writes [`crate::usage::UsageWords`]: what a program used
/// that the caller loaded and has not waited for. With 0 as `program`: the sum over all programs
/// that the caller has waited for.
pub const PROGRAM_USAGE: u64 = TALLY_BASE + 0x24;
/// `program_kill(program)` → 0. Sends `SIGKILL` to a program that the caller loaded and that has
/// not ended. The program ends with status 137.
pub const PROGRAM_KILL: u64 = TALLY_BASE + 0x25;

/// Defines a function from a number to the name of its constant.
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
    /// Name of a call's constant; `None` if no call has this number.
    u64:
    READ, WRITE, OPEN, CLOSE, STAT, FSTAT, LSTAT, POLL, LSEEK, MMAP, MPROTECT, MUNMAP, BRK,
    RT_SIGACTION, RT_SIGPROCMASK, RT_SIGRETURN, IOCTL, PREAD64, PWRITE64, READV, WRITEV, ACCESS,
    PIPE, SELECT, SCHED_YIELD, MREMAP, MSYNC, MADVISE, DUP, DUP2, PAUSE, NANOSLEEP, GETITIMER,
    ALARM, SETITIMER, GETPID, SENDFILE, SOCKET, SENDTO, RECVFROM, SHUTDOWN, SOCKETPAIR, CLONE,
    EXIT, KILL, UNAME, FCNTL, FLOCK, FSYNC, FDATASYNC, TRUNCATE, FTRUNCATE, GETCWD, CHDIR,
    FCHDIR, RENAME, MKDIR, RMDIR, CREAT, LINK, UNLINK, SYMLINK, READLINK, CHMOD, FCHMOD, CHOWN,
    FCHOWN, LCHOWN, UMASK, GETTIMEOFDAY, GETRLIMIT, GETRUSAGE, SYSINFO, TIMES, GETUID, GETGID,
    GETEUID, GETEGID, GETPPID, GETPGRP, GETGROUPS, GETRESUID, GETRESGID, GETPGID, GETSID,
    RT_SIGPENDING, RT_SIGTIMEDWAIT, RT_SIGQUEUEINFO, RT_SIGSUSPEND, SIGALTSTACK, PERSONALITY, STATFS, FSTATFS,
    GETPRIORITY, SETPRIORITY, SCHED_SETPARAM, SCHED_GETPARAM, SCHED_SETSCHEDULER,
    SCHED_GETSCHEDULER, SCHED_GET_PRIORITY_MAX, SCHED_GET_PRIORITY_MIN, SCHED_RR_GET_INTERVAL,
    SETRLIMIT, IOPRIO_SET, IOPRIO_GET, SCHED_SETATTR, SCHED_GETATTR, MEMBARRIER, MLOCK, MUNLOCK,
    MLOCKALL, MUNLOCKALL, PRCTL, ARCH_PRCTL, SYNC, GETTID,
    SETXATTR, LSETXATTR, FSETXATTR, GETXATTR, LGETXATTR, FGETXATTR, LISTXATTR, LLISTXATTR, FLISTXATTR,
    REMOVEXATTR, LREMOVEXATTR, FREMOVEXATTR, TKILL, TIME, FUTEX,
    SCHED_SETAFFINITY, SCHED_GETAFFINITY, EPOLL_CREATE, GETDENTS64, SET_TID_ADDRESS, FADVISE64,
    TIMER_CREATE, TIMER_SETTIME, TIMER_GETTIME, TIMER_GETOVERRUN, TIMER_DELETE,
    CLOCK_GETTIME, CLOCK_GETRES, CLOCK_NANOSLEEP, EXIT_GROUP, EPOLL_WAIT, EPOLL_CTL, TGKILL,
    OPENAT, MKDIRAT, FCHOWNAT, NEWFSTATAT, UNLINKAT, RENAMEAT, LINKAT, SYMLINKAT, READLINKAT,
    FCHMODAT, FACCESSAT, PSELECT6, PPOLL, SET_ROBUST_LIST, SYNC_FILE_RANGE, GET_ROBUST_LIST,
    UTIMENSAT, EPOLL_PWAIT, SIGNALFD, SIGNALFD4, TIMERFD_CREATE, EVENTFD, FALLOCATE, TIMERFD_SETTIME,
    TIMERFD_GETTIME, EVENTFD2, EPOLL_CREATE1, DUP3, PIPE2, PREADV, PWRITEV, RT_TGSIGQUEUEINFO, PRLIMIT64, SYNCFS,
    GETCPU, RENAMEAT2, GETRANDOM, MEMFD_CREATE, MLOCK2, COPY_FILE_RANGE, STATX, RSEQ, CLONE3, CLOSE_RANGE,
    FACCESSAT2, EPOLL_PWAIT2, SESSION_OPEN, SESSION_START, SESSION_STOP, SESSION_READ,
    SESSION_STATS, SESSION_CLOSE, SESSION_MAP, SESSION_THRESHOLD, UPCALL_RETURN, SESSION_SAMPLE,
    SESSION_SAMPLES, SESSION_THREAD, SESSION_PHASES, SESSION_PHASE, SESSION_INSTANCE, SESSION_UNIT, DIRECT_OPEN,
    DIRECT_CLOSE, SESSION_SCALED, TRACE_MAP, PROGRAM_LOAD,
    PROGRAM_RUN, PROGRAM_WAIT, PROGRAM_WAIT_FOR, PROGRAM_USAGE, PROGRAM_KILL,
}

/// Linux's error numbers that the calls above return, as positive numbers.
pub mod errno {
    /// Operation not permitted.
    pub const EPERM: i64 = 1;
    /// No such file.
    pub const ENOENT: i64 = 2;
    /// No such program.
    pub const ESRCH: i64 = 3;
    /// A signal handler interrupted the call.
    pub const EINTR: i64 = 4;
    /// The position is beyond the end of the file.
    pub const ENXIO: i64 = 6;
    /// The structure has another size.
    pub const E2BIG: i64 = 7;
    /// Bad file descriptor.
    pub const EBADF: i64 = 9;
    /// Temporarily not possible; for `clone`, too many threads.
    pub const EAGAIN: i64 = 11;
    /// Out of memory.
    pub const ENOMEM: i64 = 12;
    /// Access denied.
    pub const EACCES: i64 = 13;
    /// A buffer is not in the program's memory.
    pub const EFAULT: i64 = 14;
    /// The kernel owns the name.
    pub const EBUSY: i64 = 16;
    /// The file exists.
    pub const EEXIST: i64 = 17;
    /// The call cannot be used on a descriptor of this kind.
    pub const ENODEV: i64 = 19;
    /// A part of the path is not a folder.
    pub const ENOTDIR: i64 = 20;
    /// The path names a folder.
    pub const EISDIR: i64 = 21;
    /// Invalid argument.
    pub const EINVAL: i64 = 22;
    /// Too many open files.
    pub const EMFILE: i64 = 24;
    /// Not a terminal.
    pub const ENOTTY: i64 = 25;
    /// No memory left for the file.
    pub const ENOSPC: i64 = 28;
    /// The descriptor has no position.
    pub const ESPIPE: i64 = 29;
    /// The pipe has no reader.
    pub const EPIPE: i64 = 32;
    /// The buffer is too small.
    pub const ERANGE: i64 = 34;
    /// The thread holds the mutex itself.
    pub const EDEADLK: i64 = 35;
    /// The path is too long.
    pub const ENAMETOOLONG: i64 = 36;
    /// Too many locks.
    pub const ENOLCK: i64 = 37;
    /// No such system call.
    pub const ENOSYS: i64 = 38;
    /// The folder is not empty.
    pub const ENOTEMPTY: i64 = 39;
    /// Too many links in the path.
    pub const ELOOP: i64 = 40;
    /// A number is too large for a file.
    pub const EOVERFLOW: i64 = 75;
    /// The descriptor is not a socket.
    pub const ENOTSOCK: i64 = 88;
    /// No such kind of socket.
    pub const EPROTONOSUPPORT: i64 = 93;
    /// Not supported for files in memory.
    pub const EOPNOTSUPP: i64 = 95;
    /// There is no network.
    pub const EAFNOSUPPORT: i64 = 97;
    /// Timed out.
    pub const ETIMEDOUT: i64 = 110;

    names! {
        /// Name of a positive error number; `None` if no call returns this number.
        i64:
        EPERM, ENOENT, ESRCH, EINTR, ENXIO, E2BIG, EBADF, EAGAIN, ENOMEM, EACCES, EFAULT, EBUSY,
        EEXIST, ENODEV, ENOTDIR, EISDIR, EINVAL, EMFILE, ENOTTY, ENOSPC, ESPIPE, EPIPE,
        ERANGE, EDEADLK, ENAMETOOLONG, ENOLCK, ENOSYS, ENOTEMPTY, ELOOP, EOVERFLOW, ENOTSOCK,
        EPROTONOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT, ETIMEDOUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name and value of each constant of this file of the type `number`.
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
