//! Trace records: what was counted when, where and for whom; and how a trace is put together.
//!
//! A trace is the text of [`crate::record::describe`], then chunks. A chunk is [`Chunk`]'s two
//! words and whole records, all of one CPU and in the order of time, as they lay in its ring
//! ([`crate::ring`]). The last chunk is [`Chunk::END`]. All words are 64-bit and little-endian.

use serde::{Deserialize, Serialize};

use crate::{
    Malformed, Mode,
    record::{Field, FieldType, Form, RecordType, place, record},
};

/// Words of a CPU's trace ring ([`crate::ring`]). A turn of the scheduler has some 50 slices of the
/// default length, 20 words each at most, and the timer drains the ring each turn; of slices as
/// short as can be it holds a third of a turn's.
pub const RING_WORDS: usize = 16_384;
/// Its pages. They are short, as the overflow path clears one when it has filled another.
pub const RING_PAGES: usize = 64;

/// The most counts in a record: general counters of one group.
pub const MAX_COUNTS: usize = 8;

/// Why a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// Its length was reached: the overflow interrupt.
    Overflow,
    /// The context left the CPU.
    SwitchedOut,
    /// The session was stopped.
    Stopped,
}

impl Field for End {
    const BITS: u32 = 8;
    const FORM: Form = Form::Choice(&["overflow", "switched-out", "stopped"]);

    #[inline(always)]
    fn bits(self) -> u64 {
        self as u64
    }

    fn from_bits(bits: u64) -> Result<Self, Malformed> {
        let all = [End::Overflow, End::SwitchedOut, End::Stopped];
        all.get((bits & 0xff) as usize).copied().ok_or(Malformed)
    }
}

record! {
    /// One slice of one context on one CPU.
    SliceRecord = 1 "slice", stamp end_tsc "TSC when the counters were read.",
    list counts of events "Events, in the order of the group's members." {
        /// The session.
        session: u32,
        /// The group that was counted.
        group: u16,
        /// The privilege that was counted.
        mode: Mode,
        /// Why the slice ended.
        end: End,
        /// The length that the slice was to have, in units of the session's: more than 1 where the
        /// budget made slices longer.
        slice_multiplier: u32,
        /// The CPU.
        cpu: u16,
        /// Number of this slice within the session, from 0.
        sequence: u64,
        /// The address space: CR3's page-table base, a physical address.
        address_space: u64 as Address,
        /// TSC when counting began.
        start_tsc: u64,
        /// Cycles at the session's privilege.
        cycles: u64,
        /// Instructions at the session's privilege.
        instructions: u64,
    }
}

record! {
    /// A threshold on a logical counter that was reached.
    ThresholdRecord = 2 "threshold", stamp tsc "TSC when it fired." {
        /// The session.
        session: u32,
        /// The CPU.
        cpu: u16,
        /// The event, by its index in the session's list.
        event: u16,
        /// The count at which it was to fire.
        threshold: u64,
        /// The count at which it fired, exact or estimated: what the interrupt came late by is in
        /// it.
        count: u64,
        /// The address space: CR3's page-table base, a physical address.
        address_space: u64 as Address,
    }
}

record! {
    /// What was going on when a logical counter had counted another period.
    SampleRecord = 3 "sample", stamp tsc "TSC when it was taken.",
    list counts of events "Events of the group's members so far, not scaled, in their order." {
        /// The session.
        session: u32,
        /// The CPU.
        cpu: u16,
        /// The event, by its index in the session's list.
        event: u16,
        /// The address of the next instruction: some behind the one that caused it (skid). 0 where
        /// no interrupt told of it but the program's leaving of the CPU, or a system call, and
        /// where it was in ring 0, which the session does not count.
        address: u64 as Address,
        /// The address space: CR3's page-table base, a physical address.
        address_space: u64 as Address,
        /// The event's count then, exact or estimated.
        count: u64,
        /// Cycles of the session so far.
        cycles: u64,
        /// Instructions of the session so far.
        instructions: u64,
        /// The group that was on the hardware, of whose members the counts are.
        group: u16,
        /// How many times as long as was asked for the period was that begins here, for the
        /// budget's sake; 65,535 stands for more too.
        period_multiplier: u16,
        /// Whether the address is in ring 3.
        user: bool,
    }
}

record! {
    /// Records that are not here, as there was no room for them in their ring: those between the
    /// one before and the one after this on the same CPU.
    LostRecord = 4 "lost", stamp tsc "A time between those two." {
        /// How many.
        records: u64,
        /// The CPU.
        cpu: u16,
    }
}

record! {
    /// The state of a CPU's trace ring at the end: written = read + lost.
    RingRecord = 5 "ring", stamp tsc "TSC when that was told." {
        /// Records that were offered.
        written: u64,
        /// Records that were sent; these two kinds are not among them.
        read: u64,
        /// Records that were not.
        lost: u64,
        /// The CPU.
        cpu: u16,
    }
}

