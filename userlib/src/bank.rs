//! Logical counters, read without a system call: [`tally_abi::bank`] says how they lie in memory.

use core::{
    arch::asm,
    marker::PhantomData,
    sync::atomic::{AtomicU64, Ordering, fence},
};

use tally_abi::bank::{
    BUSY, COUNTER_WORDS, DETACHED, HEADER_WORDS, PAGE_WORDS, PINNED, PINNED_SLOT, SCALE_BITS,
    SCALE_ONE, STOPPED, counter, header, writable,
};

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
    /// Which of the events that are counted in every slice it is, if it is one.
    always: Option<usize>,
    bank: PhantomData<Bank<'a>>,
}

/// What stands behind a logical counter's value, at the end of its last slice; the error is up to
/// 8 turns of the scheduler, of 10 ms each, older than that while the session counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Details {
    /// Half the width of the estimate's 95 % interval, in events; 0 of an exact count, `None` while
    /// it is not known. Of the whole count: the difference of two readings can be wrong by the half widths of
    /// both together.
    pub half_width_95: Option<f64>,
    /// The share of the time, in the unit that the estimate goes by, for which the event was
    /// counted: 0 to 1. Where shares adapt, as if its group had always had the share of a round that it has
    /// now: what the estimate goes by.
    pub share: f64,
    /// TSC at the start of the event's last slice; 0 of instructions, cycles and reference cycles that are counted
    /// all the time by counters of their own.
    pub start_tsc: u64,
    /// TSC at the end of the event's last slice: now less this is the value's age.
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
const HIGH_HALF: usize = size_of::<u32>();

impl<'a> Bank<'a> {
    /// The bank at `words` of the session with this number.
    ///
    /// # Safety
    /// For `'a`, the bank of `events` events lies there, the program's own page before it, the program
    /// may use RDPMC, and nobody but the kernel writes the bank.
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
        let mut counter = Counter { header: self.words, words, always: None, bank: PhantomData };
        let group = counter.word(counter::ASSIGNMENT) & u64::from(u32::MAX);
        counter.always =
            (PINNED..DETACHED.into()).contains(&group).then(|| (group - PINNED) as usize);
        Some(counter)
    }

    /// How many logical counters there are.
    pub fn counters(&self) -> usize {
        self.events
    }
}

