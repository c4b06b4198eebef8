//! A histogram of samples' addresses, in memory of a fixed size.
//!
//! [`Histogram::add`] runs in the overflow path: it probes at most [`PROBES`] slots.

use alloc::{boxed::Box, vec};

/// Binary logarithm of the number of slots.
const BITS: u32 = 12;
/// Slots in which an address may be.
const PROBES: usize = 8;

/// Addresses, and the samples at each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Slot: an address and its samples; empty if the samples are 0.
    slots: Box<[(u64, u64)]>,
    /// Samples of addresses that found no slot.
    others: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { slots: vec![(0, 0); 1 << BITS].into(), others: 0 }
    }
}

impl Histogram {
    /// Adds a sample.
    pub fn add(&mut self, address: u64) {
        // Fibonacci hashing: neighbouring addresses get distant slots.
        let first = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize;
        for probe in 0..PROBES {
            let at = (first + probe) % (1 << BITS);
            if let Some((known, samples)) = self.slots.get_mut(at)
                && (*samples == 0 || *known == address)
            {
                *known = address;
                *samples += 1;
                return;
            }
        }
        self.others += 1;
    }

    /// Each address with its samples, in no particular order.
    pub fn addresses(&self) -> impl Iterator<Item = (u64, u64)> {
        self.slots.iter().copied().filter(|(_, samples)| *samples > 0)
    }

    /// Samples whose addresses found no slot.
    pub fn others(&self) -> u64 {
        self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_somewhere() {
        let mut histogram = Histogram::default();
        let count = 20_000_u64;
        for sample in 0..count {
            // Half of the samples have one of ten addresses, the others are spread.
            let address = if sample % 2 == 0 { sample % 20 } else { sample * 7919 };
            histogram.add(0x20_0000 + address);
        }
        let counted: u64 = histogram.addresses().map(|(_, samples)| samples).sum();
        assert_eq!(counted + histogram.others(), count);
        assert!(histogram.others() > 0);
        let of = |address| histogram.addresses().find(|(known, _)| *known == address);
        assert_eq!(of(0x20_0000), Some((0x20_0000, 1000)));
    }
}
