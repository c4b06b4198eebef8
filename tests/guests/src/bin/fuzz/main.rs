//! Makes random system calls: with valid arguments, with random ones, and with a mixture. Several
//! programs run at the same time, some with several threads. They fault, handle signals, leave
//! sessions open and exit inside them. Threads change ranges and code that calls of other threads
//! use.
//!
//! `fuzz CALLS SEED EVENT` makes at least CALLS, up to some thousands in each program. Whenever a
//! program ends, and at the end, it checks that counting is exact. `fuzz wild CALLS SEED EVENT
//! FILE` is one of those programs; it writes the number of its calls to FILE.

#![no_std]
#![no_main]

extern crate alloc;

mod area;
mod calls;
mod keeper;
mod ranges;

use alloc::{format, string::String, vec::Vec};
use core::array;

use tally::{
    ExitStatus, Program, Session, SessionConfig, Value, eprintln, io::read_file, println,
    runtime::arguments, sys,
};

use tally_test_guests::{
    discard_output,
    random::Random,
    spin,
    threads::{action, end, forge, spawn},
};

use calls::{LISTS, SIGALRM, SIGUSR1, anything, arguments_of, choose, handle, memory};
use keeper::THREADS;

tally::main!(main);

/// Maximum number of calls of one program.
const CALLS: u64 = 4000;
/// Programs that run at the same time.
const AT_ONCE: usize = 4;
/// Calls between two writes of their number.
const NOTED: u64 = 50;
/// Descriptor of the file for the number: the highest, because random calls use low ones.
const NOTES: u64 = 63;
/// Number of progress lines.
const LINES: u64 = 20;
/// Address of the text of programs.
const CODE: u64 = 1 << 21;

/// Frequencies, as one in this many calls: calls on the ranges that threads change, calls made in
/// code that threads rewrite, and calls followed by a rewrite of such code.
const ON_RANGES: u64 = 24;
const IN_CODE: u64 = 4;
const REWRITES: u64 = 64;

/// Signals received by a thread whose code another thread rewrites.
const SIGILL: u64 = 4;
const SIGSEGV: u64 = 11;
/// Flag for handlers that receive the thread's registers.
const SA_SIGINFO: u64 = 4;

/// Words of a thread's stack.
const STACK_WORDS: usize = 4096;
/// Frequency of programs without a keeper, which may wait for ever; the kernel must detect that.
const UNKEPT: u64 = 8;

/// Stacks of the additional threads and of the keeper.
static mut STACKS: [[u128; STACK_WORDS]; THREADS] = [[0; STACK_WORDS]; THREADS];
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
    eprintln!("fuzz: bad arguments: use `fuzz CALLS SEED EVENT`");
    ExitStatus::Usage as i32
}

/// Runs programs, a few at a time, until they have made enough calls.
fn all(calls: u64, seed: u64, event: &str) -> i32 {
    let mut random = Random(seed);
    let (mut made, mut ends, mut reported) = (0, [0_u64; 3], 0);
    let files: [String; AT_ONCE] = array::from_fn(|slot| format!("/tmp/made{slot}"));
    let mut running: Vec<(usize, Program)> = Vec::new();
    while made < calls {
        while running.len() < AT_ONCE {
            let is_free = |slot: &usize| running.iter().all(|(used, _)| used != slot);
            let slot = (0..AT_ONCE).find(is_free).expect("a slot is free");
            let (calls, seed) = (format!("{CALLS}"), format!("{}", random.next()));
            let words = ["fuzz", "wild", &calls, &seed, event, &files[slot]];
            let program = match Program::load(&words) {
                Ok(program) => program,
                Err(refused) => {
                    eprintln!("fuzz: after {made} calls: {refused}");
                    return 1;
                }
            };
            program.run().expect("it was not started");
            running.push((slot, program));
        }
        let (slot, first) = running.swap_remove(random.below(AT_ONCE as u64) as usize);
        ends[kind_of_end(first.wait().expect("it was started"))] += 1;
        made += noted(&files[slot]);
        if !is_exact(event, 20_000) {
            println!("fuzz: after {made} calls counting is off");
            return 1;
        }
        let line = made * LINES / calls.max(1);
        if line > reported {
            reported = line;
            println!("fuzz: {made} calls of {calls}");
        }
    }
    let (made, [whole, crashed, other]) = (made + rest(running, &files), ends);
    println!(
        "fuzz: {made} calls; {whole} programs made all of theirs, {crashed} faulted, {other} ended before"
    );
    let exact = is_exact(event, 1_000_000);
    println!("fuzz: done, counting is {}", if exact { "exact" } else { "off" });
    i32::from(!exact)
}

/// Waits for the programs that still run. Returns the number of their calls.
fn rest(running: Vec<(usize, Program)>, files: &[String]) -> u64 {
    let made = |(slot, program): (usize, Program)| {
        program.wait().expect("it was started");
        noted(&files[slot])
    };
    running.into_iter().map(made).sum()
}

/// Index by a program's status: made all its calls, faulted, ended earlier.
fn kind_of_end(status: u8) -> usize {
    match status {
        0 => 0,
        76 => 1,
        _ => 2,
    }
}

/// Reads and empties the file with the number of a program's calls. The program's random calls may
/// have changed the file.
fn noted(file: &str) -> u64 {
    let bytes = read_file(file).unwrap_or_default();
    let made = bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let path = format!("{file}\0");
    // SAFETY: the path ends with a 0.
    unsafe { sys::call(sys::TRUNCATE, [path.as_ptr() as u64, 0, 0, 0, 0, 0]) };
    // The number includes calls of additional threads.
    made.min(2 * CALLS)
}

