//! Logical counters, read without a system call: [`tally_abi::bank`] says how they lie in memory.

use core::{
    arch::asm,
    marker::PhantomData,
    sync::atomic::{AtomicU64, Ordering, fence},
};

use tally_abi::bank::{
    BUSY, COUNTER_WORDS, DETACHED, HEADER_WORDS, PAGE_WORDS, RATE_BITS, STOPPED, counter,
    half_width, header, value, writable,
};

use crate::rdpmc::rdpmc;

/// A session's logical counters, for as long as the session is there.
#[derive(Clone, Copy, Debug)]
pub struct Bank<'a> {
    pub(crate) words: *const u64,
    events: usize,
    pub(crate) session: u64,
    lifetime: PhantomData<&'a ()>,
}

/// A logical counter.
#[derive(Clone, Copy, Debug)]
pub struct Counter<'a> {
    header: *const u64,
    words: *const u64,
    bank: PhantomData<Bank<'a>>,
}

/// A logical counter's value with its error, and what they come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Details {
    /// The value, as [`Counter::read`] returns it.
    pub value: u64,
    /// Half the width of the value's 95 % interval, in events; 0 of an exact count, `None` while it
    /// is not known. Of the whole count: the difference of two readings can be wrong by the half
    /// widths of both together. What it is computed from is up to 8 scheduler ticks old, of 10 ms
    /// each, while the session counts.
    pub half_width_95: Option<f64>,
    /// The share of the time, in the unit of the estimate's basis, in which the event was counted:
    /// 0 to 1; as old as the error. Where shares adapt, as if its group had always had its present
    /// share of a round.
    pub share: f64,
    /// TSC at the start of the event's last slice; 0 of instructions, cycles and reference cycles
    /// that are counted all the time by counters of their own.
    pub start_tsc: u64,
    /// TSC at the end of the event's last slice: now less this is the rate's age.
    pub end_tsc: u64,
    /// Slices in which the event was counted; 0 as for `start_tsc`, which has them all.
    pub slices: u64,
}

/// Byte offsets for the assembly below.
const fn at(word: usize) -> usize {
    word * size_of::<u64>()
}
/// The same of words of the program's own page, from the header.
const fn own_at(word: usize) -> isize {
    (word as isize - PAGE_WORDS as isize) * size_of::<u64>() as isize
}

impl<'a> Bank<'a> {
    /// The bank at `words` of the session with this number.
    ///
    /// # Safety
    /// For `'a`, the bank of `events` events lies there, the program's own page before it, the
    /// program may use RDPMC, and nobody but the kernel writes the bank.
    pub(crate) unsafe fn new(words: *const u64, events: usize, session: u64) -> Bank<'a> {
        Bank { words, events, session, lifetime: PhantomData }
    }

    /// The logical counter of an event, by its index in the session's list.
    pub fn counter(&self, event: usize) -> Option<Counter<'a>> {
        if event >= self.events {
            return None;
        }
        // SAFETY: the bank has this counter (`new`).
        let words = unsafe { self.words.add(HEADER_WORDS + event * COUNTER_WORDS) };
        Some(Counter { header: self.words, words, bank: PhantomData })
    }

    /// How many logical counters there are.
    pub fn counters(&self) -> usize {
        self.events
    }
}

