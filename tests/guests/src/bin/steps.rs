//! During a long call of another thread, changes the code that makes the call, or the ranges that
//! the call works on: `steps CHANGE`.
//!
//! - `read`: the call is rewritten to a read of ten bytes.
//! - `unmap`: the call is rewritten to unmap the memory.
//! - `kernel`: the call is rewritten to move a page into the kernel's half.
//! - `bank`: a mapping moves, and a bank is mapped at its destination.
//! - `truncate`: a mapping of a file is unmapped, and the file is truncated.
//! - `own`: no other thread; a file is read into and written from an untouched mapping of itself.
//! - `protect`: access to a mapping changes, and a bank is mapped in its middle.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

use tally::{Session, SessionConfig, println, runtime::arguments, sys};
use tally_test_guests::{
    spin,
    threads::{end, spawn},
    yield_turn,
};

tally::main!(main);

/// Bytes of the long call, which takes some turns of the scheduler.
const BYTES: u64 = 100 << 20;
/// Bytes of a file, more than there is memory.
const FILE_BYTES: u64 = 64 << 20;
/// Address of the code, outside of the addresses that `mmap` gives out.
const CODE: u64 = 0x2000_0000_0000;
/// `mov` of RAX, RDI, RSI, RDX, R10, R8 from a constant.
const MOVES: [[u8; 2]; 6] =
    [[0x48, 0xb8], [0x48, 0xbf], [0x48, 0xbe], [0x48, 0xba], [0x49, 0xba], [0x49, 0xb8]];
/// Offset of the long call's SYSCALL in the code, after its constants.
const SYSCALL: u64 = 10 * MOVES.len() as u64;
/// Offset of the other call.
const OTHER: u64 = 128;
const RUNNING: i64 = i64::MIN;

static mut STACK: [u128; 1024] = [0; 1024];
static BEGUN: AtomicU64 = AtomicU64::new(0);
static RESULT: AtomicI64 = AtomicI64::new(RUNNING);

type Call = [u64; 6];

fn call([number, a, b, c, d, e]: Call) -> i64 {
    // SAFETY: the calls only touch memory that this program has mapped for them.
    unsafe { sys::call(number, [a, b, c, d, e, 0]) }
}

fn map(bytes: u64) -> u64 {
    // Private and anonymous.
    call([sys::MMAP, 0, bytes, 3, 0x22, 0]) as u64
}

fn write(at: u64, bytes: &[u8]) {
    for (at, byte) in (at..).zip(bytes) {
        // SAFETY: the page of code is mapped and writable, and the other thread is in the kernel.
        unsafe { (at as *mut u8).write_volatile(*byte) };
    }
}

/// Writes code that makes a call with these registers, and returns.
fn write_call(at: u64, words: Call) {
    for (index, (mov, word)) in MOVES.iter().zip(words).enumerate() {
        let at = at + 10 * index as u64;
        write(at, mov);
        write(at + 2, &word.to_le_bytes());
    }
    // SYSCALL, room for a jump, RET.
    write(at + SYSCALL, &[0x0f, 0x05, 0x90, 0x90, 0x90, 0xc3]);
}

/// Makes the call of the code in a thread, and waits until the thread has begun it.
fn begin(words: Call) {
    call([sys::MMAP, CODE, 4096, 3, 0x32, 0]);
    write_call(CODE, words);
    call([sys::MPROTECT, CODE, 4096, 5, 0, 0]);
    // SAFETY: only one thread uses the stack.
    let stack = unsafe { (&raw mut STACK).as_mut().expect("it is there") };
    spawn(stack, work, 0, None);
    while BEGUN.load(SeqCst) == 0 {
        yield_turn();
    }
    assert_eq!(RESULT.load(SeqCst), RUNNING, "the call was too short");
}

extern "C" fn work(_: u64) -> ! {
    BEGUN.store(1, SeqCst);
    // SAFETY: the code clobbers what a C function may.
    let code: extern "C" fn() -> i64 = unsafe { core::mem::transmute(CODE) };
    RESULT.store(code(), SeqCst);
    end()
}

/// Replaces the call in the code by another. Returns the result of that call.
fn become_other(words: Call) -> i64 {
    call([sys::MPROTECT, CODE, 4096, 3, 0, 0]);
    write_call(CODE + OTHER, words);
    write(CODE + SYSCALL, &[0xe9]);
    write(CODE + SYSCALL + 1, &((OTHER - SYSCALL - 5) as u32).to_le_bytes());
    call([sys::MPROTECT, CODE, 4096, 5, 0, 0]);
    result()
}

