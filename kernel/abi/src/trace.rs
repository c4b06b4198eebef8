//! Trace records: what was counted when, where and for whom.

use serde::{Deserialize, Serialize};

use crate::{Malformed, Mode};

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

/// One slice of one context on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceRecord {
    /// The session.
    pub session: u32,
    /// The CPU.
    pub cpu: u16,
    /// The group that was counted.
    pub group: u16,
    /// The privilege that was counted.
    pub mode: Mode,
    /// Why the slice ended.
    pub end: End,
    /// Events in the group, and so valid entries of [`Self::counts`].
    pub events: u8,
    /// The length that the slice was to have, in units of the session's: more than 1 where the
    /// budget made slices longer.
    pub stretch: u32,
    /// Number of this slice within the session, from 0.
    pub sequence: u64,
    /// The address space: CR3's page-table base, a physical address.
    pub address_space: u64,
    /// TSC when counting began.
    pub start_tsc: u64,
    /// TSC when the counters were read.
    pub end_tsc: u64,
    /// Cycles at the session's privilege.
    pub cycles: u64,
    /// Instructions at the session's privilege.
    pub instructions: u64,
    /// Events, in the order of the group's members.
    pub counts: [u64; MAX_COUNTS],
}

/// Words of an encoded record, of whichever kind.
pub const RECORD_WORDS: usize = 8 + MAX_COUNTS;

/// The byte of an encoded record's second word that says its kind, by its lowest bit: 0 is a
/// [`SliceRecord`].
const KIND_SHIFT: u32 = 24;
const KIND_THRESHOLD: u64 = 1;
const KIND_SAMPLE: u64 = 2;

/// A record of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// A slice.
    Slice(SliceRecord),
    /// A threshold that fired.
    Threshold(ThresholdRecord),
    /// A sample.
    Sample(SampleRecord),
}

impl Record {
    /// Decodes what a record's `to_words` made.
    ///
    /// # Errors
    /// Something in it that this version does not define.
    pub fn from_words(words: &[u64; RECORD_WORDS]) -> Result<Self, Malformed> {
        match words[1] >> KIND_SHIFT & 0xff {
            0 => SliceRecord::from_words(words).map(Record::Slice),
            KIND_THRESHOLD => Ok(Record::Threshold(ThresholdRecord::from_words(words))),
            KIND_SAMPLE => Ok(Record::Sample(SampleRecord::from_words(words))),
            _ => Err(Malformed),
        }
    }
}

/// What was going on when a logical counter had counted another period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRecord {
    /// The session.
    pub session: u32,
    /// The CPU.
    pub cpu: u16,
    /// The event, by its index in the session's list.
    pub event: u16,
    /// The address of the next instruction: some behind the one that caused it (skid). 0 where no
    /// interrupt told of it but the program's leaving of the CPU, or a system call.
    pub address: u64,
    /// Whether that was in ring 3.
    pub user: bool,
    /// The address space: CR3's page-table base, a physical address.
    pub address_space: u64,
    /// TSC when it was taken.
    pub tsc: u64,
    /// The event's count then, exact or estimated.
    pub count: u64,
    /// Cycles and instructions of the session so far.
    pub cycles: u64,
    /// See [`Self::cycles`].
    pub instructions: u64,
    /// The group that was on the hardware, of whose members [`Self::counts`] are.
    pub group: u16,
    /// Events in the group, and so valid entries of [`Self::counts`].
    pub events: u8,
    /// How many times as long as was asked for the period was that begins here, for the budget's
    /// sake; 65,535 stands for more too.
    pub stretch: u16,
    /// Events of the group's members so far, not scaled, in their order.
    pub counts: [u64; MAX_COUNTS],
}

impl SampleRecord {
    /// Encodes for a trace ring.
    pub fn to_words(&self) -> [u64; RECORD_WORDS] {
        let mut words = [0; RECORD_WORDS];
        words[..8].copy_from_slice(&[
            u64::from(self.session) | u64::from(self.cpu) << 32 | u64::from(self.event) << 48,
            u64::from(self.user)
                | u64::from(self.events) << 16
                | KIND_SAMPLE << KIND_SHIFT
                | u64::from(self.group) << 32
                | u64::from(self.stretch) << 48,
            self.address,
            self.address_space,
            self.tsc,
            self.count,
            self.cycles,
            self.instructions,
        ]);
        words[8..].copy_from_slice(&self.counts);
        words
    }

    fn from_words(words: &[u64; RECORD_WORDS]) -> Self {
        let [head, kinds, address, address_space, tsc, count, cycles, instructions, counts @ ..] =
            *words;
        SampleRecord {
            session: head as u32,
            cpu: (head >> 32) as u16,
            event: (head >> 48) as u16,
            address,
            user: kinds & 1 == 1,
            address_space,
            tsc,
            count,
            cycles,
            instructions,
            group: (kinds >> 32) as u16,
            events: (kinds >> 16) as u8,
            stretch: (kinds >> 48) as u16,
            counts,
        }
    }
}