impl Counter<'_> {
    /// Events so far, in the mean of what is known now: exact, or an estimate, and never less than
    /// any value before it. 0 while nothing is known. 18 instructions, at most: two of them tell the
    /// kinds of event apart; one less for an event that is on the hardware.
    #[inline]
    pub fn read(&self) -> u64 {
        match self.always {
            Some(event) => self.read_exact(event),
            None => self.read_estimate(),
        }
    }

    #[inline]
    fn read_estimate(&self) -> u64 {
        let events: u64;
        // SAFETY: the bank lies there and RDPMC is allowed (`Bank::new`).
        unsafe {
            asm!(
                "2:",
                "mov {switch}, [{header} + {own}]",
                "mov eax, {switch:e}",
                "sub eax, [{words} + {place}]",
                "jne 3f",
                "mov ecx, [{words} + {place} + {high}]",
                "rdpmc",
                "sub eax, [{header} + {base} + 8 * rcx]",
                "sub eax, [{header} + {skipped} + 8 * rcx]",
                "4:",
                "add rax, [{words} + {events}]",
                "5:",
                "mul qword ptr [{words} + {scale}]",
                "shrd rax, rdx, {bits}",
                "cmp rax, [{words} + {told}]",
                "cmovb rax, [{words} + {told}]",
                "cmp {switch}, [{header} + {own}]",
                "jne 2b",
                // Out of the way of the others.
                ".subsection 1",
                // Stopped, or not on the hardware?
                "3:",
                "cmp eax, {stopped}",
                "jne 6f",
                "mov ecx, [{words} + {place} + {high}]",
                "mov eax, [{header} + {held} + 8 * rcx]",
                "jmp 4b",
                "6:",
                "cmp {switch:e}, {busy}",
                "je 2b",
                "mov rax, [{words} + {events}]",
                "jmp 5b",
                ".subsection 0",
                switch = out(reg) _,
                header = in(reg) self.header,
                words = in(reg) self.words,
                own = const own_at(writable::CONTROL),
                place = const at(counter::ASSIGNMENT),
                high = const HIGH_HALF,
                base = const at(header::BASE),
                skipped = const own_at(writable::SKIPPED),
                held = const own_at(writable::HELD),
                events = const at(counter::EVENTS),
                scale = const at(counter::SCALE),
                bits = const SCALE_BITS,
                told = const at(counter::PUBLISHED_MAX),
                stopped = const STOPPED as i32,
                busy = const BUSY as i32,
                out("rax") events,
                out("rcx") _,
                out("rdx") _,
                options(nostack, readonly),
            );
        }
        events
    }

    #[inline]
    fn read_exact(&self, event: usize) -> u64 {
        let events: u64;
        // SAFETY: as in `read_estimate`; `event` is one of three.
        unsafe {
            asm!(
                "2:",
                "mov {switch}, [{header} + {own}]",
                "test {switch:e}, {switch:e}",
                "js 3f",
                "mov ecx, [{words} + {place} + {high}]",
                "rdpmc",
                "sub eax, [{header} + {base} + 8 * {event}]",
                "sub eax, [{header} + {skipped} + 8 * {event}]",
                "4:",
                "add rax, [{header} + {total} + 8 * {event}]",
                "cmp {switch}, [{header} + {own}]",
                "jne 2b",
                ".subsection 1",
                "3:",
                "cmp {switch:e}, {busy}",
                "je 2b",
                "mov eax, 0",
                // On no CPU: above all that the kernel and the program put there.
                "ja 4b",
                "mov eax, [{header} + {held} + 8 * {event}]",
                "jmp 4b",
                ".subsection 0",
                switch = out(reg) _,
                header = in(reg) self.header,
                words = in(reg) self.words,
                event = in(reg) event,
                own = const own_at(writable::CONTROL),
                place = const at(counter::ASSIGNMENT),
                high = const HIGH_HALF,
                base = const at(header::BASE + PINNED_SLOT),
                skipped = const own_at(writable::SKIPPED + PINNED_SLOT),
                held = const own_at(writable::HELD + PINNED_SLOT),
                total = const at(header::TOTAL),
                busy = const BUSY as i32,
                out("rax") events,
                out("rcx") _,
                out("rdx") _,
                options(nostack, readonly),
            );
        }
        events
    }

    /// What stands behind the value.
    pub fn details(&self) -> Details {
        loop {
            let switch = self.switch(Ordering::Acquire);
            let words: [u64; COUNTER_WORDS] = core::array::from_fn(|word| self.word(word));
            let tsc = self.header_word(header::TSC, Ordering::Relaxed);
            // Pairs with the kernel's Release fence: a word of a change comes with its switch.
            fence(Ordering::Acquire);
            let same = switch == self.switch(Ordering::Relaxed);
            if switch as u32 != BUSY && same {
                return self.details_of(&words, tsc);
            }
        }
    }

    fn details_of(&self, words: &[u64; COUNTER_WORDS], tsc: u64) -> Details {
        let half_width = f64::from_bits(words[counter::HALF_WIDTH]);
        match self.always {
            Some(_) => Details {
                half_width_95: Some(0.0),
                share: 1.0,
                start_tsc: 0,
                end_tsc: tsc,
                slices: 0,
            },
            None => Details {
                half_width_95: (!half_width.is_nan()).then_some(half_width),
                share: match words[counter::SCALE] {
                    0 => 0.0,
                    scale => SCALE_ONE as f64 / scale as f64,
                },
                start_tsc: words[counter::START_TSC],
                end_tsc: words[counter::END_TSC],
                slices: words[counter::SLICES],
            },
        }
    }

    fn switch(&self, ordering: Ordering) -> u64 {
        // SAFETY: the program's own page lies before the header (`Bank::new`).
        let switch = unsafe { self.header.sub(PAGE_WORDS).add(writable::CONTROL) };
        // SAFETY: aligned, and written atomically by all.
        unsafe { AtomicU64::from_ptr(switch.cast_mut()) }.load(ordering)
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
