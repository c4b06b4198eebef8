//! Restartable sequences that stop and start a bank's counters. [`tally_abi::bank`] defines the
//! rules, decision 71 the number of instructions.
//!
//! An interrupt inside a sequence returns to its first instruction. Therefore a sequence preserves
//! RDI, its only argument, and until its last store it writes only words that are not in use.

use core::{
    arch::global_asm,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use tally_abi::{
    Error,
    bank::{
        BUSY, DETACHED, PAGE_WORDS, PINNED_SLOT, READ_BYTES, SEQUENCE_BYTES, SEQUENCES, STOPPED,
        header, writable,
    },
};

use crate::{error::check, sys};

// Relaxed is enough for every access: the kernel writes these words on the same CPU.

/// Byte offset, from the header, of a word of the program's own page.
const fn own_at(word: usize) -> i32 {
    (word as i32 - PAGE_WORDS as i32) * size_of::<u64>() as i32
}
const fn at(word: usize) -> i32 {
    (word * size_of::<u64>()) as i32
}
/// Byte of [`header::USED`] that has the pinned slots' bits, and the bit of reference cycles in it.
const REFERENCE: (i32, u8) = (at(header::USED) + 1, 1 << (PINNED_SLOT + 2 - u8::BITS as usize));

// Macro `tally_save`: for each counter in use, stores the value of RDPMC minus its word of `less`
// into its word of `to`. General counters have blocks of equal length, from the highest: the jump
// skips those beyond the counters in use. Instructions, cycles and, if they are counted, reference
// cycles follow.
global_asm!(
    ".macro tally_save_pinned slot, less, to",
    "mov ecx, [rdi + {pinned_rdpmc} + 8 * \\slot]",
    "rdpmc",
    "sub eax, [rdi + \\less + 8 * ({pinned} + \\slot)]",
    "mov [rdi + \\to + 8 * ({pinned} + \\slot)], eax",
    ".endm",
    ".macro tally_save less, to",
    "mov esi, [rdi + {first}]",
    "lea rdx, [rip + 3f]",
    "sub rdx, [rdi + {reads}]",
    "jmp rdx",
    "2:",
    ".irp slot, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0",
    // Encoded by hand, because the displacement of 0 must take a byte, too.
    ".byte 0x8d, 0x4e, \\slot", // lea ecx, [rsi + slot]
    "rdpmc",
    "sub eax, [rdi + 8 * rcx + \\less]",
    "mov [rdi + 8 * rcx + \\to], eax",
    ".endr",
    // Fails to assemble if the blocks are longer.
    ".org 2b + {pinned} * {read_bytes}, 0xcc",
    "3:",
    "tally_save_pinned 0, \\less, \\to",
    "tally_save_pinned 1, \\less, \\to",
    "test byte ptr [rdi + {reference_byte}], {reference_bit}",
    "jz 4f",
    "tally_save_pinned 2, \\less, \\to",
    "4:",
    ".endm",
    ".pushsection .text.tally_sequences, \"ax\", @progbits",
    ".balign {bytes}",
    ".globl __tally_sequences",
    ".hidden __tally_sequences",
    "__tally_sequences:",
    // Stops, if the counters count.
    "cmp dword ptr [rdi + {control}], 0",
    "jl {stop_slowly}",
    "tally_save {origin}, {held}",
    "sub qword ptr [rdi + {control}], -{stopped}",
    "ret",
    ".org __tally_sequences + {bytes}, 0xcc",
    // Starts, if they are stopped in a group's slice: the state is below `BUSY`, as a signed
    // number.
    "cmp dword ptr [rdi + {control}], {busy}",
    "jge {start_slowly}",
    "tally_save {held}, {origin}",
    "sub qword ptr [rdi + {control}], -{stopped}",
    "xor eax, eax",
    "ret",
    ".org __tally_sequences + {sequences} * {bytes}, 0xcc",
    ".popsection",
    control = const own_at(writable::CONTROL),
    origin = const own_at(writable::ORIGIN),
    held = const own_at(writable::HELD),
    reads = const at(header::READS),
    first = const at(header::FIRST),
    pinned_rdpmc = const at(header::PINNED_RDPMC),
    pinned = const PINNED_SLOT,
    reference_byte = const REFERENCE.0,
    reference_bit = const REFERENCE.1,
    read_bytes = const READ_BYTES,
    bytes = const SEQUENCE_BYTES,
    sequences = const SEQUENCES,
    stopped = const STOPPED as i64,
    busy = const BUSY as i32,
    stop_slowly = sym stop_slowly,
    start_slowly = sym start_slowly,
);

unsafe extern "C" {
    // Not named `tally_…`: `libtally.a` exports the symbols with that prefix.
    safe static __tally_sequences: u8;
}

/// Returns the address of the sequences, which the kernel is told when a bank is mapped.
pub fn address() -> u64 {
    (&raw const __tally_sequences).addr() as u64
}

/// Stops the counters of the bank at `words`.
///
/// # Safety
/// A bank is there, which the kernel has mapped for a program whose sequences are at [`address`].
#[inline]
pub unsafe fn stop(words: *const u64) {
    // SAFETY: the code at `address` is a function of this type.
    let stop: unsafe extern "C" fn(*const u64) =
        unsafe { core::mem::transmute(&raw const __tally_sequences) };
    // SAFETY: the caller's word.
    unsafe { stop(words) }
}

/// Starts the counters of the bank at `words`. Returns 0 or an error.
///
/// # Safety
/// See [`stop`].
#[inline]
pub unsafe fn start(words: *const u64) -> i64 {
    let second = (&raw const __tally_sequences).wrapping_add(SEQUENCE_BYTES as usize);
    // SAFETY: the code there is a function of this type.
    let start: unsafe extern "C" fn(*const u64) -> i64 = unsafe { core::mem::transmute(second) };
    // SAFETY: the caller's word.
    unsafe { start(words) }
}

/// Handles the cases in which the sequence does not stop the counters of the bank at `words`.
///
/// # Safety
/// See [`stop`].
unsafe extern "C" fn stop_slowly(words: *const u64) {
    // SAFETY: the bank lies there.
    match unsafe { published_state(words) } {
        DETACHED => {
            // Another session may have its turn on the counters. An error means that this one is
            // stopped. Not `tally_call`: no other kernel maps a bank.
            // SAFETY: the call has no buffer, and the header has this word.
            unsafe { sys::call(sys::SESSION_STOP, [session(words), 0, 0, 0, 0, 0]) };
        }
        state if state & STOPPED != 0 => {}
        // The kernel has written in between.
        // SAFETY: the caller's word.
        _ => unsafe { stop(words) },
    }
}

/// Handles the cases in which the sequence does not start the counters of the bank at `words`.
/// Returns 0 or an error.
///
/// # Safety
/// See [`stop`].
unsafe extern "C" fn start_slowly(words: *const u64) -> i64 {
    // SAFETY: the bank lies there.
    match unsafe { published_state(words) } {
        DETACHED => {
            // Not `tally_call`: no other kernel maps a bank.
            // SAFETY: the call has no buffer, and the header has this word.
            let result = unsafe { sys::call(sys::SESSION_START, [session(words), 0, 0, 0, 0, 0]) };
            // The counters are started already: another session has its turn on them.
            let is_started = check(result) == Err(Error::WrongState);
            if is_started { 0 } else { result }
        }
        state if state & STOPPED == 0 => 0,
        // SAFETY: the caller's word.
        _ => unsafe { start(words) },
    }
}

/// Returns the low half of the control word of the bank at `words`.
///
/// # Safety
/// A bank is there, preceded by the program's own page.
pub(crate) unsafe fn state(words: *const u64) -> u32 {
    // SAFETY: (1) the page lies there, aligned; (2) every writer writes the word atomically.
    let control =
        unsafe { AtomicU64::from_ptr(words.sub(PAGE_WORDS).add(writable::CONTROL).cast_mut()) };
    control.load(Relaxed) as u32
}

/// Returns [`state`] as soon as the kernel does not write, which it may do on another CPU if the
/// bank is that of another program.
///
/// # Safety
/// See [`state`].
unsafe fn published_state(words: *const u64) -> u32 {
    loop {
        // SAFETY: the caller's word.
        match unsafe { state(words) } {
            BUSY => core::hint::spin_loop(),
            state => return state,
        }
    }
}

/// Returns the session of the bank at `words`.
///
/// # Safety
/// A bank lies there.
unsafe fn session(words: *const u64) -> u64 {
    // SAFETY: the header has this word, aligned; the kernel writes it atomically.
    unsafe { AtomicU64::from_ptr(words.add(header::SESSION).cast_mut()) }.load(Relaxed)
}