fn result() -> i64 {
    while RESULT.load(SeqCst) == RUNNING {
        yield_turn();
    }
    RESULT.load(SeqCst)
}

/// Opens the device of zeros.
fn zeros() -> u64 {
    call([sys::OPEN, c"/dev/zero".as_ptr() as u64, 0, 0, 0, 0]) as u64
}

fn open(events: &str) -> Session {
    Session::open(events, SessionConfig::default()).expect("the events exist")
}

/// Starts a long read and replaces it by `other`.
fn read_becomes(other: impl FnOnce(u64, u64) -> Call) -> (u64, i64) {
    let (zeros, memory) = (zeros(), map(BYTES));
    begin([sys::READ, zeros, memory, BYTES, 0, 0]);
    (memory, become_other(other(zeros, memory)))
}

fn is_mapped(page: u64) -> bool {
    // `msync`.
    call([sys::MSYNC, page, 4096, 4, 0, 0]) == 0
}

/// Maps the bank of another thread into a range that a long call works on.
fn bank_in(begin_call: impl FnOnce(u64), at: impl FnOnce(u64) -> u64) {
    let memory = map(BYTES);
    touch(memory, BYTES);
    // The page after the mapping keeps it from growing in place.
    call([sys::MMAP, memory + BYTES, 4096, 0, 0x32, 0]);
    let session = open("instructions,branches,branch-misses");
    begin_call(memory);
    let hole = at(memory);
    call([sys::MUNMAP, hole, 4096 * 16, 0, 0, 0]);
    let bank = session.map().expect("there is memory");
    let result = result();
    session.start().expect("it was stopped");
    spin(1000);
    session.stop().expect("it was started");
    let counted = bank.counter(0).expect("there are three").read();
    println!("steps: bank {} {}", result, counted > 2000);
}

/// Creates a file of `bytes`, and a shared mapping of it.
fn file(bytes: u64) -> (u64, u64) {
    let fd = call([sys::OPEN, c"/tmp/steps".as_ptr() as u64, 0o102, 0o600, 0, 0]) as u64;
    call([sys::FTRUNCATE, fd, bytes, 0, 0, 0]);
    (fd, call([sys::MMAP, 0, bytes, 3, 1, fd]) as u64)
}

fn touch(memory: u64, bytes: u64) {
    for page in (memory..memory + bytes).step_by(4096) {
        // SAFETY: the memory was mapped just now.
        unsafe { (page as *mut u64).write_volatile(page) };
    }
}

fn main() -> i32 {
    match arguments().nth(1).expect("usage: steps CHANGE") {
        "read" => {
            let (_, result) = read_becomes(|zeros, memory| [sys::READ, zeros, memory, 10, 0, 0]);
            println!("steps: read {result}");
        }
        "unmap" => {
            let (memory, result) = read_becomes(|_, memory| [sys::MUNMAP, memory, BYTES, 0, 0, 0]);
            println!("steps: unmap {result} {}", is_mapped(memory));
        }
        "kernel" => {
            let kernel = 0xffff_8000_002d_0000;
            let address = CODE.wrapping_sub(kernel);
            let (_, result) = read_becomes(|_, _| [sys::MREMAP, address, 4096, 8192, 1, 0]);
            println!("steps: kernel {result}");
        }
        "bank" => bank_in(
            |memory| begin([sys::MREMAP, memory, BYTES, BYTES + 4096, 1, 0]),
            // Destination of the mapping: after its old place, with a page in between.
            |memory| memory + BYTES + 8192 + BYTES - (64 << 12),
        ),
        "protect" => bank_in(
            |memory| begin([sys::MPROTECT, memory, BYTES, 1, 0, 0]),
            |memory| memory + BYTES - (64 << 12),
        ),
        "truncate" => {
            let (fd, memory) = file(FILE_BYTES);
            touch(memory, FILE_BYTES);
            begin([sys::MUNMAP, memory, FILE_BYTES, 0, 0, 0]);
            let cut = call([sys::FTRUNCATE, fd, 0, 0, 0, 0]);
            println!("steps: truncate {cut} {}", result());
        }
        "own" => {
            let (fd, memory) = file(4 * 4096);
            let read = call([sys::PREAD64, fd, memory + 4096, 4096, 0, 0]);
            let written = call([sys::PWRITE64, fd, memory + 8192, 4096, 0, 0]);
            println!("steps: own {read} {written}");
        }
        other => panic!("no change of the name {other}"),
    }
    0
}
