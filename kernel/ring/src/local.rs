//! CPU-local read-modify-write operations: single instructions without `lock`, which no interrupt
//! or NMI can split. Only one CPU writes the word. Another CPU may read it at the same time, and
//! sees stores in their order, as x86-64 guarantees. Under loom, under Miri and on other processors
//! atomics replace them.

pub(crate) use atomics::{AtomicU64, Ordering, fence};

#[cfg(not(loom))]
use core::sync::atomic as atomics;
#[cfg(loom)]
use loom::sync::atomic as atomics;

/// Changes a CPU-local word from `old` to `new`. Returns whether it was `old`. A reader that sees
/// `new` sees all earlier stores. `ready` is an operand that forces the compiler to compute it
/// before the exchange; otherwise it computes it afterwards, and spills a register.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
pub(crate) fn change(word: &AtomicU64, old: u64, new: u64, ready: u64) -> bool {
    // SAFETY: (1) the pointer is to a live, aligned word, which may change at any time, as it is an
    // atomic; (2) no other CPU writes the word, so one instruction is atomic on this one; (3) both
    // exits are named.
    unsafe {
        core::arch::asm!(
            "cmpxchg qword ptr [{word}], {new} # {ready}",
            "jne {no}",
            word = in(reg) word.as_ptr(),
            new = in(reg) new,
            ready = in(reg) ready,
            inout("rax") old => _,
            no = label { return false },
            options(nostack),
        );
    }
    true
}

/// Changes the word as above, with an atomic.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
pub(crate) fn change(word: &AtomicU64, old: u64, new: u64, _: u64) -> bool {
    // Pairs with the Acquire of readers and, under loom, of writers on other threads.
    word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// Returns whether a CPU-local word is below `value`.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
pub(crate) fn is_below(word: &AtomicU64, value: u64) -> bool {
    // SAFETY: as in `change`; it is only read, by an instruction that compares it where it is.
    unsafe {
        core::arch::asm!(
            "cmp {value}, qword ptr [{word}]",
            "ja {yes}",
            value = in(reg) value,
            word = in(reg) word.as_ptr(),
            yes = label { return true },
            options(nostack, readonly),
        );
    }
    false
}

/// Compares the word as above, with an atomic.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
pub(crate) fn is_below(word: &AtomicU64, value: u64) -> bool {
    // Relaxed: this CPU sees its own stores in their order.
    word.load(Ordering::Relaxed) < value
}

/// Adds 1 to a CPU-local word.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
pub(crate) fn increment(word: &AtomicU64) {
    // SAFETY: (1) as in `change`; (2) as in `change`.
    unsafe { core::arch::asm!("inc qword ptr [{}]", in(reg) word.as_ptr(), options(nostack)) };
}

/// Increments the word as above, with an atomic.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
pub(crate) fn increment(word: &AtomicU64) {
    // Relaxed: a count on which nothing else depends.
    word.fetch_add(1, Ordering::Relaxed);
}

/// Sets words to 0. No other code may write them at the same time.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
pub(crate) fn clear(words: &[AtomicU64]) {
    // SAFETY: (1) the words are live for their whole length and may be written at any time, as they
    // are atomics; (2) the direction flag is clear, by the ABI; (3) each store is of a whole
    // aligned word.
    unsafe {
        core::arch::asm!(
            "rep stosq",
            inout("rcx") words.len() => _,
            inout("rdi") words.as_ptr() => _,
            in("rax") 0,
            options(nostack, preserves_flags),
        );
    }
}

/// Clears the words as above, with atomics.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
pub(crate) fn clear(words: &[AtomicU64]) {
    for word in words {
        // Relaxed: ordered by the fence before it and the release after it.
        word.store(0, Ordering::Relaxed);
    }
}
