//! Calls on large ranges, which work in steps, while other threads unmap, move and protect these
//! ranges, map banks into them, and rewrite the code that makes the calls.

use alloc::string::String;
use core::{
    arch::naked_asm,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use tally::sys;
use tally_test_guests::random::Random;

use crate::calls::{anything, arguments_of, choose};

/// Start of the slots, above the first addresses that `mmap` gives out, which the heap uses.
const FIRST: u64 = 0x1000_0000_0000 + SLOT_BYTES;
const SLOTS: u64 = 4;
/// Distance of two slots; a mapping takes at most half of it.
const SLOT_BYTES: u64 = 8 << 20;
const PAGE: u64 = 4096;
/// Address of a page of code, with a site for each thread.
const CODE: u64 = 0x1100_0000_0000;
const SITE_BYTES: u64 = 256;
/// Descriptor of `/dev/zero`: random calls use low ones.
const ZERO: u64 = 62;

const READ_WRITE: u64 = 3;
const READ_EXECUTE: u64 = 5;
/// `MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED`.
const FIXED: u64 = 0x32;

/// Loads the registers from the seven words at RDI, and makes the call.
const STUB: [u8; 29] = [
    0x48, 0x8b, 0x07, // mov rax, [rdi]
    0x48, 0x8b, 0x77, 0x10, // mov rsi, [rdi + 16]
    0x48, 0x8b, 0x57, 0x18, // mov rdx, [rdi + 24]
    0x4c, 0x8b, 0x57, 0x20, // mov r10, [rdi + 32]
    0x4c, 0x8b, 0x47, 0x28, // mov r8, [rdi + 40]
    0x4c, 0x8b, 0x4f, 0x30, // mov r9, [rdi + 48]
    0x48, 0x8b, 0x7f, 0x08, // mov rdi, [rdi + 8]
    0x0f, 0x05, // syscall
];
/// `ret`, after room for a jump.
const END: [u8; 4] = [0x90, 0x90, 0x90, 0xc3];
/// Offset of SYSCALL in a site.
const SYSCALL: u64 = STUB.len() as u64 - 2;
/// Offset of the other call in a site.
const OTHER: u64 = 64;
/// `mov REGISTER, imm64` of RAX, RDI, RSI, RDX, R10, R8, R9.
const MOVES: [[u8; 2]; 7] = [
    [0x48, 0xb8],
    [0x48, 0xbf],
    [0x48, 0xbe],
    [0x48, 0xba],
    [0x49, 0xba],
    [0x49, 0xb8],
    [0x49, 0xb9],
];

/// Numbers of faults outside of the code, and in it, after which a program exits, because faults in
/// the code may repeat for ever.
const MOST_FAULTS: u64 = 200;
const MOST_IN_CODE: u64 = 10_000;
static FAULTS: AtomicU64 = AtomicU64::new(0);
static IN_CODE: AtomicU64 = AtomicU64::new(0);
/// Address of the instruction of the last fault in the code.
static FAULTED: AtomicU64 = AtomicU64::new(0);
/// Index of the instruction pointer in a `ucontext_t`, in words.
const RIP: usize = 21;

/// Session that was opened last.
static SESSION: AtomicU64 = AtomicU64::new(0);

/// A call: its number and arguments.
pub type Call = (u64, [u64; 6]);

/// Makes a call from here.
pub fn make((number, arguments): Call) -> u64 {
    // SAFETY: none: a call may overwrite this program's memory, which ends this program at worst.
    unsafe { sys::call(number, arguments) as u64 }
}

/// Maps the code, and the free space below the ranges, so that banks go into gaps of the ranges.
/// Opens the file that is read.
pub fn begin(threads: usize) {
    make((sys::MMAP, [CODE, PAGE, READ_WRITE, FIXED, 0, 0]));
    (0..threads as u64).for_each(|site| write_stub(CODE + SITE_BYTES * site));
    make((sys::MPROTECT, [CODE, PAGE, READ_EXECUTE, 0, 0, 0]));
    let free = make((sys::MMAP, [0, PAGE, 0, 0x22, 0, 0]));
    make((sys::MMAP, [free, FIRST.saturating_sub(free), 0, FIXED, 0, 0]));
    let fd = make((sys::OPEN, [c"/dev/zero".as_ptr() as u64, 0, 0, 0, 0, 0]));
    make((sys::DUP2, [fd, ZERO, 0, 0, 0, 0]));
    make((sys::CLOSE, [fd, 0, 0, 0, 0, 0]));
}

fn write(address: u64, bytes: &[u8]) {
    for (at, byte) in (address..).zip(bytes) {
        // SAFETY: the page of code is mapped and writable now; other threads may be executing it.
        unsafe { (at as *mut u8).write_volatile(*byte) };
    }
}

fn write_stub(site: u64) {
    write(site, &STUB);
    write(site + STUB.len() as u64, &END);
}

/// Makes a call from the code of the thread with this index.
pub fn make_in_code(index: usize, (number, arguments): Call) -> u64 {
    let [a, b, c, d, e, f] = arguments;
    let words = [number, a, b, c, d, e, f];
    let site = CODE + SITE_BYTES * index as u64;
    // SAFETY: as in `make`; the code exists unless random calls have changed it, and follows the C
    // calling convention.
    let call: extern "C" fn(*const u64) -> u64 = unsafe { core::mem::transmute(site) };
    call(words.as_ptr())
}

/// Handler of faults: a thread may have executed code during a rewrite, or written to code that
/// another thread has made executable meanwhile. A thread that faults again at the same place
/// leaves the code.
pub extern "C" fn mend(_: u64, _: *const u64, context: *mut u64) {
    // SAFETY: the kernel passes a `ucontext_t`, which is longer.
    let rip = unsafe { &mut *context.add(RIP) };
    if (CODE..CODE + PAGE).contains(rip) {
        if IN_CODE.fetch_add(1, Relaxed) > MOST_IN_CODE {
            sys::exit(5);
        }
        if FAULTED.swap(*rip, Relaxed) == *rip {
            *rip = leave as *const () as u64;
        }
        make((sys::MPROTECT, [CODE, PAGE, READ_EXECUTE, 0, 0, 0]));
        return;
    }
    if FAULTS.fetch_add(1, Relaxed) > MOST_FAULTS {
        sys::exit(5);
    }
    make((sys::MPROTECT, [CODE, PAGE, READ_WRITE, 0, 0, 0]));
}

/// Returns from the code, which leaves the stack pointer unchanged.
#[unsafe(naked)]
unsafe extern "C" fn leave() {
    naked_asm!("ret")
}

/// Rewrites the code of a thread: its call is replaced by another, or restored.
pub fn rewrite(random: &mut Random, threads: usize, lists: &[String]) {
    let site = CODE + SITE_BYTES * random.below(threads as u64);
    let (number, [a, b, c, d, e, f]) = some(random, lists);
    make((sys::MPROTECT, [CODE, PAGE, READ_WRITE, 0, 0, 0]));
    if random.below(3) == 0 {
        write_stub(site);
    } else {
        let mut at = site + OTHER;
        for (mov, word) in MOVES.iter().zip([number, a, b, c, d, e, f]) {
            write(at, mov);
            write(at + 2, &word.to_le_bytes());
            at += 10;
        }
        write(at, &[0x0f, 0x05, 0xc3]);
        // `jmp OTHER`, in place of SYSCALL.
        write(site + SYSCALL, &[0xe9]);
        write(site + SYSCALL + 1, &((OTHER - SYSCALL - 5) as u32).to_le_bytes());
    }
    make((sys::MPROTECT, [CODE, PAGE, READ_EXECUTE, 0, 0, 0]));
}

/// Start of a slot.
fn slot(random: &mut Random) -> u64 {
    FIRST + SLOT_BYTES * random.below(SLOTS)
}

/// Length of whole pages, up to half a slot.
fn length(random: &mut Random) -> u64 {
    let most = random.of(&[4, 4, 16, 16, 64, 64, 300, SLOT_BYTES / PAGE / 2]);
    PAGE * (1 + random.below(most))
}

/// Address of a page of any slot.
fn place(random: &mut Random) -> u64 {
    match random.below(3) {
        0 => slot(random),
        _ => FIRST + PAGE * random.below(SLOTS * SLOT_BYTES / PAGE),
    }
}

/// A call on the ranges, or any other call.
pub fn some(random: &mut Random, lists: &[String]) -> Call {
    let (from, bytes, to) = (place(random), length(random), place(random));
    match random.below(16) {
        0 | 1 => {
            let protection = random.of(&[READ_WRITE, READ_WRITE, 1, 0]);
            (sys::MMAP, [slot(random), bytes, protection, FIXED, 0, 0])
        }
        2 => (sys::MUNMAP, [from, bytes, 0, 0, 0, 0]),
        3 => (sys::MPROTECT, [from, bytes, random.of(&[0, 1, READ_WRITE, READ_EXECUTE]), 0, 0, 0]),
        4 | 5 => (sys::MREMAP, [slot(random), bytes, length(random), 1, 0, 0]),
        6 => (sys::MREMAP, [slot(random), bytes, bytes, 3, to, 0]),
        7 => (sys::MREMAP, [from, bytes, length(random), 3, slot(random), 0]),
        8 | 9 => (sys::READ, [ZERO, slot(random), bytes, 0, 0, 0]),
        10 => (sys::MADVISE, [from, bytes, 4, 0, 0, 0]),
        11 => (sys::MMAP, [random.of(&[0, from]), bytes, READ_WRITE, 0x22, 0, 0]),
        12..15 => of_session(random, lists, from),
        _ => {
            let number = choose(random);
            (number, arguments_of(random, number, lists))
        }
    }
}

/// A call on the session that was opened last, with its buffers in the ranges.
fn of_session(random: &mut Random, lists: &[String], place: u64) -> Call {
    let session = SESSION.load(Relaxed);
    match random.below(8) {
        0 => (sys::SESSION_OPEN, arguments_of(random, sys::SESSION_OPEN, lists)),
        1 => (sys::SESSION_MAP, [session, 0, anything(random), 0, 0, 0]),
        2 => (sys::SESSION_START, [session, 0, 0, 0, 0, 0]),
        3 => (sys::SESSION_STOP, [session, 0, 0, 0, 0, 0]),
        4 => (sys::SESSION_CLOSE, [session, 0, 0, 0, 0, 0]),
        5 => (sys::TRACE_MAP, [0; 6]),
        6 => {
            // A signal stack: its address, flags and length.
            static mut STACK: [u64; 3] = [0; 3];
            let words = &raw mut STACK;
            // SAFETY: other threads may write the words at the same time, which the kernel checks.
            unsafe { words.write_volatile([place, 0, 4 * PAGE]) };
            (sys::SIGALTSTACK, [words as u64, 0, 0, 0, 0, 0])
        }
        _ => (sys::SESSION_READ, [session, place, 16, 0, 0, 0]),
    }
}

/// Records the session that a call has opened.
pub fn note((number, _): Call, result: u64) {
    if number == sys::SESSION_OPEN && (result as i64) > 0 {
        SESSION.store(result & u64::from(u32::MAX), Relaxed);
    }
}
