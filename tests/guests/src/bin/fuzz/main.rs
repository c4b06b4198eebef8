//! Throws system calls at the kernel: known ones with arguments that make sense, wild ones, and ones in
//! between, by many programs at the same time, some of several threads, which crash, handle signals, leave
//! sessions open and end in the middle.
//!
//! `fuzz CALLS SEED EVENT` makes at least so many calls, up to some thousands in each program, and then checks
//! that counting is exact. `fuzz wild CALLS SEED EVENT FILE` is one of those programs, which notes in a file
//! how many it has made.

#![no_std]
#![no_main]

extern crate alloc;

mod calls;

use alloc::{format, string::String, vec::Vec};
use core::{
    array,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use tally::{
    ExitStatus, Program, Session, SessionConfig, Value, eprintln, io::read_file, println,
    runtime::arguments, sys,
};

use tally_test_guests::{
    hush,
    random::Random,
    spin,
    threads::{action, end, forge, spawn},
};

use calls::{LISTS, SIGALRM, SIGUSR1, anything, arguments_of, choose, hear, memory};

tally::main!(main);

/// Calls of one program, if it lives so long.
const CALLS: u64 = 4000;
/// Programs at the same time.
const AT_ONCE: usize = 4;
/// Of how many one is noted.
const NOTED: u64 = 50;
/// Where a program has the file in which it notes that: others of its are below, but for few.
const NOTES: u64 = 63;
/// Lines about how far it is.
const LINES: u64 = 20;
/// Where programs begin.
const CODE: u64 = 1 << 21;

/// The most threads of one program besides the first, and the words of their stacks.
const THREADS: usize = 3;
const STACK_WORDS: usize = 4096;

static mut STACKS: [[u128; STACK_WORDS]; THREADS] = [[0; STACK_WORDS]; THREADS];
static MADE: AtomicU64 = AtomicU64::new(0);
static mut LISTS_OF_EVENTS: &[String] = &[];

fn main() -> i32 {
    let words: Vec<&str> = arguments().skip(1).collect();
    let numbers = |calls: &str, seed: &str| Some((calls.parse().ok()?, seed.parse().ok()?));
    match *words {
        ["wild", calls, seed, event, file] => {
            numbers(calls, seed).map_or_else(usage, |(calls, seed)| wild(calls, seed, event, file))
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
    let files: [String; AT_ONCE] = array::from_fn(|slot| format!("/tmp/made{slot}"));
    let mut running: Vec<(usize, Program)> = Vec::new();
    while made < calls {
        while running.len() < AT_ONCE {
            let is_free = |slot: &usize| running.iter().all(|(used, _)| used != slot);
            let slot = (0..AT_ONCE).find(is_free).expect("fewer run than there are slots");
            let (calls, seed) = (format!("{CALLS}"), format!("{}", random.next()));
            let words = ["fuzz", "wild", &calls, &seed, event, &files[slot]];
            let program = match Program::load(&words) {
                Ok(program) => program,
                Err(refused) => {
                    eprintln!("fuzz: after {made} calls: {refused}");
                    return 1;
                }
            };
            program.run().expect("it was not let go");
            running.push((slot, program));
        }
        let (slot, first) = running.swap_remove(random.below(AT_ONCE as u64) as usize);
        match first.wait().expect("it was let go") {
            0 => ends[0] += 1,
            76 => ends[1] += 1,
            _ => ends[2] += 1,
        }
        made += noted(&files[slot]);
        if made * LINES / calls.max(1) > told {
            told = made * LINES / calls.max(1);
            println!("fuzz: {made} calls of {calls}");
        }
    }
    for (slot, program) in running {
        program.wait().expect("it was let go");
        made += noted(&files[slot]);
    }
    let [whole, crashed, other] = ends;
    println!(
        "fuzz: {made} calls; {whole} programs made all of theirs, {crashed} crashed, {other} ended before"
    );
    exact(event)
}

/// The calls that a program noted, which may have noted anything. The file is empty then.
fn noted(file: &str) -> u64 {
    let bytes = read_file(file).unwrap_or_default();
    let made = bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let path = format!("{file}\0");
    // SAFETY: the path is a string.
    unsafe { sys::call(sys::TRUNCATE, [path.as_ptr() as u64, 0, 0, 0, 0, 0]) };
    // What threads make comes on top of a program's own.
    made.min(2 * CALLS)
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
        spin(turns + 1);
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
fn wild(calls: u64, seed: u64, event: &str, file: &str) -> ! {
    let mut random = Random(seed);
    hush();
    let path = format!("{file}\0");
    // SAFETY: the path is a string; the calls touch no other memory.
    unsafe {
        let fd = sys::call(sys::OPEN, [path.as_ptr() as u64, 0o102, 0, 0, 0, 0]) as u64;
        sys::call(sys::DUP2, [fd, NOTES, 0, 0, 0, 0]);
        sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]);
    }
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
        spawn(stack, race, random.next(), None);
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

fn make_calls(random: &mut Random, calls: u64) {
    // SAFETY: it was set before there was a second thread.
    let lists = unsafe { LISTS_OF_EVENTS };
    for _ in 0..calls {
        let number = choose(random);
        let arguments = arguments_of(random, number, lists);
        let takes_code = matches!(number, sys::MUNMAP | sys::MPROTECT) && arguments[0] <= CODE;
        if takes_code && random.below(50) != 0 {
            // It is the program's end.
            continue;
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
        let made = MADE.fetch_add(1, Relaxed) + 1;
        if made.is_multiple_of(NOTED) {
            let word = &raw const made as u64;
            // SAFETY: the word is valid for reading.
            unsafe { sys::call(sys::PWRITE64, [NOTES, word, 8, 0, 0, 0]) };
        }
    }
}
