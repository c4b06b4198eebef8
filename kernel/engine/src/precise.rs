//! Precise samples: addresses that the processor stored at the event itself, not at the interrupt
//! that follows (Intel's PEBS).
//!
//! A precise event has a selector, or a pinned counter, whose overflow makes the processor store a
//! record. The interrupt comes after the record. So everything up to the sample is as for other
//! thresholds; only the address differs.

use tally_abi::bank::SLOTS;

/// Addresses of the precise samples since the driver was asked last, by the counter that took them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreciseAddresses {
    /// The slots of [`tally_abi::bank`] whose counters took samples, as a mask.
    taken: u16,
    /// Addresses by slot; those of other slots are meaningless.
    addresses: [u64; SLOTS],
}

const _: () = assert!(SLOTS <= u16::BITS as usize);

impl PreciseAddresses {
    /// Adds the address of a sample of the counter in `slot`. An earlier one of that counter is
    /// replaced.
    pub fn add(&mut self, slot: usize, address: u64) {
        if let Some(known) = self.addresses.get_mut(slot) {
            *known = address;
            self.taken |= 1 << slot;
        }
    }

    /// Returns whether the counter in `slot` took a sample.
    pub(crate) fn has(&self, slot: usize) -> bool {
        slot < SLOTS && self.taken >> slot & 1 == 1
    }

    /// Takes the address of the sample of the counter in `slot`.
    pub(crate) fn take(&mut self, slot: usize) -> Option<u64> {
        let address = self.addresses.get(slot)?;
        let is_taken = self.has(slot);
        self.taken &= !(1 << slot);
        is_taken.then_some(*address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_once_and_the_last_one_wins() {
        let mut addresses = PreciseAddresses::default();
        assert_eq!(addresses.take(3), None);
        addresses.add(3, 0x1000);
        addresses.add(3, 0x2000);
        addresses.add(SLOTS, 0x3000);
        assert_eq!([addresses.take(3), addresses.take(3)], [Some(0x2000), None]);
        assert_eq!(addresses.take(SLOTS), None);
    }
}
