//! What a CPU does to a word that only it writes, so that an interrupt, an NMI too, finds it done or not
//! done: single instructions without `lock`. Another CPU may read the word at the same time; it sees stores in
//! their order, as x86-64 has it. Under loom, under Miri and on other processors these are atomics.

pub(crate) use atomics::{AtomicU64, Ordering, fence};

#[cfg(not(loom))]
use core::sync::atomic as atomics;
#[cfg(loom)]
use loom::sync::atomic as atomics;

/// Changes a word of this CPU's from `old` to `new`: whether it was `old`. What was stored before is seen by
/// whoever sees `new`. `ready` has been worked out by then, where the compiler would do so later, and save a register
/// for it that this needs.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
pub(crate) fn change(word: &AtomicU64, old: u64, new: u64, ready: u64) -> bool {
    // SAFETY: (1) the pointer is a live, aligned word's, which may change at any time, as it is an atomic's;
    // (2) no other CPU writes the word, so one instruction is enough for this one; (3) both ways out are named.
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

/// See the other one.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
pub(crate) fn change(word: &AtomicU64, old: u64, new: u64, _: u64) -> bool {
    // Pairs with the Acquire of readers and, under loom, of writers on other threads.
    word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// Whether a word of this CPU's is below `value`.
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

/// See the other one.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
pub(crate) fn is_below(word: &AtomicU64, value: u64) -> bool {
    // Relaxed: this CPU's own stores, which it sees in their order.
    word.load(Ordering::Relaxed) < value
}

/// Adds 1 to a word of this CPU's.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
pub(crate) fn increment(word: &AtomicU64) {
    // SAFETY: (1) as in `change`; (2) as in `change`.
    unsafe { core::arch::asm!("inc qword ptr [{}]", in(reg) word.as_ptr(), options(nostack)) };
}

/// See the other one.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
pub(crate) fn increment(word: &AtomicU64) {
    // Relaxed: a count, which nothing else depends on.
    word.fetch_add(1, Ordering::Relaxed);
}

/// Sets words that nobody else writes now to 0.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
pub(crate) fn clear(words: &[AtomicU64]) {
    // SAFETY: (1) the words are live for all their length and may be written at any time, as they are
    // atomics'; (2) the direction flag is clear, as the ABI has it; each store is of a whole aligned word.
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

/// See the other one.
#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
pub(crate) fn clear(words: &[AtomicU64]) {
    for word in words {
        // Relaxed: the fence before it and the release after it order it.
        word.store(0, Ordering::Relaxed);
    }
}
