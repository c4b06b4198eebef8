//! An event: the vendor's name and encoding, and the model's signals that it counts.

use tally_model::{Counts, Geometry, Pipeline, Privilege, Signal};

/// The conversion from an event's signals to its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// No conversion: occurrences, or cycles that the model counts as cycles.
    Plain,
    /// From slots to core cycles.
    SlotsAsCycles,
    /// From slots to ticks of the time-stamp counter.
    SlotsAsReference,
    /// From slots to ticks of the 25 MHz crystal.
    SlotsAsCrystal,
    /// From cycles to slots.
    CyclesAsSlots,
}

/// Time-stamp counter ticks for each tick of the crystal clock: 2 GHz to 25 MHz.
const REFERENCE_PER_CRYSTAL: u64 = 80;

/// The event code of Tally's own events, which no vendor uses. Their unit mask is a number, not a
/// set of bits.
pub(crate) const TALLY_CODE: u16 = 0xfd;

/// A capability that an event needs and that not every machine of its profile has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The out-of-order pipeline.
    OutOfOrder,
    /// CPI stacks, which the out-of-order pipeline counts.
    Stacks,
    /// A branch target buffer.
    TargetBuffer,
    /// A micro-op cache.
    UopCache,
    /// Large pages in the TLBs.
    LargePages,
    /// Execution of loads ahead of older stores, in the out-of-order pipeline.
    Rejections,
}

impl Need {
    /// The virtual PMU's options that give a machine the capability.
    pub fn options(self) -> &'static str {
        match self {
            Need::OutOfOrder => "pipeline=ooo",
            Need::Stacks => "pipeline=ooo,stacks=yes",
            Need::TargetBuffer => "btb=yes",
            Need::UopCache => "uop-cache=yes",
            Need::LargePages => "large-pages=yes",
            Need::Rejections => "pipeline=ooo,rejections=yes",
        }
    }

    pub(crate) fn is_met(self, geometry: &Geometry) -> bool {
        let out_of_order = matches!(geometry.pipeline, Pipeline::OutOfOrder(_));
        match self {
            Need::OutOfOrder => out_of_order,
            Need::Stacks => out_of_order && geometry.stacks,
            Need::TargetBuffer => geometry.has_target_buffer,
            Need::UopCache => geometry.has_uop_cache,
            Need::LargePages => geometry.has_large_pages,
            Need::Rejections => out_of_order && geometry.has_rejections,
        }
    }
}

/// An event of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The vendor's name; `tally.…` for Tally's own events.
    pub name: &'static str,
    /// Event select; on AMD with bits 11:8 in place.
    pub code: u16,
    /// Unit mask; the high byte is the second unit mask of version 6.
    pub umask: u16,
    /// Counter mask in the event's encoding.
    pub cmask: u8,
    /// Whether the comparison with the counter mask is inverted.
    pub inv: bool,
    /// Edge detection.
    pub edge: bool,
    /// Mask of the general counters that can count the event.
    pub counters: u16,
    /// The signals whose sum is the count.
    pub signals: &'static [Signal],
    /// The conversion of the sum.
    pub conversion: Conversion,
    /// The capability that a machine must have to count the event; `None` if every machine can.
    pub needs: Option<Need>,
    /// Whether the encoding is missing in the vendor's published table of this processor.
    pub is_unlisted: bool,
    /// Description of the event in the model, in one sentence.
    pub about: &'static str,
}

impl Event {
    /// Makes an event on every counter, without counter mask.
    pub const fn new(
        name: &'static str,
        code: u16,
        umask: u16,
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
            counters: u16::MAX,
            signals,
            conversion: Conversion::Plain,
            needs: None,
            is_unlisted: false,
            about,
        }
    }

    /// Sets a counter mask.
    pub const fn cmask(self, cmask: u8) -> Event {
        Event { cmask, ..self }
    }

    /// Inverts the comparison.
    pub const fn inv(self) -> Event {
        Event { inv: true, ..self }
    }

    /// Enables edge detection.
    pub const fn edge(self) -> Event {
        Event { edge: true, ..self }
    }

    /// Restricts the event to some counters.
    pub const fn on(self, counters: u16) -> Event {
        Event { counters, ..self }
    }

    /// Sets another unit mask.
    pub const fn umask(self, umask: u16) -> Event {
        Event { umask, ..self }
    }

    /// Sets another conversion.
    pub const fn conversion(self, conversion: Conversion) -> Event {
        Event { conversion, ..self }
    }

    /// Marks the event as missing in the vendor's table of this processor.
    pub const fn unlisted(self) -> Event {
        Event { is_unlisted: true, ..self }
    }

    /// Restricts the event to machines that count CPI stacks.
    pub(crate) const fn stacks(self) -> Event {
        Event { needs: Some(Need::Stacks), ..self }
    }

    /// Restricts the event to machines with a branch target buffer.
    pub(crate) const fn target_buffer(self) -> Event {
        Event { needs: Some(Need::TargetBuffer), ..self }
    }

    /// Restricts the event to machines with a micro-op cache.
    pub(crate) const fn uop_cache(self) -> Event {
        Event { needs: Some(Need::UopCache), ..self }
    }

    /// Restricts the event to machines with large pages in their TLBs.
    pub(crate) const fn large_pages(self) -> Event {
        Event { needs: Some(Need::LargePages), ..self }
    }

    /// Restricts the event to machines that execute loads ahead of older stores.
    pub(crate) const fn rejections(self) -> Event {
        Event { needs: Some(Need::Rejections), ..self }
    }

    /// Restricts the event to the out-of-order pipeline.
    pub const fn out_of_order(self) -> Event {
        Event { needs: Some(Need::OutOfOrder), ..self }
    }

    /// Returns whether the event is Tally's own, not a vendor's.
    pub fn is_tallys(&self) -> bool {
        self.code == TALLY_CODE
    }

    /// The count in one ring.
    pub fn in_ring(&self, counts: &[Counts; 2], ring: Privilege, geometry: &Geometry) -> u64 {
        let ring = &counts[ring as usize];
        let sum: u64 = self.signals.iter().map(|signal| ring[*signal]).sum();
        self.conversion.convert(sum, geometry)
    }
}

impl Conversion {
    pub(crate) fn convert(self, sum: u64, geometry: &Geometry) -> u64 {
        let width = u64::from(geometry.width);
        // The product needs 128 bits: it exceeds 64 bits within minutes of modelled time.
        let reference = || u128::from(sum) * u128::from(geometry.ref_per_1000_cycles);
        match self {
            Conversion::Plain => sum,
            Conversion::SlotsAsCycles => sum / width,
            Conversion::CyclesAsSlots => sum * width,
            Conversion::SlotsAsReference => (reference() / (1000 * u128::from(width))) as u64,
            Conversion::SlotsAsCrystal => {
                (reference() / (1000 * u128::from(width * REFERENCE_PER_CRYSTAL))) as u64
            }
        }
    }
}
