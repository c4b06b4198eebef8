//! System calls.
//!
//! The convention is Linux's for x86-64: number in RAX, arguments in RDI, RSI, RDX, R10, R8, R9,
//! result in RAX, RCX and R11 lost. A call that Linux has keeps Linux's number and meaning, so
//! that one program runs here and there; Tally's own begin at [`TALLY_BASE`], which Linux answers
//! with `ENOSYS`. Errors are negative: Linux's numbers for Linux's calls, [`crate::Error`] for
//! Tally's.

/// `read(fd, buffer, bytes)` → bytes read. Files of the ramdisk only.
pub const READ: u64 = 0;
/// `write(fd, buffer, bytes)` → bytes written. Descriptors 1 and 2 only.
pub const WRITE: u64 = 1;
/// `open(path, flags)` → descriptor. Reading only, from the ramdisk.
pub const OPEN: u64 = 2;
/// `close(fd)` → 0.
pub const CLOSE: u64 = 3;
/// `fstat(fd, stat)` → 0. Kind and size alone; the rest is zeros.
pub const FSTAT: u64 = 5;
/// `lseek(fd, offset, whence)` → new offset.
pub const LSEEK: u64 = 8;
/// `mmap(0, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)` → address. Nothing else.
pub const MMAP: u64 = 9;
/// `mprotect(address, bytes, protection)` → 0. Mapped pages of the program's own; nothing becomes
/// executable.
pub const MPROTECT: u64 = 10;
/// `munmap(address, bytes)` → 0. Whole mappings of `mmap` only.
pub const MUNMAP: u64 = 11;
/// `brk(address)` → end of the heap, moved to `address` if that can be.
pub const BRK: u64 = 12;
/// `ioctl(fd, …)`: no descriptor is a terminal, or any other device.
pub const IOCTL: u64 = 16;
/// `writev(fd, vector, n)` → bytes written.
pub const WRITEV: u64 = 20;
/// `sched_yield()` → 0.
pub const SCHED_YIELD: u64 = 24;
/// `getpid()` → the program's number.
pub const GETPID: u64 = 39;
/// `exit(status)`; does not return.
pub const EXIT: u64 = 60;
/// `readlink(path, buffer, bytes)` → bytes of the target. `/proc/self/exe` alone.
pub const READLINK: u64 = 89;
/// `getuid()`, `getgid()`, `geteuid()`, `getegid()` → 0.
pub const GETUID: u64 = 102;
/// See [`GETUID`].
pub const GETGID: u64 = 104;
/// See [`GETUID`].
pub const GETEUID: u64 = 107;
/// See [`GETUID`].
pub const GETEGID: u64 = 108;
/// `arch_prctl(code, address)` → 0: `ARCH_SET_FS` and `ARCH_GET_FS` alone.
pub const ARCH_PRCTL: u64 = 158;
/// `gettid()` → the program's number.
pub const GETTID: u64 = 186;
/// `set_tid_address(address)` → the program's number. Nobody waits for the address.
pub const SET_TID_ADDRESS: u64 = 218;
/// `exit_group(status)`; does not return.
pub const EXIT_GROUP: u64 = 231;
/// `openat(AT_FDCWD, path, flags)` → descriptor. As [`OPEN`].
pub const OPENAT: u64 = 257;
/// `newfstatat(dirfd, path, stat, flags)` → 0. As [`FSTAT`], of a path or with an empty one of
/// `dirfd`.
pub const NEWFSTATAT: u64 = 262;
/// `set_robust_list(head, bytes)` → 0. There are no other threads that could need it.
pub const SET_ROBUST_LIST: u64 = 273;
/// `prlimit64(0, resource, 0, old)` → 0: the stack's limit, and none on anything else.
pub const PRLIMIT64: u64 = 302;
/// `getrandom(buffer, bytes, flags)` → bytes: the same for the same seed and program.
pub const GETRANDOM: u64 = 318;

/// Where Tally's own calls begin.
pub const TALLY_BASE: u64 = 0x7a11_0000;
/// `session_open(events, events_bytes, config, detail, detail_bytes, program)` → session number.
///
/// `events` is the list of event names, separated by commas or white space; `config` points to
/// [`crate::session::ConfigWords`]; `program` is the number of a program that the caller loaded, or 0
/// for itself. A session on another program counts while that one runs, outlives it, and cannot be
/// mapped. On error a text for people is written to `detail`, up to
/// `detail_bytes` bytes and ended by a zero byte.
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

/// `session_map(session)` → address of the session's logical counter bank ([`crate::bank`]), readable
/// until the session closes; the page before it is the program's to write. From here on the program
/// may use RDPMC.
pub const SESSION_MAP: u64 = TALLY_BASE + 6;

/// `program_load(words, words_bytes, detail, detail_bytes)` → the new program's number.
///
/// `words` are the program's name in the ramdisk and its arguments, each ended by a zero byte. It
/// begins with [`PROGRAM_RUN`], so that there is time to open a session on it. On error `detail` as
/// with [`SESSION_OPEN`].
pub const PROGRAM_LOAD: u64 = TALLY_BASE + 0x20;
/// `program_run(program)` → 0: a program that the caller loaded begins.
pub const PROGRAM_RUN: u64 = TALLY_BASE + 0x21;
/// `program_wait(program)` → its status, 0 to 255, when it has ended: a program that the caller
/// loaded and let run, which is forgotten then.
pub const PROGRAM_WAIT: u64 = TALLY_BASE + 0x22;

/// Linux's error numbers that the calls above return, as positive numbers.
pub mod errno {
    /// No such file.
    pub const ENOENT: i64 = 2;
    /// Bad file descriptor.
    pub const EBADF: i64 = 9;
    /// Out of memory.
    pub const ENOMEM: i64 = 12;
    /// Permission denied.
    pub const EACCES: i64 = 13;
    /// A buffer is not in the program's memory.
    pub const EFAULT: i64 = 14;
    /// Invalid argument.
    pub const EINVAL: i64 = 22;
    /// Not a terminal.
    pub const ENOTTY: i64 = 25;
    /// Too many open files.
    pub const EMFILE: i64 = 24;
    /// No such system call.
    pub const ENOSYS: i64 = 38;
}
