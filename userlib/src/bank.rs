//! Logical counters, read without a system call: [`tally_abi::bank`] says how they lie in memory.

use core::{
    arch::asm,
    marker::PhantomData,
    sync::atomic::{AtomicU64, Ordering, fence},
};

use tally_abi::bank::{
    ALWAYS, COUNTER_WORDS, HEADER_WORDS, NOBODY, SCALE_BITS, SCALE_ONE, counter, header,
};

/// A session's logical counters, for as long as the session is there.
#[derive(Clone, Copy, Debug)]
pub struct Bank<'a> {
    words: *const u64,
    events: usize,
    session: PhantomData<&'a ()>,
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

/// What stands behind a logical counter's value, at the end of its last slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Details {
    /// Half the width of the estimate's 95 % interval, in events; 0 of an exact count, `None` while
    /// it is not known.
    pub half_width_95: Option<f64>,
    /// The share of the time, in the unit that the estimate goes by, for which the event was
    /// counted: 0 to 1.
    pub share: f64,
    /// TSC at the start of the event's last slice; 0 of an exact count.
    pub start_tsc: u64,
    /// TSC at the end of the event's last slice: now less this is the value's age.
    pub end_tsc: u64,
    /// Slices in which the event was counted; 0 of an exact count, which has them all.
    pub slices: u64,
}

/// Byte offsets for the assembly below.
const fn at(word: usize) -> usize {
    word * size_of::<u64>()
}
const HIGH_HALF: usize = size_of::<u32>();

impl<'a> Bank<'a> {
    /// The bank at `words`.
    ///
    /// # Safety
    /// For `'a`, a bank of `events` events lies there, the program may use RDPMC, and nobody but the
    /// kernel writes it.
    pub(crate) unsafe fn new(words: *const u64, events: usize) -> Bank<'a> {
        Bank { words, events, session: PhantomData }
    }

    /// The logical counter of an event, by its index in the session's list.
    pub fn counter(&self, event: usize) -> Option<Counter<'a>> {
        if event >= self.events {
            return None;
        }
        // SAFETY: the bank has this counter (`new`).
        let words = unsafe { self.words.add(HEADER_WORDS + event * COUNTER_WORDS) };
        let mut counter = Counter { header: self.words, words, always: None, bank: PhantomData };
        let group = counter.word(counter::PLACE) & u64::from(u32::MAX);
        counter.always = (ALWAYS..NOBODY).contains(&group).then(|| (group - ALWAYS) as usize);
        Some(counter)
    }

    /// How many logical counters there are.
    pub fn counters(&self) -> usize {
        self.events
    }
}

impl Counter<'_> {
    /// Events so far, in the mean of what is known now: exact, or an estimate, and never less than
    /// any value before it. 0 while nothing is known. 17 instructions, at most: 15 and two to tell
    /// the kinds of event apart.
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
                "mov {sequence}, [{header}]",
                // An odd sequence becomes one that the second look does not find.
                "and {sequence}, -2",
                "mov eax, [{words} + {place}]",
                "cmp eax, [{header} + {group}]",
                "jne 3f",
                "mov ecx, [{words} + {place} + {high}]",
                "rdpmc",
                "sub eax, [{header} + {base} + 8 * rcx]",
                "add rax, [{words} + {events}]",
                "4:",
                "mul qword ptr [{words} + {scale}]",
                "shrd rax, rdx, {bits}",
                "cmp rax, [{words} + {told}]",
                "cmovb rax, [{words} + {told}]",
                "cmp {sequence}, [{header}]",
                "jne 2b",
                // Out of the way of the other.
                ".subsection 1",
                "3:",
                "mov rax, [{words} + {events}]",
                "jmp 4b",
                ".subsection 0",
                sequence = out(reg) _,
                header = in(reg) self.header,
                words = in(reg) self.words,
                place = const at(counter::PLACE),
                high = const HIGH_HALF,
                group = const at(header::GROUP),
                base = const at(header::BASE),
                events = const at(counter::EVENTS),
                scale = const at(counter::SCALE),
                bits = const SCALE_BITS,
                told = const at(counter::TOLD),
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
                "mov {sequence}, [{header}]",
                "and {sequence}, -2",
                "xor eax, eax",
                "cmp dword ptr [{header} + {group}], {nobody}",
                "je 3f",
                "mov ecx, [{words} + {place} + {high}]",
                "rdpmc",
                "sub eax, [{header} + {base} + 8 * {event}]",
                "3:",
                "add rax, [{header} + {total} + 8 * {event}]",
                "cmp {sequence}, [{header}]",
                "jne 2b",
                sequence = out(reg) _,
                header = in(reg) self.header,
                words = in(reg) self.words,
                event = in(reg) event,
                nobody = const NOBODY as u32 as i32,
                place = const at(counter::PLACE),
                high = const HIGH_HALF,
                group = const at(header::GROUP),
                base = const at(header::ALWAYS_BASE),
                total = const at(header::TOTAL),
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
            let sequence = self.header_word(header::SEQUENCE, Ordering::Acquire);
            let words: [u64; COUNTER_WORDS] = core::array::from_fn(|word| self.word(word));
            let tsc = self.header_word(header::TSC, Ordering::Relaxed);
            // Pairs with the kernel's Release fence: a word of a change comes with its sequence.
            fence(Ordering::Acquire);
            let same = sequence == self.header_word(header::SEQUENCE, Ordering::Relaxed);
            if sequence.is_multiple_of(2) && same {
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

    fn header_word(&self, index: usize, ordering: Ordering) -> u64 {
        // SAFETY: the header has this word (`Bank::new`), aligned; the kernel writes it atomically.
        unsafe { AtomicU64::from_ptr(self.header.add(index).cast_mut()) }.load(ordering)
    }

    fn word(&self, index: usize) -> u64 {
        // SAFETY: as in `header_word`.
        unsafe { AtomicU64::from_ptr(self.words.add(index).cast_mut()) }.load(Ordering::Relaxed)
    }
}