/// A threshold on a logical counter that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdRecord {
    /// The session.
    pub session: u32,
    /// The CPU.
    pub cpu: u16,
    /// The event, by its index in the session's list.
    pub event: u16,
    /// The count at which it was to fire.
    pub threshold: u64,
    /// The count at which it fired, exact or estimated: what the interrupt came late by is in it.
    pub count: u64,
    /// The address space: CR3's page-table base, a physical address.
    pub address_space: u64,
    /// TSC when it fired.
    pub tsc: u64,
}

impl ThresholdRecord {
    /// Encodes for a trace ring.
    pub fn to_words(&self) -> [u64; RECORD_WORDS] {
        let mut words = [0; RECORD_WORDS];
        words[..6].copy_from_slice(&[
            u64::from(self.session) | u64::from(self.cpu) << 32 | u64::from(self.event) << 48,
            KIND_THRESHOLD << KIND_SHIFT,
            self.threshold,
            self.address_space,
            self.tsc,
            self.count,
        ]);
        words
    }

    fn from_words(words: &[u64; RECORD_WORDS]) -> Self {
        let [head, _, threshold, address_space, tsc, count, ..] = *words;
        ThresholdRecord {
            session: head as u32,
            cpu: (head >> 32) as u16,
            event: (head >> 48) as u16,
            threshold,
            count,
            address_space,
            tsc,
        }
    }
}

impl SliceRecord {
    /// Encodes for a trace ring.
    pub fn to_words(&self) -> [u64; RECORD_WORDS] {
        let head =
            u64::from(self.session) | u64::from(self.cpu) << 32 | u64::from(self.group) << 48;
        let kinds = self.mode as u64
            | (self.end as u64) << 8
            | u64::from(self.events) << 16
            | u64::from(self.stretch) << 32;
        let mut words = [0; RECORD_WORDS];
        words[..8].copy_from_slice(&[
            head,
            kinds,
            self.sequence,
            self.address_space,
            self.start_tsc,
            self.end_tsc,
            self.cycles,
            self.instructions,
        ]);
        words[8..].copy_from_slice(&self.counts);
        words
    }

    /// Decodes what [`Self::to_words`] made: a record of this kind.
    ///
    /// # Errors
    /// A mode or an end that this version does not define, or too many events.
    fn from_words(words: &[u64; RECORD_WORDS]) -> Result<Self, Malformed> {
        let [head, kinds, sequence, address_space, start_tsc, end_tsc, cycles, instructions, ..] =
            *words;
        let byte = |shift: u32| kinds >> shift & 0xff;
        let mode = [Mode::User, Mode::Kernel, Mode::Full].into_iter();
        let end = [End::Overflow, End::SwitchedOut, End::Stopped].into_iter();
        let mut counts = [0; MAX_COUNTS];
        counts.copy_from_slice(&words[8..]);
        let events = byte(16) as u8;
        if usize::from(events) > MAX_COUNTS {
            return Err(Malformed);
        }
        Ok(SliceRecord {
            session: head as u32,
            cpu: (head >> 32) as u16,
            group: (head >> 48) as u16,
            mode: mode.into_iter().find(|m| *m as u64 == byte(0)).ok_or(Malformed)?,
            end: end.into_iter().find(|e| *e as u64 == byte(8)).ok_or(Malformed)?,
            events,
            stretch: (kinds >> 32) as u32,
            sequence,
            address_space,
            start_tsc,
            end_tsc,
            cycles,
            instructions,
            counts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_reject() {
        let record = SliceRecord {
            session: 3,
            cpu: 2,
            group: 0xfffe,
            mode: Mode::Full,
            end: End::SwitchedOut,
            events: 4,
            stretch: 3,
            sequence: 99,
            address_space: 0x1000,
            start_tsc: 5,
            end_tsc: 6,
            cycles: 7,
            instructions: 8,
            counts: [1, 2, 3, 4, 0, 0, 0, 0],
        };
        let words = record.to_words();
        assert_eq!(Record::from_words(&words), Ok(Record::Slice(record)));
        for bad in [9, 9 << 16, 3 << 24] {
            let mut words = words;
            words[1] = bad;
            assert_eq!(Record::from_words(&words), Err(Malformed));
        }
    }

    #[test]
    fn thresholds_round_trip() {
        let record = ThresholdRecord {
            session: 3,
            cpu: 2,
            event: 1023,
            threshold: 1 << 40,
            count: u64::MAX,
            address_space: 0x1000,
            tsc: 5,
        };
        assert_eq!(Record::from_words(&record.to_words()), Ok(Record::Threshold(record)));
    }

    #[test]
    fn samples_round_trip() {
        let record = SampleRecord {
            session: 3,
            cpu: 2,
            event: 1023,
            address: 0xffff_8000_0000_1234,
            user: true,
            address_space: 0x1000,
            tsc: 5,
            count: 6,
            cycles: 7,
            instructions: 8,
            group: 0xfffe,
            events: 4,
            stretch: 0xfedc,
            counts: [1, 2, 3, 4, 0, 0, 0, 0],
        };
        assert_eq!(Record::from_words(&record.to_words()), Ok(Record::Sample(record)));
    }
}
