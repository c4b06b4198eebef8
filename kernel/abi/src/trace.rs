//! The types of trace records, and the format of a trace.
//!
//! A trace is the text of [`crate::record::describe`], followed by chunks. A chunk is [`Chunk`]'s
//! two words and a number of whole records of one CPU, in order of time, copied from its ring
//! ([`crate::ring`]). The last chunk is [`Chunk::END`]. All words are 64-bit and little-endian.

mod access;
mod branches;
mod chunk;
mod phase;
mod program;
mod stack;

use serde::{Deserialize, Serialize};

use crate::{
    Malformed, Mode,
    record::{Field, FieldType, Form, RecordType, place, record},
};

pub use access::AccessRecord;
pub use branches::{BRANCH_RECORD_WORDS, BranchesRecord};
pub use chunk::Chunk;
pub use phase::PhaseRecord;
pub use program::{MapRecord, ThreadNameRecord};
pub use stack::{MAX_STACK_BYTES, RegistersRecord, STACK_WORDS, StackRecord};

/// Words of a CPU's trace ring ([`crate::ring`]). The scheduler drains the ring at each tick (10
/// ms). Between two ticks about 50 slices of the default length end, with records of at most 20
/// words. With the shortest slices the ring holds the records of a third of that time.
pub const RING_WORDS: usize = 16_384;
/// Pages of a CPU's trace ring. A page is short, because the overflow path clears the next page
/// when it has filled one.
pub const RING_PAGES: usize = 64;

/// Maximum number of counts in a record: one for each general counter.
pub const MAX_COUNTS: usize = 10;

/// Reason for a slice's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The slice timer overflowed.
    Overflow,
    /// The context was switched out.
    SwitchedOut,
    /// The session was stopped.
    Stopped,
}

impl End {
    const WORDS: [&str; 3] = ["overflow", "switched-out", "stopped"];

    /// The reason's name in descriptions of records.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

impl Field for End {
    const BITS: u32 = 8;
    const FORM: Form = Form::Choice(&End::WORDS);

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
    /// A slice ended.
    SliceRecord = 1 "slice", stamp end_tsc "TSC when the counters were read.",
    list counts[MAX_COUNTS] of events "Counts of the group's events, in the group's order." {
        /// The session.
        session: u32,
        /// The group that was counted.
        group: u16,
        /// The privilege that was counted.
        mode: Mode,
        /// Why the slice ended.
        end: End,
        /// The slice multiplier: the length of the slice in units of the session's slice length.
        /// More than 1 where the engine lengthened slices to keep the budget, or chooses the
        /// length: the unit is 5,000 cycles then. The slices of a session's first rounds are
        /// shorter (decision 25).
        slice_multiplier: u32,
        /// The CPU.
        cpu: u16,
        /// The number of this slice within the session, from 0.
        sequence: u64,
        /// The address space: CR3's page-table base, a physical address.
        address_space: u64 as Address,
        /// TSC when counting began.
        start_tsc: u64,
        /// Cycles of the slice, at the session's privilege.
        cycles: u64,
        /// Instructions of the slice, at the session's privilege.
        instructions: u64,
    }
}

record! {
    /// A threshold on a logical counter fired.
    ThresholdRecord = 2 "threshold", stamp tsc "TSC when it fired." {
        /// The session.
        session: u32,
        /// The CPU.
        cpu: u16,
        /// The event, by its index in the session's list.
        event: u16,
        /// The count that the program had set.
        threshold: u64,
        /// The count when it fired, exact or estimated. It is higher than the threshold by the
        /// events up to the interrupt (skid).
        count: u64,
        /// The address space: CR3's page-table base, a physical address.
        address_space: u64 as Address,
    }
}

record! {
    /// A sample: a logical counter had counted another period.
    SampleRecord = 3 "sample", stamp tsc "TSC when the sample was taken.",
    list counts[MAX_COUNTS] of events
        "Counts of the group's events since the session began, not scaled, in the group's order." {
        /// The session.
        session: u32,
        /// The CPU.
        cpu: u16,
        /// The event, by its index in the session's list.
        event: u16,
        /// The instruction pointer at the interrupt, some instructions after the one that
        /// overflowed the counter (skid). 0 if the sample was taken at a context switch or a
        /// system call. Also 0 if the interrupt came in ring 0 and the session does not count it.
        address: u64 as Address,
        /// The address space: CR3's page-table base, a physical address.
        address_space: u64 as Address,
        /// The event's count at the sample, exact or estimated.
        count: u64,
        /// By how many events the sample came after the count at which it was due, at most
        /// 4,294,967,295: of an event that is counted all the time the events from the overflow to
        /// the interrupt (skid).
        late: u32,
        /// Cycles since the session began.
        cycles: u64,
        /// Instructions since the session began.
        instructions: u64,
        /// The group on the counters, which the list of counts belongs to.
        group: u16,
        /// The next period, in units of the requested period. More than 1 where the engine
        /// lengthened it to keep the budget; 65,535 means 65,535 or more.
        period_multiplier: u16,
        /// Whether the address is in ring 3.
        user: bool,
        /// Whether the processor stored the address at the event: then it is that of an instruction
        /// that had the event, and there is no skid.
        precise: bool,
        /// The thread that ran on the CPU, by its number in the system.
        thread: u32,
    }
}

record! {
    /// Lost records: the ring of this CPU had no room for the records between the previous record
    /// and the next one of the same CPU.
    LostRecord = 4 "lost", stamp tsc "A time between these two records." {
        /// The number of lost records.
        records: u64,
        /// The CPU.
        cpu: u16,
    }
}

record! {
    /// The state of a CPU's trace ring at the end: written = read + lost.
    RingRecord = 5 "ring", stamp tsc "TSC when this record was sent." {
        /// Records that the kernel wrote, lost ones included.
        written: u64,
        /// Records that were sent, without those of the kinds `lost` and `ring`.
        read: u64,
        /// Records that were lost.
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
        /// Whether the call returned to its thread. Otherwise the thread blocked, was preempted or
        /// ended, or the call continues in the thread's next turn; the result is in no record then.
        returned: bool,
        /// The program.
        program: u32,
        /// The thread.
        thread: u32,
        /// The call.
        call: u64 as Syscall,
        /// The first argument.
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
        /// TSC when the call entered the kernel.
        start_tsc: u64,
    }
}

record! {
    /// A context switch, where `trace-events` has `switches`.
    SwitchRecord = 7 "switch", stamp tsc "TSC when the thread's registers were restored." {
        /// The CPU.
        cpu: u16,
        /// The program that was switched out; 0: the idle loop.
        from_program: u32,
        /// The thread that was switched out.
        from_thread: u32,
        /// The program that was switched in; 0: the idle loop.
        program: u32,
        /// The thread that was switched in.
        thread: u32,
    }
}

/// The effect of a signal's delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Delivered {
    /// The program's handler is called.
    Handled,
    /// The signal ends the program.
    Ended,
}

