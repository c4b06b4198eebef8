//! Chooses calls and their arguments.

use alloc::string::String;
use core::{
    array,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use tally::{
    Scope, SessionConfig, Slice,
    phase::{Classifier, PhaseConfig, PhaseConfigWords, Predictor},
    session, sys,
};
use tally_test_guests::{
    random::Random,
    threads::{CALLS_ON_THREADS, action},
};

const PATHS: [&[u8]; 12] = [
    b"corpus.txt\0",
    b"/tmp/a\0",
    b"b\0",
    b"no such file\0",
    b"/dev/null\0",
    b"/\0",
    b"tmp/f/../f/g\0",
    b"tmp/f\0",
    b"../l/\0",
    b"l\0",
    b"/proc/self/maps\0",
    b".\0",
];
const PROGRAMS: [&[u8]; 4] =
    [b"status\x007\0", b"crash\0divide\0", b"no such program\0", b"corpus.txt\0"];
/// Lists of events. A program inserts the name of an existing event in front of each.
pub const LISTS: [&str; 7] = [
    "instructions,branches,branch-misses,cache-misses,L1-dcache-loads,r00c4,r00c5,dTLB-loads",
    "instructions,cycles",
    "cycles:k,instructions:u",
    "no-such-event",
    "r00c4@3,branches@70",
    "instructions:ppp,branches:pp,cycles:p",
    "cycles:p,instructions",
];
/// Index of the list with an unknown event.
const UNKNOWN_EVENT: usize = 3;
/// Upper bound of the numbers of Linux's calls.
const LINUX: u64 = 512;
/// Bytes of the buffer for calls.
const BUFFER: usize = 16 * 1024;

/// Signal that the programs handle.
pub const SIGUSR1: u64 = 10;
/// Signal that the programs handle.
pub const SIGALRM: u64 = 14;
const SIGCHLD: u64 = 17;
const SIGURG: u64 = 23;
/// Signals after which a program exits, because a fault may repeat for ever.
const SIGNALS: u64 = 2000;
/// A call that may wait does so without a timeout once in this many calls.
const RARELY: u64 = 16;
/// Timeouts: zero, and a millisecond.
static TIMES: [[u64; 2]; 2] = [[0, 0], [0, 1_000_000]];
/// Intervals and delays of timers, in microseconds.
static TIMERS: [[u64; 4]; 3] = [[0; 4], [0, 0, 0, 500], [0, 20_000, 0, 10_000]];

static HANDLED: AtomicU64 = AtomicU64::new(0);
static mut MEMORY: [u64; BUFFER / 8] = [0; BUFFER / 8];

/// Handler of signals.
pub extern "C" fn handle(_: u64) {
    if HANDLED.fetch_add(1, Relaxed) > SIGNALS {
        sys::exit(5);
    }
}

/// Arguments for a call.
pub fn arguments_of(random: &mut Random, number: u64, lists: &[String]) -> [u64; 6] {
    let mut arguments = match random.below(3) {
        // Valid arguments, sometimes with one random one.
        0 | 1 => {
            let mut arguments = fitting(random, number, lists);
            if random.below(4) == 0 {
                arguments[random.below(6) as usize] = anything(random);
            }
            arguments
        }
        _ => array::from_fn(|_| anything(random)),
    };
    // A wait may last for ever, which the kernel reports, but not for years.
    match number {
        sys::FUTEX => arguments[3] = time(random),
        sys::POLL => arguments[2] = milliseconds(random),
        sys::EPOLL_WAIT | sys::EPOLL_PWAIT => arguments[3] = milliseconds(random),
        sys::SELECT | sys::PSELECT6 => arguments[4] = time(random),
        // Most descriptors stay open.
        sys::CLOSE_RANGE => arguments[0] = arguments[0].max(8),
        // Locks are requested without waiting, because the program itself may hold the lock for
        // ever.
        sys::FLOCK => arguments[1] |= 4,
        sys::FCNTL if [7, 38].contains(&arguments[1]) => arguments[1] -= 1,
        sys::RT_SIGTIMEDWAIT | sys::PPOLL => arguments[2] = time(random),
        sys::EPOLL_PWAIT2 => arguments[3] = time(random),
        sys::SETITIMER => {
            // Real time, CPU time, or an invalid kind.
            arguments[0] = random.below(4);
            arguments[1] = some_time(random);
        }
        sys::TIMER_SETTIME => arguments[2] = some_time(random),
        sys::ALARM => arguments[0] = random.below(2),
        _ => {}
    }
    arguments
}

/// Address of the interval and the delay of a timer.
fn some_time(random: &mut Random) -> u64 {
    random.of(&[&TIMERS[0], &TIMERS[1], &TIMERS[2]]).as_ptr() as u64
}

/// Address of a `struct sigevent` that requests a signal or no signal; or 0.
fn some_event(random: &mut Random) -> u64 {
    if random.below(4) == 0 {
        return 0;
    }
    let how = random.of(&[0, 0, 1, 4]);
    let words = (&raw mut MEMORY).cast::<[u64; 3]>();
    let event = [random.next(), how << 32 | signal(random), of_thread(random)];
    // SAFETY: as in `some_action`.
    unsafe { words.write_volatile(event) };
    words as u64
}

/// Address of a timeout, rarely 0 for no timeout.
fn time(random: &mut Random) -> u64 {
    match random.below(RARELY) {
        0 => 0,
        _ => random.of(&[TIMES[0].as_ptr() as u64, TIMES[1].as_ptr() as u64]),
    }
}

/// Timeout in milliseconds, rarely no timeout.
fn milliseconds(random: &mut Random) -> u64 {
    match random.below(RARELY) {
        0 => u64::MAX,
        _ => random.below(2),
    }
}

/// `O_NONBLOCK`, rarely 0.
fn nonblocking(random: &mut Random) -> u64 {
    if random.below(RARELY) == 0 { 0 } else { 0o4000 }
}

/// Linux call that the kernel implements. Calls that would end the program or its thread, or wait
/// for years, are excluded.
fn linux(random: &mut Random) -> u64 {
    loop {
        match random.below(LINUX) {
            sys::EXIT | sys::EXIT_GROUP | sys::CLONE | sys::PAUSE | sys::RT_SIGSUSPEND => {}
            // `wild` forges frames at its end; a forged frame before that could lead into an
            // endless loop.
            sys::NANOSLEEP | sys::CLOCK_NANOSLEEP | sys::RT_SIGRETURN => {}
            number if sys::name(number).is_some() => return number,
            _ => {}
        }
    }
}

/// A call of Tally, a call of Linux, or a number that is not a call.
pub fn choose(random: &mut Random) -> u64 {
    match random.below(40) {
        // Sleeps, which may last for years, are excluded. These numbers are rare, because the log
        // has a line for each unknown number.
        0 if random.below(10) == 0 => match random.below(LINUX) {
            sys::NANOSLEEP | sys::CLOCK_NANOSLEEP => sys::GETPID,
            // `wild` forges frames at its end; a forged frame before that could lead into an
            // endless loop.
            sys::RT_SIGRETURN => sys::GETPID,
            number => number,
        },
        1 => random.next(),
        2 => sys::TALLY_BASE + random.below(64),
        3..12 => linux(random),
        12..18 => random.of(&CALLS_ON_THREADS),
        // Loading a program takes as long as hundreds of other calls.
        18 if random.below(4) == 0 => sys::PROGRAM_LOAD,
        18..24 => sys::PROGRAM_RUN + random.below(2),
        24..27 => sys::DIRECT_OPEN + random.below(2),
        _ => sys::SESSION_OPEN + random.below(14),
    }
}

/// Address of a signal's action.
fn some_action(random: &mut Random) -> u64 {
    let flags = random.of(&[0, 0x0800_0000, 0x1000_0000, 0x4000_0000, 0x8000_0000]);
    let words = (&raw mut MEMORY).cast::<[u64; 4]>();
    // SAFETY: the memory is larger; another thread may change the words, which the kernel checks.
    unsafe { words.write_volatile(action(handle, flags, random.next())) };
    words as u64
}

/// Address of a session's configuration.
fn some_config(random: &mut Random) -> u64 {
    let config = SessionConfig {
        slice: Slice::Cycles(random.of(&[5_000, 20_000, 200_000])),
        budget_ppm: session::NO_BUDGET_PPM,
        exclusive: random.below(8) == 0,
        scope: random.of(&[Scope::Program, Scope::Threads]),
        unit: random.below(8) == 0,
        ..SessionConfig::default()
    };
    let words = (&raw mut MEMORY).cast::<session::ConfigWords>();
    // SAFETY: as in `some_action`.
    unsafe { words.write_volatile(config.to_words()) };
    words as u64
}

/// Address of a configuration of phases. Some intervals are shorter than a round of slices.
fn some_phases(random: &mut Random) -> u64 {
    let config = PhaseConfig {
        interval_instructions: random.of(&[1_000, 200_000, 1_000_000]),
        unit: random.of(&[1, 128]),
        classifier: random.of(&Classifier::ALL),
        predictor: random.of(&Predictor::ALL),
    };
    let words = (&raw mut MEMORY).cast::<PhaseConfigWords>();
    // SAFETY: as in `some_action`.
    unsafe { words.write_volatile(config.to_words()) };
    words as u64
}

/// Valid arguments for the call.
#[expect(clippy::too_many_lines, reason = "a match with one arm per call")]
fn fitting(random: &mut Random, number: u64, lists: &[String]) -> [u64; 6] {
    let path = random.of(&PATHS).as_ptr() as u64;
    let (small, fd, memory) = (random.below(9), random.below(12), memory(random));
    let list = &lists[list_of(random)];
    let (events, bytes) = (list.as_ptr() as u64, list.len() as u64 - 1);
    match number {
        sys::OPEN | sys::STAT | sys::UNLINK | sys::TRUNCATE => {
            [path, random.of(&[0, 0o101, 0o1102, 0o2001]), 0, 0, 0, 0]
        }
        sys::POLL | sys::PPOLL => [memory, small, 0, memory, 8, 0],
        sys::OPENAT | sys::NEWFSTATAT | sys::UNLINKAT => [0, path, memory, 0, 0, 0],
        sys::READLINKAT | sys::FACCESSAT => [fd, path, memory, 64, 0, 0],
        sys::RENAMEAT => [u64::MAX - 99, path, fd, random.of(&PATHS).as_ptr() as u64, 0, 0],
        sys::RENAME | sys::LINK | sys::SYMLINK => {
            [path, random.of(&PATHS).as_ptr() as u64, 0, 0, 0, 0]
        }
        sys::CHDIR | sys::MKDIR | sys::RMDIR | sys::CREAT | sys::STATFS | sys::LSTAT => {
            [path, memory, 0, 0, 0, 0]
        }
        sys::MKDIRAT | sys::STATX | sys::FACCESSAT2 => [fd, path, small, 0, memory, 0],
        sys::LINKAT | sys::RENAMEAT2 => {
            [u64::MAX - 99, path, fd, random.of(&PATHS).as_ptr() as u64, small / 8, 0]
        }
        sys::SYMLINKAT => [path, fd, random.of(&PATHS).as_ptr() as u64, 0, 0, 0],
        sys::PIPE | sys::PIPE2 => [memory, nonblocking(random), 0, 0, 0, 0],
        sys::SOCKETPAIR => [1, 1 | nonblocking(random), 0, memory, 0, 0],
        sys::EVENTFD2 | sys::EVENTFD => [small, nonblocking(random), 0, 0, 0, 0],
        sys::EPOLL_CTL => [fd, 1 + small % 3, random.below(12), memory, 0, 0],
        sys::TIMERFD_CREATE => [small / 5, nonblocking(random), 0, 0, 0, 0],
        sys::TIMERFD_SETTIME => [fd, small / 7, time(random), 0, 0, 0],
        sys::TIMER_CREATE => [small / 2, some_event(random), memory, 0, 0, 0],
        sys::TIMER_SETTIME => [small, small / 8, 0, random.of(&[0, memory]), 0, 0],
        sys::TIMER_GETTIME | sys::TIMER_GETOVERRUN | sys::TIMER_DELETE => {
            [small, memory, 0, 0, 0, 0]
        }
        sys::SIGNALFD | sys::SIGNALFD4 => {
            [random.of(&[u64::MAX, fd]), memory & !7, 8, 0o4000, 0, 0]
        }
        sys::RT_SIGQUEUEINFO => [of_thread(random), signal(random), memory, 0, 0, 0],
        sys::RT_TGSIGQUEUEINFO => {
            [of_thread(random), of_thread(random), signal(random), memory, 0, 0]
        }
        sys::SELECT => [random.below(20), memory, memory, 0, 0, 0],
        sys::SENDTO | sys::RECVFROM => [fd, memory, size(random), 0x4040, 0, 0],
        sys::FALLOCATE => [fd, small / 6, size(random), size(random), 0, 0],
        sys::SENDFILE => [fd, random.below(12), random.of(&[0, memory]), size(random), 0, 0],
        sys::COPY_FILE_RANGE => {
            [fd, random.of(&[0, memory]), random.below(12), 0, size(random), small / 8]
        }
        sys::PWRITE64 | sys::PREAD64 => [fd, memory, random.below(3000), size(random), 0, 0],
        sys::FTRUNCATE => [fd, size(random), 0, 0, 0, 0],
        sys::FUTEX => [memory & !3, random.below(14), small / 4, 0, memory & !7, 0],
        sys::RT_SIGACTION => {
            [1 + random.below(64), some_action(random), random.of(&[0, memory]), 8, 0, 0]
        }
        sys::RT_SIGPROCMASK => [small % 3, memory, 0, 8, 0, 0],
        sys::TKILL | sys::KILL => [of_thread(random), signal(random), 0, 0, 0, 0],
        sys::TGKILL => [of_thread(random), of_thread(random), signal(random), 0, 0, 0],
        sys::SCHED_SETAFFINITY | sys::SCHED_GETAFFINITY => [0, 8, memory, 0, 0, 0],
        sys::MMAP => mapping(random, fd),
        sys::MUNMAP | sys::MPROTECT | sys::MADVISE | sys::MSYNC | sys::MLOCK | sys::MLOCK2 => {
            [page(random), size(random), small, 0, 0, 0]
        }
        sys::MINCORE => [page(random), size(random), memory, 0, 0, 0],
        sys::MREMAP => {
            let (old, new) = (4096 << (small / 3), 4096 << (small / 2));
            [page(random), old, new, random.below(4), page(random), 0]
        }
        sys::SESSION_OPEN => {
            [events, bytes, some_config(random), memory, 100, random.of(&[0, 0, 0, small])]
        }
        sys::DIRECT_OPEN => [events, bytes, 0, memory, 0, 0],
        sys::PROGRAM_LOAD => {
            let words = random.of(&PROGRAMS);
            [words.as_ptr() as u64, words.len() as u64, memory, 64, 0, 0]
        }
        sys::SESSION_PHASES => {
            let end = 1 << random.below(16);
            let session = random.below(end);
            [session, some_phases(random), random.of(&[0, memory]), memory, 0, 0]
        }
        sys::SESSION_SAMPLE => {
            let end = 1 << random.below(16);
            let period = random.of(&[0, 1, 200, 5_000, 100_000, u64::MAX]);
            let (stack, hz) =
                (random.of(&[0, 0, 64, 4096, 1 << 17]), random.of(&[0, 0, 99, 1 << 24]));
            let branches = random.of(&[0, 0, 0b1001, 1 << 11 | 1, 1 << 4 | 0b11, 1 << 14]);
            [random.below(end), random.below(4), period, stack, hz, branches]
        }
        // Sessions and programs are numbered in order of creation.
        sys::SESSION_START..=sys::PROGRAM_KILL => {
            let end = 1 << random.below(16);
            [random.below(end), memory, small, 0, 0, 0]
        }
        _ => [fd, memory, random.below(2000), small, 0, 0],
    }
}

/// Index of a list of events. The kernel compares an unknown name with all known names, which takes
/// as long as hundreds of other calls.
fn list_of(random: &mut Random) -> usize {
    match random.below(LISTS.len() as u64) as usize {
        UNKNOWN_EVENT if random.below(10) != 0 => 0,
        index => index,
    }
}

/// Address of one of the pages that programs map at fixed addresses.
fn page(random: &mut Random) -> u64 {
    0x5000_0000 + 4096 * random.below(64)
}

/// Arguments of `mmap`: anonymous or of a file, anywhere or over other mappings.
fn mapping(random: &mut Random, fd: u64) -> [u64; 6] {
    let page = page(random);
    let (address, fixed) = random.of(&[(0, 0), (page, 0), (page, 0x10)]);
    let kind = random.of(&[0x22, 0x22, 0x21, 0x02, 0x01, 0x4022]);
    let access = random.of(&[3, 3, 1, 0, 5]);
    [address, size(random), access, kind | fixed, fd, 4096 * random.below(3)]
}

/// Length: a few pages, rarely a megabyte.
fn size(random: &mut Random) -> u64 {
    let most = random.of(&[1 << 12, 1 << 13, 1 << 13, 1 << 14]);
    let most = if random.below(64) == 0 { 1 << 20 } else { most };
    random.below(most)
}

/// Signal, rarely one that ends the program.
fn signal(random: &mut Random) -> u64 {
    match random.below(300) {
        0 => 1 + random.below(64),
        _ => random.of(&[SIGUSR1, SIGALRM, SIGCHLD, SIGURG]),
    }
}

/// Number of this program or a thread, or one near it.
fn of_thread(random: &mut Random) -> u64 {
    // SAFETY: the call touches no memory.
    let thread = unsafe { sys::call(sys::GETTID, [0; 6]) } as u64;
    (thread + random.below(5)).saturating_sub(2)
}

/// Address in the buffer.
pub fn memory(random: &mut Random) -> u64 {
    (&raw const MEMORY) as u64 + random.below(BUFFER as u64)
}

/// Random word: often an address that is invalid or special.
pub fn anything(random: &mut Random) -> u64 {
    match random.below(10) {
        0 => random.next(),
        1 => random.of(&[0, 1, u64::MAX, 1 << 63, i64::MAX as u64]),
        2 => random.of(&[0x10, 0x7fff_fffe_f000, 0x7fff_ffff_0000, 0x8000_0000_0000]),
        3 => random.of(&[0xffff_8000_0000_0000, 0xffff_ff00_0000_0000, u64::MAX - 7]),
        // An address of the text, which is not writable.
        4 => handle as extern "C" fn(u64) as usize as u64,
        5 => 1 << random.below(64),
        6 => random.below(64),
        _ => memory(random),
    }
}