/// Counts a loop twice, the second time with `more` iterations, of two instructions each. Returns
/// whether the counts are exact and differ accordingly.
fn is_exact(event: &str, more: u64) -> bool {
    let config = SessionConfig::default();
    let session = match Session::open(event, config) {
        Ok(session) => session,
        Err(refused) => {
            eprintln!("fuzz: {refused}");
            return false;
        }
    };
    let mut counted = [0, more, 0].map(|iterations: u64| {
        session.start().expect("it was stopped");
        spin(iterations + 1);
        session.stop().expect("it was started");
        match session.read().map(|readings| readings[0].value) {
            Ok(Value::Exact { count }) => count,
            _ => 0,
        }
    });
    (1..3).rev().for_each(|index| counted[index] -= counted[index - 1]);
    counted[1] == counted[2] + 2 * more
}

/// Runs one of the programs: makes its calls and exits.
fn wild(calls: u64, seed: u64, event: &str, file: &str) -> ! {
    let mut random = Random(seed);
    discard_output();
    let path = format!("{file}\0");
    // SAFETY: the path ends with a 0; the calls touch no other memory.
    unsafe {
        let fd = sys::call(sys::OPEN, [path.as_ptr() as u64, 0o102, 0, 0, 0, 0]) as u64;
        sys::call(sys::DUP2, [fd, NOTES, 0, 0, 0, 0]);
        sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]);
    }
    let lists: Vec<String> = LISTS.iter().map(|list| format!("{event},{list}\0")).collect();
    // SAFETY: there is one thread so far.
    unsafe { LISTS_OF_EVENTS = lists.leak() };
    for signal in [SIGUSR1, SIGALRM] {
        let action = action(handle, 0, 0);
        // SAFETY: the words are valid for reading.
        unsafe { sys::call(sys::RT_SIGACTION, [signal, action.as_ptr() as u64, 0, 8, 0, 0]) };
    }
    ranges::begin(THREADS);
    for signal in [SIGILL, SIGSEGV] {
        let mut action = action(handle, SA_SIGINFO, 0);
        action[0] = ranges::mend as *const () as u64;
        // SAFETY: the words are valid for reading.
        unsafe { sys::call(sys::RT_SIGACTION, [signal, action.as_ptr() as u64, 0, 8, 0, 0]) };
    }
    start_threads(&mut random);
    make_calls(&mut random, 0, calls);
    if random.below(2) == 0 {
        let (place, wild) = (memory(&mut random), anything(&mut random));
        let rip = random.of(&[0, exit as extern "C" fn() -> ! as usize as u64, wild]);
        let area = area::forge(&mut random);
        let fpu = random.of(&[0, area, area, area, place, wild]);
        forge(rip, fpu, || anything(&mut random));
    }
    // Exit without the heap, which random calls may have overwritten.
    sys::exit(0)
}

/// Return address of some forged signal frames.
extern "C" fn exit() -> ! {
    sys::exit(0)
}

/// Starts the additional threads and the keeper.
fn start_threads(random: &mut Random) {
    let (stacks, threads) = (&raw mut STACKS, random.below(THREADS as u64) as usize);
    // SAFETY: only this place refers to the stacks, and each thread has its own.
    let [keepers, others @ ..] = unsafe { &mut *stacks };
    for (index, stack) in others.iter_mut().take(threads).enumerate() {
        spawn(stack, race, random.next() << 2 | (index as u64 + 1), None);
    }
    if random.below(UNKEPT) != 0 {
        spawn(keepers, keeper::keep, 0, None);
    }
}

/// Entry of an additional thread; its index is in the seed's lowest bits.
extern "C" fn race(seed: u64) -> ! {
    make_calls(&mut Random(seed), seed as usize % THREADS, CALLS / 8);
    end()
}

/// Any call, or one on the ranges that threads change.
fn next_call(random: &mut Random, lists: &[String]) -> ranges::Call {
    if random.below(ON_RANGES) == 0 {
        return ranges::some(random, lists);
    }
    let number = choose(random);
    (number, arguments_of(random, number, lists))
}

/// Makes the calls of the thread with this index.
fn make_calls(random: &mut Random, index: usize, calls: u64) {
    keeper::begin(index);
    // SAFETY: the static was set before the second thread started.
    let lists = unsafe { LISTS_OF_EVENTS };
    for _ in 0..calls {
        let (number, arguments) = next_call(random, lists);
        let takes_code = matches!(number, sys::MUNMAP | sys::MPROTECT) && arguments[0] <= CODE;
        if takes_code && random.below(50) != 0 {
            // Such a call would end the program.
            continue;
        }
        let is_large = |bytes: &u64| (1 << 20..1 << 40).contains(bytes);
        let fills = matches!(number, sys::MMAP | sys::BRK | sys::TRUNCATE | sys::FTRUNCATE);
        if fills && arguments[..2].iter().any(is_large) && random.below(100) != 0 {
            // Filling large memory takes long.
            continue;
        }
        let call = (number, arguments);
        let in_code = random.below(IN_CODE) == 0;
        let result = if in_code { ranges::make_in_code(index, call) } else { ranges::make(call) };
        ranges::note(call, result);
        if random.below(REWRITES) == 0 {
            ranges::rewrite(random, THREADS, lists);
        }
        if number == sys::RT_SIGPROCMASK && random.below(UNKEPT) != 0 {
            keeper::unblock();
        }
        let made = keeper::made(index);
        if made.is_multiple_of(NOTED) {
            let word = &raw const made as u64;
            // SAFETY: the word is valid for reading.
            unsafe { sys::call(sys::PWRITE64, [NOTES, word, 8, 0, 0, 0]) };
        }
    }
    keeper::finish(index);
}