impl Delivered {
    const WORDS: [&str; 2] = ["handled", "ended"];

    /// The effect's name in descriptions of records.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

impl Field for Delivered {
    const BITS: u32 = 8;
    const FORM: Form = Form::Choice(&Delivered::WORDS);

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
    /// The kernel delivered a signal, where `trace-events` has `signals`.
    SignalRecord = 8 "signal", stamp tsc "TSC when the signal was delivered." {
        /// The CPU.
        cpu: u16,
        /// The signal.
        signal: u8 as Signal,
        /// The effect.
        action: Delivered,
        /// The program.
        program: u32,
        /// The thread.
        thread: u32,
        /// The handler's address; 0 if there is no handler.
        handler: u64 as Address,
        /// The address at which the thread was interrupted.
        address: u64 as Address,
    }
}

/// Position of an event's counts in the records of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlicePlace {
    /// In every record, as `cycles`.
    Cycles,
    /// In every record, as `instructions`.
    Instructions,
    /// In no record: the event has a counter of its own, and only its total is known.
    None,
    /// In the list `counts` of the group's records.
    List {
        /// The group.
        group: u16,
        /// Index in the list, from 0.
        index: u8,
    },
}

/// All record types.
pub const TYPES: [&RecordType; 15] = [
    &SliceRecord::TYPE,
    &ThresholdRecord::TYPE,
    &SampleRecord::TYPE,
    &LostRecord::TYPE,
    &RingRecord::TYPE,
    &SyscallRecord::TYPE,
    &SwitchRecord::TYPE,
    &SignalRecord::TYPE,
    &PhaseRecord::TYPE,
    &RegistersRecord::TYPE,
    &StackRecord::TYPE,
    &MapRecord::TYPE,
    &ThreadNameRecord::TYPE,
    &AccessRecord::TYPE,
    &BranchesRecord::TYPE,
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
    /// An interval of a session.
    Phase(PhaseRecord),
    /// The registers of a sample.
    Registers(RegistersRecord),
    /// A part of the stack of a sample.
    Stack(StackRecord),
    /// A mapped file.
    Map(MapRecord),
    /// A name of a thread.
    ThreadName(ThreadNameRecord),
    /// The memory access of a sample.
    Access(AccessRecord),
    /// Branches before a sample.
    Branches(BranchesRecord),
}

impl Record {
    /// Decodes the `words` after a header with the kind `kind` and the time stamp `tsc`.
    ///
    /// # Errors
    /// The kind or a field's value is unknown, or the number of words is wrong.
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
            PhaseRecord::KIND => PhaseRecord::decode(tsc, words).map(Record::Phase),
            RegistersRecord::KIND => RegistersRecord::decode(tsc, words).map(Record::Registers),
            StackRecord::KIND => StackRecord::decode(tsc, words).map(Record::Stack),
            MapRecord::KIND => MapRecord::decode(tsc, words).map(Record::Map),
            ThreadNameRecord::KIND => ThreadNameRecord::decode(tsc, words).map(Record::ThreadName),
            AccessRecord::KIND => AccessRecord::decode(tsc, words).map(Record::Access),
            BranchesRecord::KIND => BranchesRecord::decode(tsc, words).map(Record::Branches),
            _ => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests;
