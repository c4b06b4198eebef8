//! Driver of the counter unit: each logical counter has a counter of its own, so that nothing is
//! multiplexed and every count is exact.
//!
//! The unit belongs to the virtual PMU ([`crate::virtual_pmu::unit_counters`]); no processor has
//! it. Each CPU has one driver, besides that of the PMU: their registers are separate. A logical
//! count is a counter's value minus an offset, because a threshold preloads the counter (ISPASS
//! 2008, section 5).

use alloc::{boxed::Box, vec};
use core::fmt;

use crate::{
    bus::{Bus, CountingBus},
    registers::{
        Register,
        unit::{UnitCapabilities, UnitConfig, UnitControl, UnitCount, UnitStatus, UnitThreshold},
    },
};

/// Number of counters of a unit.
pub const UNIT_COUNTERS: usize = 256;
/// Events between two carries of a counter.
const CARRY_EVENTS: u64 = 1 << 12;
/// Number of words of STATUS.
const STATUS_WORDS: u8 = 4;

/// Reason why the unit refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitError {
    /// All counters are in use.
    Full,
    /// The unit does not have the event, or not in this signal mode.
    NotSupported,
    /// The threshold is not above the count.
    Passed {
        /// Threshold, in events.
        threshold: u64,
        /// Count, in events.
        count: u64,
    },
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnitError::Full => write!(
                f,
                "all {UNIT_COUNTERS} counters of the counter unit are in use: clear it, or count \
                 fewer events"
            ),
            UnitError::NotSupported => f.write_str(
                "the counter unit does not have this event in this signal mode: count it as events, \
                 or on a general counter",
            ),
            UnitError::Passed { threshold, count } => {
                write!(f, "threshold {threshold}: the count is {count} already: use a higher one")
            }
        }
    }
}

/// Logical counter of the unit, by the number of its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitCounter(u8);

/// Counter unit of one CPU.
#[derive(Debug)]
pub struct CounterUnit<B: Bus> {
    bus: CountingBus<B>,
    /// Number of counters in use, which are those with the lowest numbers.
    used: usize,
    /// Difference between each counter's value and its logical count; modulo 2^64.
    offsets: Box<[u64]>,
}

impl<B: Bus> CounterUnit<B> {
    /// Makes the unit, stopped and with no counter in use; `None` if this driver does not support
    /// it. `bus` must have the unit's registers.
    pub fn new(bus: B) -> Option<Self> {
        let mut bus = CountingBus::new(bus);
        let capabilities: UnitCapabilities = bus.get(0);
        let known = UNIT_COUNTERS as u64 | u64::from(CARRY_EVENTS.ilog2()) << 16;
        let compared = UnitCapabilities::COUNTERS | UnitCapabilities::LOW_BITS;
        if capabilities.bits() & compared.bits() != known {
            return None;
        }
        let offsets = vec![0; UNIT_COUNTERS].into_boxed_slice();
        let mut unit = CounterUnit { bus, used: UNIT_COUNTERS, offsets };
        unit.clear();
        Some(unit)
    }

    /// Stops the unit and frees all its counters.
    pub fn clear(&mut self) {
        self.stop();
        for index in (0..self.used).map(|index| index as u8) {
            self.bus.put(index, UnitConfig::empty());
            self.bus.put(index, UnitCount(0));
        }
        (0..STATUS_WORDS).for_each(|word| self.bus.put(word, UnitStatus::COUNTERS));
        self.used = 0;
    }

    /// Checks that the unit counts an event, using a free counter, if any.
    ///
    /// # Errors
    /// [`UnitError::Full`]; [`UnitError::NotSupported`].
    pub fn check(&mut self, event: UnitConfig) -> Result<(), UnitError> {
        let index = u8::try_from(self.used).map_err(|_| UnitError::Full)?;
        // Not enabled, so that it counts nothing meanwhile.
        self.bus.put(index, event - UnitConfig::EN);
        let found: UnitConfig = self.bus.get(index);
        self.bus.put(index, UnitConfig::empty());
        if found.contains(UnitConfig::SUPPORTED) { Ok(()) } else { Err(UnitError::NotSupported) }
    }

    /// Allocates a counter for an event; its count begins at 0.
    ///
    /// # Errors
    /// [`UnitError::Full`]; [`UnitError::NotSupported`].
    pub fn add(&mut self, event: UnitConfig) -> Result<UnitCounter, UnitError> {
        let index = u8::try_from(self.used).map_err(|_| UnitError::Full)?;
        self.check(event)?;
        self.bus.put(index, event);
        self.bus.put(index, UnitCount(0));
        self.offsets[usize::from(index)] = 0;
        self.used += 1;
        Ok(UnitCounter(index))
    }

    /// Starts all counters, by one write.
    pub fn start(&mut self) {
        self.bus.put(0, UnitControl::RUN);
    }

    /// Stops all counters, by one write.
    pub fn stop(&mut self) {
        self.bus.put(0, UnitControl::empty());
    }

    /// Returns the count: all events since the counter was allocated, while the unit was started.
    pub fn read(&mut self, counter: UnitCounter) -> u64 {
        let value = self.bus.count(UnitCount::address(counter.0));
        value.wrapping_sub(self.offsets[usize::from(counter.0)])
    }

    /// Sets the count, in events, at which the threshold of a counter fires, once; replaces one
    /// that has not fired. The unit must be stopped, or not count in the caller's ring.
    ///
    /// # Errors
    /// [`UnitError::Passed`]: the count is at or above the threshold.
    pub fn set_threshold(&mut self, counter: UnitCounter, threshold: u64) -> Result<(), UnitError> {
        let count = self.read(counter);
        let left = threshold.checked_sub(count).filter(|left| *left > 0);
        let left = left.ok_or(UnitError::Passed { threshold, count })?;
        // The paper's 4096 n + m: a threshold of 4096 n, and a preload of 4096 - m.
        let preload = CARRY_EVENTS - left % CARRY_EVENTS;
        let event = self.bus.get::<UnitConfig>(counter.0) - UnitConfig::SUPPORTED;
        self.bus.put(counter.0, event - UnitConfig::INT);
        self.bus.put(counter.0, UnitCount(preload));
        self.bus.put(counter.0, UnitThreshold::from_bits_retain(left - left % CARRY_EVENTS));
        self.bus.put(counter.0, event | UnitConfig::INT);
        self.offsets[usize::from(counter.0)] = preload.wrapping_sub(count);
        Ok(())
    }

    /// Returns the lowest counter whose threshold has fired since the last call for it, if any.
    pub fn take_fired(&mut self) -> Option<UnitCounter> {
        for word in 0..STATUS_WORDS {
            let fired: UnitStatus = self.bus.get(word);
            if !fired.is_empty() {
                let bit = fired.bits().trailing_zeros() as u8;
                self.bus.put(word, UnitStatus::from_bits_retain(1 << bit));
                return Some(UnitCounter(64 * word + bit));
            }
        }
        None
    }

    /// Returns the number of RDMSR and WRMSR instructions since the driver was made.
    pub fn msr_accesses(&self) -> u64 {
        self.bus.msr_accesses
    }
}

impl UnitCounter {
    /// Returns the operand of RDPMC by which ring 3 reads the counter's value.
    pub fn rdpmc(self) -> u32 {
        UnitCount::address(self.0)
    }
}