impl Counter<'_> {
    /// The events so far: exact, or an estimate by what is known now, and never less than any value
    /// before it. 0 while nothing is known. 16 instructions.
    #[inline]
    #[expect(clippy::too_many_lines, reason = "one block of assembly")]
    pub fn read(&self) -> u64 {
        let events: u64;
        // SAFETY: the bank lies there and RDPMC is allowed (`Bank::new`).
        unsafe {
            asm!(
                "2:",
                "mov {control}, [{header} + {own}]",
                "test {control:e}, {control:e}",
                "js 3f",
                "mov ecx, [{words} + {assignment} + 4]",
                "rdpmc",
                "movzx ecx, word ptr [{words} + {assignment}]",
                "sub eax, [{header} + {base} + 8 * rcx]",
                "sub eax, [{header} + {skipped} + 8 * rcx]",
                "4:",
                "movzx ecx, word ptr [{words} + {assignment} + 2]",
                "add rax, [{header} + 8 * rcx]",
                "mul qword ptr [{words} + {rate}]",
                "shrd rax, rdx, {bits}",
                "cmp rax, [{words} + {max}]",
                "cmovb rax, [{words} + {max}]",
                "cmp {control}, [{header} + {own}]",
                "jne 2b",
                // Counters that do not count now, out of line.
                ".subsection 1",
                "3:",
                "cmp {control:e}, {busy}",
                "je 2b",
                "mov eax, 0",
                // Detached, which is above busy: the sum is all.
                "ja 4b",
                "movzx ecx, word ptr [{words} + {assignment}]",
                "mov eax, [{header} + {held} + 8 * rcx]",
                "jmp 4b",
                ".subsection 0",
                control = out(reg) _,
                header = in(reg) self.header,
                words = in(reg) self.words,
                own = const own_at(writable::CONTROL),
                assignment = const at(counter::ASSIGNMENT),
                base = const at(header::BASE),
                skipped = const own_at(writable::SKIPPED),
                held = const own_at(writable::HELD),
                rate = const at(counter::RATE),
                bits = const RATE_BITS,
                max = const at(counter::PUBLISHED_MAX),
                busy = const BUSY as i32,
                out("rax") events,
                out("rcx") _,
                out("rdx") _,
                options(nostack, readonly),
            );
        }
        events
    }

    /// The error of the value, and what it comes from.
    pub fn details(&self) -> Details {
        loop {
            let control = self.control(Ordering::Acquire);
            let words: [u64; COUNTER_WORDS] = core::array::from_fn(|word| self.word(word));
            let count = self.count(control, words[counter::ASSIGNMENT]);
            let tsc = self.header_word(header::TSC, Ordering::Relaxed);
            // Pairs with the kernel's Release fence: a published word comes with its control word.
            fence(Ordering::Acquire);
            let same = control == self.control(Ordering::Relaxed);
            if control as u32 != BUSY && same {
                return details(&words, count, tsc);
            }
        }
    }

    /// The count of the basis `assignment`, by a control word.
    fn count(&self, control: u64, assignment: u64) -> u64 {
        let (slot, sum) = (usize::from(assignment as u16), usize::from((assignment >> 16) as u16));
        let own = |word: usize| self.own_word(word + slot, Ordering::Relaxed) as u32;
        let since = match control as u32 {
            DETACHED | BUSY => 0,
            state if state & STOPPED != 0 => own(writable::HELD),
            _ => {
                let base = self.header_word(header::BASE + slot, Ordering::Relaxed) as u32;
                // SAFETY: RDPMC is allowed, and the bank names a counter that is there
                // (`Bank::new`).
                let now = unsafe { rdpmc((assignment >> 32) as u32) };
                now.wrapping_sub(base).wrapping_sub(own(writable::SKIPPED))
            }
        };
        self.header_word(sum, Ordering::Relaxed).wrapping_add(since.into())
    }

    fn control(&self, ordering: Ordering) -> u64 {
        self.own_word(writable::CONTROL, ordering)
    }

    fn own_word(&self, index: usize, ordering: Ordering) -> u64 {
        // SAFETY: the program's own page lies before the header (`Bank::new`).
        let word = unsafe { self.header.sub(PAGE_WORDS).add(index) };
        // SAFETY: aligned, and written atomically by all.
        unsafe { AtomicU64::from_ptr(word.cast_mut()) }.load(ordering)
    }

    fn header_word(&self, index: usize, ordering: Ordering) -> u64 {
        // SAFETY: the header has this word (`Bank::new`), aligned; the kernel writes it atomically.
        unsafe { AtomicU64::from_ptr(self.header.add(index).cast_mut()) }.load(ordering)
    }

    fn word(&self, index: usize) -> u64 {
        // SAFETY: as in `header_word`.
        unsafe { AtomicU64::from_ptr(self.words.add(index).cast_mut()) }.load(Ordering::Relaxed)
    }
}

fn details(words: &[u64; COUNTER_WORDS], count: u64, tsc: u64) -> Details {
    let half_width = half_width(words, count);
    let end_tsc = words[counter::END_TSC];
    Details {
        value: value(count, words[counter::RATE]).max(words[counter::PUBLISHED_MAX]),
        half_width_95: (!half_width.is_nan()).then_some(half_width),
        share: f64::from_bits(words[counter::SHARE]),
        start_tsc: words[counter::START_TSC],
        end_tsc: if end_tsc == 0 { tsc } else { end_tsc },
        slices: words[counter::SLICES],
    }
}
