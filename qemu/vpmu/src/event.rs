//! An event: a name and an encoding of the vendor's, and the signals of the model that it counts.

use tally_model::{Counts, Geometry, Ring, Signal};

/// The unit that an event's signals are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Occurrences, or cycles that the model keeps as such: taken as they are.
    Plain,
    /// Slots, to be given in core cycles.
    SlotsAsCycles,
    /// Slots, to be given in ticks of the time-stamp counter.
    SlotsAsReference,
    /// Slots, to be given in ticks of the 25 MHz crystal.
    SlotsAsCrystal,
    /// Cycles, to be given in slots.
    CyclesAsSlots,
}

/// Time-stamp counter ticks to a tick of the crystal clock: 2 GHz to 25 MHz.
const REFERENCE_PER_CRYSTAL: u64 = 80;

/// One event of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The vendor's name.
    pub name: &'static str,
    /// Event select; on AMD with bits 11:8 in place.
    pub code: u16,
    /// Unit mask.
    pub umask: u8,
    /// Counter mask that makes the event what it is.
    pub cmask: u8,
    /// Inverted comparison with the counter mask.
    pub inv: bool,
    /// Edge detection.
    pub edge: bool,
    /// The general counters that can count it.
    pub counters: u8,
    /// The signals whose sum it is.
    pub signals: &'static [Signal],
    /// Their unit.
    pub unit: Unit,
    /// Whether only the out-of-order pipeline has what it counts.
    pub needs_out_of_order: bool,
    /// What it counts, in one sentence.
    pub about: &'static str,
}

impl Event {
    /// An event on every counter, without counter mask.
    pub const fn new(
        name: &'static str,
        code: u16,
        umask: u8,
        signals: &'static [Signal],
        about: &'static str,
    ) -> Event {
        Event {
            name,
            code,
            umask,
            cmask: 0,
            inv: false,
            edge: false,
            counters: 0xff,
            signals,
            unit: Unit::Plain,
            needs_out_of_order: false,
            about,
        }
    }

    /// The same with a counter mask.
    pub const fn cmask(self, cmask: u8) -> Event {
        Event { cmask, ..self }
    }

    /// The same with the comparison inverted.
    pub const fn inv(self) -> Event {
        Event { inv: true, ..self }
    }

    /// The same with edge detection.
    pub const fn edge(self) -> Event {
        Event { edge: true, ..self }
    }

    /// The same on some counters only.
    pub const fn on(self, counters: u8) -> Event {
        Event { counters, ..self }
    }

    /// The same in another unit.
    pub const fn unit(self, unit: Unit) -> Event {
        Event { unit, ..self }
    }

    /// The same where the out-of-order pipeline is chosen.
    pub const fn out_of_order(self) -> Event {
        Event { needs_out_of_order: true, ..self }
    }

    /// How often it has happened in one ring.
    pub fn in_ring(&self, counts: &[Counts; 2], ring: Ring, geometry: &Geometry) -> u64 {
        let ring = &counts[ring as usize];
        let sum: u64 = self.signals.iter().map(|signal| ring[*signal]).sum();
        self.unit.convert(sum, geometry)
    }
}

impl Unit {
    fn convert(self, sum: u64, geometry: &Geometry) -> u64 {
        let width = u64::from(geometry.width);
        // In 128 bits: the product passes 64 within minutes of modelled time.
        let reference = || u128::from(sum) * u128::from(geometry.ref_per_1000_cycles);
        match self {
            Unit::Plain => sum,
            Unit::SlotsAsCycles => sum / width,
            Unit::CyclesAsSlots => sum * width,
            Unit::SlotsAsReference => (reference() / (1000 * u128::from(width))) as u64,
            Unit::SlotsAsCrystal => {
                (reference() / (1000 * u128::from(width * REFERENCE_PER_CRYSTAL))) as u64
            }
        }
    }
}