record! {
    /// A system call, where `trace-events` has `syscalls`. The call that ends the last program ends
    /// the machine, and has no record.
    SyscallRecord = 6 "syscall", stamp tsc "TSC when the kernel had handled the call." {
        /// The CPU.
        cpu: u16,
        /// Whether it returned to its thread. Otherwise the thread waits, was preempted or ended,
        /// or the call is made again; its result is in no record.
        returned: bool,
        /// The program.
        program: u32,
        /// The thread.
        thread: u32,
        /// The call.
        call: u64 as Syscall,
        /// Its first argument (RDI); the other five follow.
        rdi: u64 as Address,
        /// The second argument.
        rsi: u64 as Address,
        /// The third argument.
        rdx: u64 as Address,
        /// The fourth argument.
        r10: u64 as Address,
        /// The fifth argument.
        r8: u64 as Address,
        /// The sixth argument.
        r9: u64 as Address,
        /// The result; 0 if the call has not returned.
        result: u64 as Result,
        /// TSC when the kernel was entered for it.
        start_tsc: u64,
    }
}

record! {
    /// A context switch, where `trace-events` has `switches`: another thread is on the CPU from now
    /// on.
    SwitchRecord = 7 "switch", stamp tsc "TSC when the thread's registers were restored." {
        /// The CPU.
        cpu: u16,
        /// The program before; 0: the idle loop.
        from_program: u32,
        /// Its thread.
        from_thread: u32,
        /// The program from now on; 0: the idle loop.
        program: u32,
        /// Its thread.
        thread: u32,
    }
}

/// What becomes of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Delivered {
    /// A handler runs.
    Handled,
    /// It ends the program.
    Ended,
}

impl Field for Delivered {
    const BITS: u32 = 8;
    const FORM: Form = Form::Choice(&["handled", "ended"]);

    #[inline(always)]
    fn bits(self) -> u64 {
        self as u64
    }

    fn from_bits(bits: u64) -> Result<Self, Malformed> {
        let all = [Delivered::Handled, Delivered::Ended];
        all.get((bits & 0xff) as usize).copied().ok_or(Malformed)
    }
}

record! {
    /// A signal that is delivered, where `trace-events` has `signals`.
    SignalRecord = 8 "signal", stamp tsc "TSC when it was delivered." {
        /// The CPU.
        cpu: u16,
        /// The signal.
        signal: u8 as Signal,
        /// What becomes of it.
        action: Delivered,
        /// The program.
        program: u32,
        /// The thread.
        thread: u32,
        /// The handler; 0 where there is none.
        handler: u64 as Address,
        /// Where the thread was interrupted.
        address: u64 as Address,
    }
}

/// Every type of records.
pub const TYPES: [&RecordType; 8] = [
    &SliceRecord::TYPE,
    &ThresholdRecord::TYPE,
    &SampleRecord::TYPE,
    &LostRecord::TYPE,
    &RingRecord::TYPE,
    &SyscallRecord::TYPE,
    &SwitchRecord::TYPE,
    &SignalRecord::TYPE,
];

/// A record of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// A slice.
    Slice(SliceRecord),
    /// A threshold that fired.
    Threshold(ThresholdRecord),
    /// A sample.
    Sample(SampleRecord),
    /// Records that were lost.
    Lost(LostRecord),
    /// The state of a ring at the end.
    Ring(RingRecord),
    /// A system call.
    Syscall(SyscallRecord),
    /// A context switch.
    Switch(SwitchRecord),
    /// A signal.
    Signal(SignalRecord),
}

impl Record {
    /// Decodes what follows a header.
    ///
    /// # Errors
    /// Something in it that this version does not define.
    pub fn decode(kind: u8, tsc: u64, words: &[u64]) -> Result<Self, Malformed> {
        match kind {
            SliceRecord::KIND => SliceRecord::decode(tsc, words).map(Record::Slice),
            ThresholdRecord::KIND => ThresholdRecord::decode(tsc, words).map(Record::Threshold),
            SampleRecord::KIND => SampleRecord::decode(tsc, words).map(Record::Sample),
            LostRecord::KIND => LostRecord::decode(tsc, words).map(Record::Lost),
            RingRecord::KIND => RingRecord::decode(tsc, words).map(Record::Ring),
            SyscallRecord::KIND => SyscallRecord::decode(tsc, words).map(Record::Syscall),
            SwitchRecord::KIND => SwitchRecord::decode(tsc, words).map(Record::Switch),
            SignalRecord::KIND => SignalRecord::decode(tsc, words).map(Record::Signal),
            _ => Err(Malformed),
        }
    }
}

/// What a piece of a trace begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The CPU whose records follow.
    pub cpu: u16,
    /// Words of records that follow.
    pub words: u32,
    /// A time stamp within 2⁴⁷ ticks of the first record's, as is each record's of that before it.
    pub near_tsc: u64,
}

impl Chunk {
    /// Words of a chunk's own.
    pub const WORDS: usize = 2;
    /// What a trace ends with.
    pub const END: Chunk = Chunk { cpu: u16::MAX, words: 0, near_tsc: 0 };
    const MARK: u64 = 0x7a11;

    /// Encodes it: the mark 7A11H in the low 16 bits, then the CPU, then the number of words; the
    /// time stamp.
    pub const fn to_words(self) -> [u64; Self::WORDS] {
        [Self::MARK | (self.cpu as u64) << 16 | (self.words as u64) << 32, self.near_tsc]
    }

    /// Decodes what [`Self::to_words`] made.
    ///
    /// # Errors
    /// It is none.
    pub const fn from_words([head, near_tsc]: [u64; Self::WORDS]) -> Result<Self, Malformed> {
        if head & 0xffff != Self::MARK {
            return Err(Malformed);
        }
        Ok(Chunk { cpu: (head >> 16) as u16, words: (head >> 32) as u32, near_tsc })
    }
}

#[cfg(test)]
mod tests;
