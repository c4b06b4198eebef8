//! Logical counters, read without a system call. [`tally_abi::bank`] describes their layout in
//! memory.

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

/// Logical counters of a session, for the lifetime of the session.
#[derive(Clone, Copy, Debug)]
pub struct Bank<'a> {
    pub(crate) words: *const u64,
    events: usize,
    lifetime: PhantomData<&'a ()>,
}

/// Logical counter of an event.
#[derive(Clone, Copy, Debug)]
pub struct LogicalCounter<'a> {
    header: *const u64,
    words: *const u64,
    bank: PhantomData<Bank<'a>>,
}

/// Value of a logical counter with its error and its origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Details {
    /// Value, as [`LogicalCounter::read`] returns it.
    pub value: u64,
    /// Half width of the value's 95 % interval, in events. 0 for an exact count, `None` while it is
    /// not known. The interval is that of the whole count: the error of a difference of two
    /// readings is at most the sum of both half widths. While the session counts, the half width is
    /// computed from numbers that are up to 8 scheduler ticks (80 ms) old.
    pub half_width_95: Option<f64>,
    /// Coverage of the event, 0 to 1, in the unit of the estimate's basis (cycles or instructions);
    /// as old as the error. With adaptive shares it is computed as if the event's group had always
    /// had its current share of a round.
    pub share: f64,
    /// TSC at the start of the event's last slice. 0 for pinned instructions, cycles and reference
    /// cycles, which are counted in every slice.
    pub start_tsc: u64,
    /// TSC at the end of the event's last slice. The age of the rate is the current TSC minus this.
    pub end_tsc: u64,
    /// Number of slices in which the event was counted; 0 if `start_tsc` is 0.
    pub slices: u64,
}

/// Byte offset of a word of the bank, for the assembly below.
const fn at(word: usize) -> usize {
    word * size_of::<u64>()
}
/// Byte offset, from the header, of a word of the program's own page.
const fn own_at(word: usize) -> isize {
    (word as isize - PAGE_WORDS as isize) * size_of::<u64>() as isize
}

impl<'a> Bank<'a> {
    /// Makes the bank at `words`.
    ///
    /// # Safety
    /// For `'a`: (1) `words` points to a bank of `events` events, and the program's own page
    /// precedes it; (2) the program may use RDPMC; (3) only the kernel writes the bank, and it was
    /// told the address of the restartable sequences.
    pub(crate) unsafe fn new(words: *const u64, events: usize) -> Bank<'a> {
        Bank { words, events, lifetime: PhantomData }
    }

    /// Extends the lifetime, for an owner that keeps the bank no longer than its session.
    pub(crate) fn forever(self) -> Bank<'static> {
        Bank { lifetime: PhantomData, ..self }
    }

    /// Returns the logical counter of an event, by its index in the session's list.
    pub fn counter(&self, event: usize) -> Option<LogicalCounter<'a>> {
        if event >= self.events {
            return None;
        }
        // SAFETY: the bank has this counter (`new`).
        let words = unsafe { self.words.add(HEADER_WORDS + event * COUNTER_WORDS) };
        Some(LogicalCounter { header: self.words, words, bank: PhantomData })
    }

    /// Returns the number of logical counters.
    pub fn counters(&self) -> usize {
        self.events
    }
}

impl LogicalCounter<'_> {
    /// Reads the number of events so far, exact or estimated, in 15 instructions. Values never
    /// decrease. Returns 0 while nothing is known.
    #[inline]
    #[expect(clippy::too_many_lines, reason = "one block of assembly")]
    pub fn read(&self) -> u64 {
        let events: u64;
        // SAFETY: the bank and the program's own page lie there and RDPMC is permitted
        // (`Bank::new`).
        unsafe {
            asm!(
                "2:",
                "mov {control}, [{header} + {own}]",
                "test {control:e}, {control:e}",
                "js 3f",
                "mov ecx, [{words} + {assignment} + 4]",
                "rdpmc",
                "movzx ecx, word ptr [{words} + {assignment}]",
                "sub eax, [{header} + {origin} + 8 * rcx]",
                "4:",
                "movzx ecx, word ptr [{words} + {assignment} + 2]",
                "add rax, [{header} + 8 * rcx]",
                "mul qword ptr [{words} + {rate}]",
                "shrd rax, rdx, {bits}",
                "cmp rax, [{words} + {max}]",
                "cmovb rax, [{words} + {max}]",
                "cmp {control}, [{header} + {own}]",
                "jne 2b",
                // The counters do not count: handled out of line.
                ".subsection 1",
                "3:",
                "cmp {control:e}, {busy}",
                "je 2b",
                "mov eax, 0",
                // The only state above `BUSY` is `DETACHED`: nothing was counted beyond the sum.
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
                origin = const own_at(writable::ORIGIN),
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

    /// Returns how often a threshold of the event has fired.
    pub fn fired(&self) -> u64 {
        self.word(counter::FIRED)
    }

    /// Reads the value with its error and its origin.
    pub fn details(&self) -> Details {
        loop {
            let control = self.control(Ordering::Acquire);
            let words: [u64; COUNTER_WORDS] = core::array::from_fn(|word| self.word(word));
            let count = self.count(control, words[counter::ASSIGNMENT]);
            let tsc = self.header_word(header::TSC, Ordering::Relaxed);
            // Pairs with the kernel's Release fence. If a load above saw a newly published word,
            // the load below sees the control word that was stored before it.
            fence(Ordering::Acquire);
            let same = control == self.control(Ordering::Relaxed);
            if control as u32 != BUSY && same {
                return details(&words, count, tsc);
            }
        }
    }

    /// Returns the count of the basis that `assignment` names, while the control word is `control`.
    fn count(&self, control: u64, assignment: u64) -> u64 {
        let (slot, sum) = (usize::from(assignment as u16), usize::from((assignment >> 16) as u16));
        let own = |word: usize| self.own_word(word + slot, Ordering::Relaxed) as u32;
        let since = match control as u32 {
            DETACHED | BUSY => 0,
            state if state & STOPPED != 0 => own(writable::HELD),
            _ => {
                // SAFETY: RDPMC is permitted, and the kernel wrote the number of an existing
                // counter into the bank (`Bank::new`).
                let now = unsafe { rdpmc((assignment >> 32) as u32) };
                now.wrapping_sub(own(writable::ORIGIN))
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
        // SAFETY: the word is aligned, and every writer writes it atomically.
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
