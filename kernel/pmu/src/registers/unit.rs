//! The counter unit of the virtual PMU: 256 counters that count at the same time.
//!
//! No processor has it. `qemu/README.md`, "The counter unit", describes its registers. The design
//! follows Salapura and others, "Next-Generation Performance Counters" (ISPASS 2008).

use bitflags::bitflags;

use super::{Register, register};

bitflags! {
    /// CONFIG of a counter: selects its event. Event, rings and enable bit are at the same
    /// positions as in both vendors' event selects.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UnitConfig: u64 {
        /// Event code, low eight bits.
        const CODE = 0xff;
        /// Unit mask.
        const UMASK = 0xff << 8;
        /// Counts in ring 3.
        const USR = 1 << 16;
        /// Counts in ring 0.
        const OS = 1 << 17;
        /// Edge detection of the vendor, as a part of the event.
        const EDGE = 1 << 18;
        /// Raises the interrupt at the threshold.
        const INT = 1 << 20;
        /// Lets the counter count while the unit is started.
        const EN = 1 << 22;
        /// Inversion of the vendor, as a part of the event.
        const INV = 1 << 23;
        /// Counter mask of the vendor, as a part of the event.
        const CMASK = 0xff << 24;
        /// High four bits of AMD's event code.
        const CODE_HIGH = 0xf << 32;
        /// Signal mode, see [`SignalMode`].
        const MODE = 7 << 40;
        /// Reports that the unit can count this event in this mode. Read only.
        const SUPPORTED = 1 << 63;
    }

    /// THRESHOLD of a counter.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UnitThreshold: u64 {
        /// Upper bits of the count at which the next carry raises the interrupt.
        const WORD = !0xfff;
    }

    /// CONTROL: starts and stops all counters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UnitControl: u64 {
        /// Lets the counters count.
        const RUN = 1;
    }

    /// CAPABILITIES: properties of the unit. Read only.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UnitCapabilities: u64 {
        /// Number of counters.
        const COUNTERS = 0xffff;
        /// Width of a counter's fast register in bits.
        const LOW_BITS = 0xff << 16;
        /// Maximum events of a counter per cycle.
        const EVENTS = 0xff << 24;
        /// Cycles between two visits of the maintenance machine.
        const ROUND = 0xffff << 32;
    }

    /// STATUS, a row of four: thresholds that have fired. Writing a one clears the bit.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UnitStatus: u64 {
        /// Bits of 64 counters.
        const COUNTERS = u64::MAX;
    }
}

register!(UnitConfig, "UNIT_CONFIG", 0x4f00_0000);
register!(UnitThreshold, "UNIT_THRESHOLD", 0x4f00_0200);
register!(UnitControl, "UNIT_CONTROL", 0x4f00_0300);
register!(UnitCapabilities, "UNIT_CAPABILITIES", 0x4f00_0301);
register!(UnitStatus, "UNIT_STATUS", 0x4f00_0304);

/// COUNT of a counter: its 64 bits. The address is also the operand of RDPMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitCount(pub u64);

impl Register for UnitCount {
    const NAME: &'static str = "UNIT_COUNT";
    const FIRST: u32 = 0x4f00_0100;
    const VALID: u64 = u64::MAX;
    fn raw(self) -> u64 {
        self.0
    }
    fn from_raw(bits: u64) -> Self {
        Self(bits)
    }
}

/// Signal mode in which a counter of the unit counts its event (ISPASS 2008, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SignalMode {
    /// Counts the event, as a general counter does.
    Events,
    /// Counts cycles in which the signal is high.
    LevelHigh,
    /// Counts cycles in which the signal is low.
    LevelLow,
    /// Counts changes of the signal from low to high.
    EdgeRising,
    /// Counts changes of the signal from high to low.
    EdgeFalling,
}

impl UnitConfig {
    /// Makes the enabled configuration with the event and rings of a vendor's event select.
    pub const fn of_select(select: u64) -> UnitConfig {
        let taken = UnitConfig::CODE.bits()
            | UnitConfig::UMASK.bits()
            | UnitConfig::USR.bits()
            | UnitConfig::OS.bits()
            | UnitConfig::EDGE.bits()
            | UnitConfig::INV.bits()
            | UnitConfig::CMASK.bits()
            | UnitConfig::CODE_HIGH.bits();
        UnitConfig::from_bits_retain(select & taken | UnitConfig::EN.bits())
    }

    /// Returns the configuration in a signal mode.
    #[must_use]
    pub const fn with_mode(self, mode: SignalMode) -> UnitConfig {
        let others = self.bits() & !UnitConfig::MODE.bits();
        UnitConfig::from_bits_retain(others | (mode as u64) << 40)
    }
}
