//! Precise samples: what the processor stored at the event itself, not at the interrupt that
//! follows (Intel's PEBS, AMD's IBS).
//!
//! A precise event has a selector, or a pinned counter, whose overflow makes the processor store a
//! record. The interrupt comes after the record. So everything up to the sample is as for other
//! thresholds; only the address differs, and what is known of the instruction's memory access.

use tally_abi::bank::SLOTS;

/// Needs of an event whose samples are precise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precision {
    /// Upper bound of the events that a sample takes from the count.
    pub most_lost: u16,
    /// Whether the instructions with the event access memory, and samples have the access.
    pub accesses: bool,
    /// Latency in cycles above which a load has the event; 0 for other events.
    pub slow_load_cycles: u16,
}

/// Properties of the records that a session's precise samples need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Whether records have memory accesses.
    pub accesses: bool,
    /// Latency in cycles above which loads are counted as slow; 0 if they are not counted.
    pub slow_load_cycles: u16,
}

impl Records {
    /// Adds what another event needs. Of several latencies the last one holds.
    pub(crate) fn with(self, other: Precision) -> Records {
        let slow = [other.slow_load_cycles, self.slow_load_cycles];
        Records {
            accesses: self.accesses | other.accesses,
            slow_load_cycles: slow.into_iter().find(|cycles| *cycles != 0).unwrap_or(0),
        }
    }
}

/// A memory access, as the processor's record has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Linear address of the data; 0 if the instruction accessed nothing.
    pub address: u64,
    /// Source and other properties, in the processor's encoding.
    pub info: u64,
    /// Latencies, in the processor's encoding.
    pub latency: u64,
}

/// A record of a precise sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreciseRecord {
    /// Address of the instruction.
    pub address: u64,
    /// The instruction's memory access; all 0 if records have none.
    pub access: Access,
}

/// Records of precise samples since the driver was asked last, by the counter that took them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreciseRecords {
    /// The slots of [`tally_abi::bank`] whose counters took samples, as a mask.
    taken: u16,
    /// Records by slot; those of other slots are meaningless.
    records: [PreciseRecord; SLOTS],
}

const _: () = assert!(SLOTS <= u16::BITS as usize);

impl PreciseRecords {
    /// Adds the record of the counter in `slot`. An earlier one of that counter is replaced.
    pub fn add(&mut self, slot: usize, record: PreciseRecord) {
        if let Some(known) = self.records.get_mut(slot) {
            *known = record;
            self.taken |= 1 << slot;
        }
    }

    /// The slots whose counters took samples, as a mask.
    pub(crate) fn taken(&self) -> u16 {
        self.taken
    }

    /// Takes the record of the counter in `slot`.
    pub(crate) fn take(&mut self, slot: usize) -> Option<PreciseRecord> {
        let record = self.records.get(slot)?;
        let is_taken = self.taken >> slot & 1 == 1;
        self.taken &= !(1 << slot);
        is_taken.then_some(*record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_taken_once_and_the_last_one_wins() {
        let of = |address| PreciseRecord { address, ..PreciseRecord::default() };
        let mut records = PreciseRecords::default();
        assert_eq!(records.take(3), None);
        records.add(3, of(0x1000));
        records.add(3, of(0x2000));
        records.add(SLOTS, of(0x3000));
        assert_eq!(records.taken(), 1 << 3);
        assert_eq!([records.take(3), records.take(3)], [Some(of(0x2000)), None]);
        assert_eq!(records.take(SLOTS), None);
    }

    #[test]
    fn a_session_needs_what_any_of_its_events_needs() {
        let plain = Precision { most_lost: 512, ..Precision::default() };
        let slow = Precision { accesses: true, slow_load_cycles: 30, ..plain };
        let both = Records { accesses: true, slow_load_cycles: 30 };
        assert_eq!(Records::default().with(plain), Records::default());
        assert_eq!(Records::default().with(slow).with(plain), both);
        assert_eq!(Records::default().with(plain).with(slow), both);
    }
}
