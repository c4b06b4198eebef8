//! Throws system calls at the kernel: known ones with arguments that make sense, wild ones, and ones in
//! between, by many programs at the same time, some of several threads, which crash, handle signals, leave
//! sessions open and end in the middle.
//!
//! `fuzz CALLS SEED EVENT` makes at least so many calls, a few thousand in each program, and then checks
//! that counting is exact. `fuzz wild CALLS SEED EVENT` is one of those programs.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{format, string::String, vec::Vec};
use core::{
    arch::asm,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use tally::{
    ExitStatus, Program, Session, SessionConfig, Slice, Value, eprintln, println,
    runtime::arguments, session, sys,
};

use tally_test_guests::{
    hush,
    random::Random,
    threads::{CALLS_ON_THREADS, action, end, forge, spawn},
};

tally::main!(main);

/// Calls of one program, if it lives so long.
const CALLS: u64 = 4000;
/// Programs at the same time.
const AT_ONCE: usize = 4;
/// Lines about how far it is.
const LINES: u64 = 20;
const PATHS: [&[u8]; 6] =
    [b"corpus.txt\0", b"/tmp/a\0", b"b\0", b"no such file\0", b"/dev/null\0", b"/\0"];
const PROGRAMS: [&[u8]; 4] =
    [b"status\x007\0", b"crash\0divide\0", b"no such program\0", b"corpus.txt\0"];
const LISTS: [&str; 5] = [
    "instructions,branches,branch-misses,cache-misses,L1-dcache-loads,r01c2,r02c2,r04c2",
    "instructions,cycles",
    "cycles:k,instructions:u",
    "no-such-event",
    "r01c2@3,branches@70",
];
/// Bytes of memory that calls may fill.
const BUFFER: usize = 16 * 1024;

/// The most threads of one program besides the first, and the words of their stacks.
const THREADS: usize = 3;
const STACK_WORDS: usize = 4096;
const SIGUSR1: u64 = 10;
const SIGALRM: u64 = 14;
const SIGCHLD: u64 = 17;
const SIGURG: u64 = 23;
/// Signals that one program handles, in case one comes again and again, as that of a fault does.
const SIGNALS: u64 = 200;
/// What waiting ends after, where it ends by itself: no time, and a millisecond.
static TIMES: [[u64; 2]; 2] = [[0, 0], [0, 1_000_000]];
/// The same of timers, in microseconds.
static TIMERS: [[u64; 4]; 3] = [[0; 4], [0, 0, 0, 500], [0, 20_000, 0, 10_000]];

static mut STACKS: [[u128; STACK_WORDS]; THREADS] = [[0; STACK_WORDS]; THREADS];
static HEARD: AtomicU64 = AtomicU64::new(0);
static mut LISTS_OF_EVENTS: &[String] = &[];
static mut MEMORY: [u64; BUFFER / 8] = [0; BUFFER / 8];

fn main() -> i32 {
    let words: Vec<&str> = arguments().skip(1).collect();
    let numbers = |calls: &str, seed: &str| Some((calls.parse().ok()?, seed.parse().ok()?));
    match *words {
        ["wild", calls, seed, event] => {
            numbers(calls, seed).map_or_else(usage, |(calls, seed)| wild(calls, seed, event))
        }
        [calls, seed, event] => {
            numbers(calls, seed).map_or_else(usage, |(calls, seed)| all(calls, seed, event))
        }
        _ => usage(),
    }
}

fn usage() -> i32 {
    eprintln!("fuzz: say `fuzz CALLS SEED EVENT`");
    ExitStatus::Usage as i32
}

/// Lets wild programs go, a few at a time, until they have made enough calls.
fn all(calls: u64, seed: u64, event: &str) -> i32 {
    let mut random = Random(seed);
    let (mut made, mut ends, mut told) = (0, [0_u64; 3], 0);
    let mut running: Vec<Program> = Vec::new();
    while made < calls {
        while running.len() < AT_ONCE {
            let (calls, seed) = (format!("{CALLS}"), format!("{}", random.next()));
            let program = match Program::load(&["fuzz", "wild", &calls, &seed, event]) {
                Ok(program) => program,
                Err(refused) => {
                    eprintln!("fuzz: after {made} calls: {refused}");
                    return 1;
                }
            };
            program.run().expect("it was not let go");
            running.push(program);
        }
        let first = running.swap_remove(random.below(AT_ONCE as u64) as usize);
        match first.wait().expect("it was let go") {
            0 => {
                made += CALLS;
                ends[0] += 1;
            }
            76 => ends[1] += 1,
            _ => ends[2] += 1,
        }
        if made * LINES / calls.max(1) > told {
            told = made * LINES / calls.max(1);
            println!("fuzz: {made} calls of {calls}");
        }
    }
    for program in running {
        program.wait().expect("it was let go");
    }
    let [whole, crashed, other] = ends;
    println!(
        "fuzz: {whole} programs made all their calls, {crashed} crashed, {other} ended before"
    );
    exact(event)
}

/// Whether counting is still exact, whatever happened before.
fn exact(event: &str) -> i32 {
    let config = SessionConfig::default();
    let session = match Session::open(event, config) {
        Ok(session) => session,
        Err(refused) => {
            eprintln!("fuzz: {refused}");
            return 1;
        }
    };
    let mut counted = [0, 1_000_000, 0].map(|turns: u64| {
        session.start().expect("it was stopped");
        // SAFETY: works on one register.
        unsafe {
            asm!("2:", "sub {0}, 1", "jnz 2b", inout(reg) turns + 1 => _, options(nostack, nomem));
        }
        session.stop().expect("it was started");
        match session.read().map(|readings| readings[0].value) {
            Ok(Value::Exact { count }) => count,
            _ => 0,
        }
    });
    (1..3).rev().for_each(|index| counted[index] -= counted[index - 1]);
    let exact = counted[1] == counted[2] + 2_000_000;
    println!("fuzz: done, counting is {}", if exact { "exact" } else { "off" });
    i32::from(!exact)
}

/// Makes calls, and ends somehow.
fn wild(calls: u64, seed: u64, event: &str) -> ! {
    let mut random = Random(seed);
    hush();
    let lists: Vec<String> = LISTS.iter().map(|list| format!("{event},{list}\0")).collect();
    // SAFETY: there is one thread yet.
    unsafe { LISTS_OF_EVENTS = lists.leak() };
    for signal in [SIGUSR1, SIGALRM] {
        let action = action(hear, 0, 0);
        // SAFETY: the words are valid for reading.
        unsafe { sys::call(sys::RT_SIGACTION, [signal, action.as_ptr() as u64, 0, 8, 0, 0]) };
    }
    let (stacks, threads) = (&raw mut STACKS, random.below(THREADS as u64 + 1) as usize);
    // SAFETY: nobody else names them, and each is one thread's alone.
    for stack in unsafe { &mut *stacks }.iter_mut().take(threads) {
        spawn(stack, race, random.next());
    }
    make_calls(&mut random, calls);
    if random.below(4) == 0 {
        let (place, wild) = (memory(&mut random), anything(&mut random));
        let rip = random.of(&[0, goes_on as extern "C" fn() -> ! as usize as u64, wild]);
        let fpu = random.of(&[0, place, wild]);
        forge(rip, fpu, || anything(&mut random));
    }
    // Not by way of the heap, in which anything may be by now.
    sys::exit(0)
}

/// Where a forged frame may well go on.
extern "C" fn goes_on() -> ! {
    sys::exit(0)
}
/// Another thread of a wild program.
extern "C" fn race(seed: u64) -> ! {
    make_calls(&mut Random(seed), CALLS / 8);
    end()
}

/// A signal's handler.
extern "C" fn hear(_: u64) {
    if HEARD.fetch_add(1, Relaxed) > SIGNALS {
        sys::exit(5);
    }
}

fn make_calls(random: &mut Random, calls: u64) {
    // SAFETY: it was set before there was a second thread.
    let lists = unsafe { LISTS_OF_EVENTS };
    for _ in 0..calls {
        let number = choose(random);
        let mut arguments = match random.below(3) {
            // As the call wants them, but for one that may be anything.
            0 | 1 => {
                let mut arguments = fitting(random, number, lists);
                if random.below(4) == 0 {
                    arguments[random.below(6) as usize] = anything(random);
                }
                arguments
            }
            _ => core::array::from_fn(|_| anything(random)),
        };
        // Whoever waits may wait for ever, which is told, but not for years.
        match number {
            sys::FUTEX => arguments[3] = time(random),
            sys::RT_SIGTIMEDWAIT => arguments[2] = time(random),
            sys::SETITIMER => {
                arguments[1] = random.of(&[&TIMERS[0], &TIMERS[1], &TIMERS[2]]).as_ptr() as u64
            }
            sys::ALARM => arguments[0] = random.below(2),
            _ => {}
        }
        let is_large = |bytes: &u64| (1 << 20..1 << 40).contains(bytes);
        let fills = matches!(number, sys::MMAP | sys::BRK | sys::TRUNCATE | sys::FTRUNCATE);
        if fills && arguments[..2].iter().any(is_large) && random.below(100) != 0 {
            // Filling memory takes long, and everything else waits meanwhile.
            continue;
        }
        // SAFETY: none. What a call does to this program's memory is this program's end at worst, and
        // that is what it is for.
        unsafe { sys::call(number, arguments) };
    }
}

/// When waiting ends by itself, or never.
fn time(random: &mut Random) -> u64 {
    random.of(&[0, TIMES[0].as_ptr() as u64, TIMES[1].as_ptr() as u64])
}

/// Every call of Tally's, most of Linux's, and numbers that are none.
fn choose(random: &mut Random) -> u64 {
    const LINUX: [u64; 44] = [
        sys::READ,
        sys::WRITE,
        sys::OPEN,
        sys::CLOSE,
        sys::STAT,
        sys::FSTAT,
        sys::LSEEK,
        sys::MMAP,
        sys::MPROTECT,
        sys::MUNMAP,
        sys::BRK,
        sys::RT_SIGACTION,
        sys::RT_SIGPROCMASK,
        sys::IOCTL,
        sys::PREAD64,
        sys::PWRITE64,
        sys::READV,
        sys::WRITEV,
        sys::ACCESS,
        sys::SCHED_YIELD,
        sys::MREMAP,
        sys::DUP,
        sys::DUP2,
        sys::GETPID,
        sys::UNAME,
        sys::FCNTL,
        sys::FTRUNCATE,
        sys::TRUNCATE,
        sys::GETCWD,
        sys::RENAME,
        sys::UNLINK,
        sys::READLINK,
        sys::GETPPID,
        sys::ARCH_PRCTL,
        sys::CLOCK_GETTIME,
        sys::OPENAT,
        sys::NEWFSTATAT,
        sys::UNLINKAT,
        sys::PRLIMIT64,
        sys::GETRANDOM,
        sys::DUP3,
        sys::UTIMENSAT,
        sys::TIME,
        sys::KILL,
    ];
    match random.below(40) {
        // Whoever sleeps may sleep for ever. Few of these: each that is not there is a line in the log.
        0 if random.below(10) == 0 => match random.below(512) {
            sys::NANOSLEEP | sys::CLOCK_NANOSLEEP => sys::GETPID,
            // Frames are forged where that is the program's end ([`wild`]): it may not go on for ever.
            sys::RT_SIGRETURN => sys::GETPID,
            number => number,
        },
        1 => random.next(),
        2 => sys::TALLY_BASE + random.below(64),
        3..12 => random.of(&LINUX),
        12..18 => random.of(&CALLS_ON_THREADS),
        18..24 => sys::PROGRAM_LOAD + random.below(3),
        24..27 => sys::DIRECT_OPEN + random.below(2),
        _ => sys::SESSION_OPEN + random.below(11),
    }
}

/// Arguments that the call may well take.
fn fitting(random: &mut Random, number: u64, lists: &[String]) -> [u64; 6] {
    let path = random.of(&PATHS).as_ptr() as u64;
    let (small, fd, memory) = (random.below(9), random.below(12), memory(random));
    let list = &lists[random.below(lists.len() as u64) as usize];
    let (events, bytes) = (list.as_ptr() as u64, list.len() as u64 - 1);
    match number {
        sys::OPEN | sys::STAT | sys::UNLINK | sys::TRUNCATE => {
            [path, random.of(&[0, 0o101, 0o1102, 0o2001]), 0, 0, 0, 0]
        }
        sys::OPENAT | sys::NEWFSTATAT | sys::UNLINKAT => [0, path, memory, 0, 0, 0],
        sys::RENAME => [path, random.of(&PATHS).as_ptr() as u64, 0, 0, 0, 0],
        sys::PWRITE64 | sys::PREAD64 => {
            [fd, memory, random.below(3000), random.below(1 << 20), 0, 0]
        }
        sys::FTRUNCATE => [fd, random.below(1 << 20), 0, 0, 0, 0],
        sys::FUTEX => [memory & !3, random.below(14), small / 4, 0, memory & !7, 0],
        sys::RT_SIGACTION => {
            let flags = random.of(&[0, 0x0800_0000, 0x1000_0000, 0x4000_0000, 0x8000_0000]);
            let words = (&raw mut MEMORY).cast::<[u64; 4]>();
            // SAFETY: the memory is larger; whatever another thread makes of it is its affair.
            unsafe { words.write_volatile(action(hear, flags, random.next())) };
            [1 + random.below(64), words as u64, random.of(&[0, memory]), 8, 0, 0]
        }
        sys::RT_SIGPROCMASK => [small % 3, memory, 0, 8, 0, 0],
        sys::TKILL | sys::KILL => [of_thread(random), signal(random), 0, 0, 0, 0],
        sys::TGKILL => [of_thread(random), of_thread(random), signal(random), 0, 0, 0],
        sys::SCHED_SETAFFINITY | sys::SCHED_GETAFFINITY => [0, 8, memory, 0, 0, 0],
        sys::MMAP => [0, random.below(1 << 17), 3, 0x22, u64::MAX, 0],
        sys::SESSION_OPEN => {
            let config = SessionConfig {
                slice: Slice::Cycles(random.of(&[5_000, 20_000, 200_000])),
                budget_ppm: session::NO_BUDGET_PPM,
                ..SessionConfig::default()
            };
            let words = (&raw mut MEMORY).cast::<session::ConfigWords>();
            // SAFETY: the one thread of this program; the memory is larger.
            unsafe { words.write(config.to_words()) };
            [events, bytes, words as u64, memory, 100, random.of(&[0, 0, 0, small])]
        }
        sys::DIRECT_OPEN => [events, bytes, 0, memory, 0, 0],
        sys::PROGRAM_LOAD => {
            let words = random.of(&PROGRAMS);
            [words.as_ptr() as u64, words.len() as u64, memory, 64, 0, 0]
        }
        // Numbers of sessions and programs go up with every one that was there.
        sys::SESSION_START..=sys::PROGRAM_WAIT => {
            let end = 1 << random.below(16);
            [random.below(end), memory, small, 0, 0, 0]
        }
        _ => [fd, memory, random.below(2000), small, 0, 0],
    }
}

/// A signal: rarely one that ends the program.
fn signal(random: &mut Random) -> u64 {
    match random.below(30) {
        0 => 1 + random.below(64),
        _ => random.of(&[SIGUSR1, SIGALRM, SIGCHLD, SIGURG]),
    }
}

/// The number of this program, of one of its threads, or of the next program.
fn of_thread(random: &mut Random) -> u64 {
    // SAFETY: the call touches no memory.
    let thread = unsafe { sys::call(sys::GETTID, [0; 6]) } as u64;
    (thread + random.below(5)).saturating_sub(2)
}

/// A place in this program's own buffer.
fn memory(random: &mut Random) -> u64 {
    (&raw const MEMORY) as u64 + random.below(BUFFER as u64)
}

fn anything(random: &mut Random) -> u64 {
    match random.below(10) {
        0 => random.next(),
        1 => random.of(&[0, 1, u64::MAX, 1 << 63, i64::MAX as u64]),
        2 => random.of(&[0x10, 0x7fff_fffe_f000, 0x7fff_ffff_0000, 0x8000_0000_0000]),
        3 => random.of(&[0xffff_8000_0000_0000, 0xffff_ff00_0000_0000, u64::MAX - 7]),
        // Code, which nobody may write.
        4 => main as fn() -> i32 as usize as u64,
        5 => 1 << random.below(64),
        6 => random.below(64),
        _ => memory(random),
    }
}
