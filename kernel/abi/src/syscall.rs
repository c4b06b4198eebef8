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
/// `lseek(fd, offset, whence)` → new offset.
pub const LSEEK: u64 = 8;
/// `mmap(0, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)` → address. Nothing else.
pub const MMAP: u64 = 9;
/// `munmap(address, bytes)` → 0. Whole mappings of `mmap` only.
pub const MUNMAP: u64 = 11;
/// `sched_yield()` → 0.
pub const SCHED_YIELD: u64 = 24;
/// `exit(status)`; does not return.
pub const EXIT: u64 = 60;
/// `exit_group(status)`; does not return.
pub const EXIT_GROUP: u64 = 231;

/// Where Tally's own calls begin.
pub const TALLY_BASE: u64 = 0x7a11_0000;
/// `session_open(events, events_bytes, config, detail, detail_bytes)` → session number.
///
/// `events` is the list of event names, separated by commas or white space; `config` points to
/// [`crate::session::ConfigWords`]. On error a text for people is written to `detail`, up to
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

/// `session_map(session)` → address of the session's logical counter bank ([`crate::bank`]), of
/// [`crate::bank::bytes`], readable until the session closes. From here on the program may use
/// RDPMC.
pub const SESSION_MAP: u64 = TALLY_BASE + 6;

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
    /// Too many open files.
    pub const EMFILE: i64 = 24;
    /// No such system call.
    pub const ENOSYS: i64 = 38;
}
