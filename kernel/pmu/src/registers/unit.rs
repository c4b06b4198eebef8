//! The counter unit of the virtual PMU: 256 counters that count at the same time.
//!
//! No processor has it. `qemu/README.md`, "The counter unit", has its registers. It is the unit of
//! Salapura and others, "Next-Generation Performance Counters" (ISPASS 2008).

use bitflags::bitflags;

use super::{Register, register};

bitflags! {
    /// CONFIG of a counter: what it counts. The event, rings and enable have the places that they
    /// have in both vendors' event selects.
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
        /// The vendor's edge detection, as a part of the event.
        const EDGE = 1 << 18;
        /// The threshold raises the interrupt.
        const INT = 1 << 20;
        /// Counts while the unit is started.
        const EN = 1 << 22;
        /// The vendor's inversion, as a part of the event.
        const INV = 1 << 23;
        /// The vendor's counter mask, as a part of the event.
        const CMASK = 0xff << 24;
        /// AMD's high four bits of the event code.
        const CODE_HIGH = 0xf << 32;
        /// The signal mode: see [`SignalMode`].
        const MODE = 7 << 40;
        /// Read only: the unit can count this event in this mode.
        const SUPPORTED = 1 << 63;
    }

    /// THRESHOLD of a counter.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UnitThreshold: u64 {
        /// The upper bits of the count out of which the next carry raises the interrupt.
        const WORD = !0xfff;
    }

    /// CONTROL: starts and stops all counters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UnitControl: u64 {
        /// The counters count.
        const RUN = 1;
    }

    /// CAPABILITIES: what the unit is. Read only.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UnitCapabilities: u64 {
        /// The number of counters.
        const COUNTERS = 0xffff;
        /// Bits of a counter in its fast register.
        const LOW_BITS = 0xff << 16;
        /// The most events of a counter in a cycle.
        const EVENTS = 0xff << 24;
        /// Cycles from one visit of the maintenance machine to the next.
        const ROUND = 0xffff << 32;
    }

    /// STATUS, a row of four: which thresholds have fired. Writing a one clears the bit.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UnitStatus: u64 {
        /// 64 counters.
        const COUNTERS = u64::MAX;
    }
}

register!(UnitConfig, "UNIT_CONFIG", 0x4f00_0000);
register!(UnitThreshold, "UNIT_THRESHOLD", 0x4f00_0200);
register!(UnitControl, "UNIT_CONTROL", 0x4f00_0300);
register!(UnitCapabilities, "UNIT_CAPABILITIES", 0x4f00_0301);
register!(UnitStatus, "UNIT_STATUS", 0x4f00_0304);

/// COUNT of a counter: its 64 bits. Its address is also RDPMC's index.
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

/// How a counter of the unit counts its event (ISPASS 2008, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SignalMode {
    /// The event, as a general counter does.
    Events,
    /// Cycles in which the signal is high.
    LevelHigh,
    /// Cycles in which it is low.
    LevelLow,
    /// Its changes from low to high.
    EdgeRising,
    /// Its changes from high to low.
    EdgeFalling,
}

impl UnitConfig {
    /// The event and rings of a vendor's event select, enabled.
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

    /// The same in a signal mode.
    #[must_use]
    pub const fn with_mode(self, mode: SignalMode) -> UnitConfig {
        let others = self.bits() & !UnitConfig::MODE.bits();
        UnitConfig::from_bits_retain(others | (mode as u64) << 40)
    }
}
