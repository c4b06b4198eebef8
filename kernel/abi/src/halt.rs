//! Halts: stops of a CPU in an interrupt handler, like those of a machine whose probe empties its
//! trace buffer (paper 003).

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::session::MAX_SLICE;

/// The longest halt, in core cycles.
pub const MAX_LENGTH_CYCLES: u64 = 10_000_000_000;
/// The shortest time between two halts, in core cycles of ring 3.
pub const MIN_PERIOD_CYCLES: u64 = 1_000;
/// Longest time between two halts: the largest count with which a counter can be preloaded.
pub const MAX_PERIOD_CYCLES: u64 = MAX_SLICE;
/// The largest footprint, in bytes.
pub const MAX_FOOTPRINT_BYTES: u64 = 8 << 20;

/// Length, period and cache footprint of each CPU's halts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halts {
    /// Minimum core cycles from the handler's beginning to its end; 0: the shortest possible halt.
    pub length_cycles: u64,
    /// Core cycles in ring 3 from one halt to the next.
    pub period_cycles: u64,
    /// Bytes of memory that the handler reads and writes in each halt, by cache line.
    pub footprint_bytes: u64,
}

/// Reason why a text is not a [`Halts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHalts {
    /// Not two or three numbers with commas between them.
    Malformed,
    /// The length is above [`MAX_LENGTH_CYCLES`].
    Length(u64),
    /// The period is below [`MIN_PERIOD_CYCLES`] or above [`MAX_PERIOD_CYCLES`].
    Period(u64),
    /// The footprint is above [`MAX_FOOTPRINT_BYTES`].
    Footprint(u64),
}

impl fmt::Display for BadHalts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadHalts::Malformed => f.write_str(
                "use LENGTH,PERIOD or LENGTH,PERIOD,FOOTPRINT: cycles of a halt, cycles in ring 3 \
                 between two, bytes that the handler touches",
            ),
            BadHalts::Length(cycles) => {
                write!(f, "a halt of {cycles} cycles is too long: use 0 to {MAX_LENGTH_CYCLES}")
            }
            BadHalts::Period(cycles) => write!(
                f,
                "a halt every {cycles} cycles is out of range: use {MIN_PERIOD_CYCLES} to \
                 {MAX_PERIOD_CYCLES}"
            ),
            BadHalts::Footprint(bytes) => write!(
                f,
                "a footprint of {bytes} bytes is too large: use 0 to {MAX_FOOTPRINT_BYTES}"
            ),
        }
    }
}

impl fmt::Display for Halts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.length_cycles, self.period_cycles, self.footprint_bytes)
    }
}

impl Halts {
    /// Parses `LENGTH,PERIOD` or `LENGTH,PERIOD,FOOTPRINT`.
    ///
    /// # Errors
    /// See [`BadHalts`].
    pub fn parse(text: &str) -> Result<Halts, BadHalts> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| BadHalts::Malformed);
        let (length, rest) = text.split_once(',').ok_or(BadHalts::Malformed)?;
        let (period, footprint) = rest.split_once(',').unwrap_or((rest, "0"));
        let [length_cycles, period_cycles, footprint_bytes] =
            [number(length)?, number(period)?, number(footprint)?];
        if length_cycles > MAX_LENGTH_CYCLES {
            return Err(BadHalts::Length(length_cycles));
        }
        if !(MIN_PERIOD_CYCLES..=MAX_PERIOD_CYCLES).contains(&period_cycles) {
            return Err(BadHalts::Period(period_cycles));
        }
        if footprint_bytes > MAX_FOOTPRINT_BYTES {
            return Err(BadHalts::Footprint(footprint_bytes));
        }
        Ok(Halts { length_cycles, period_cycles, footprint_bytes })
    }
}

/// Behaviour of the scheduler's timer during a halt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HaltTimer {
    /// The timer runs on, and its interrupt is pending when a long halt ends, as on the machine of
    /// paper 003.
    #[default]
    Running,
    /// The timer stands still, so that a halt's length does not move its interrupts.
    Held,
}

impl HaltTimer {
    /// Parses the value of `halt-timer` on the command line.
    pub fn parse(text: &str) -> Option<HaltTimer> {
        match text {
            "running" => Some(HaltTimer::Running),
            "held" => Some(HaltTimer::Held),
            _ => None,
        }
    }

    /// The value's word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            HaltTimer::Running => "running",
            HaltTimer::Held => "held",
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn halts_have_two_numbers_or_three() {
        let halts = Halts { length_cycles: 0, period_cycles: 1_000, footprint_bytes: 64 };
        assert_eq!(Halts::parse("0,1000,64"), Ok(halts));
        assert_eq!(Halts::parse(&halts.to_string()), Ok(halts));
        assert_eq!(Halts::parse("0,1000"), Ok(Halts { footprint_bytes: 0, ..halts }));
        for bad in ["", "7", "7,", ",7", "7,1000,", "7,1000,1,1", "-7,1000", "a,b"] {
            assert_eq!(Halts::parse(bad), Err(BadHalts::Malformed), "{bad}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused_with_the_range() {
        for (bad, refused) in [
            ("10000000001,1000", BadHalts::Length(10_000_000_001)),
            ("0,999", BadHalts::Period(999)),
            ("0,1073741825", BadHalts::Period(1_073_741_825)),
            ("0,1000,8388609", BadHalts::Footprint(8_388_609)),
        ] {
            assert_eq!(Halts::parse(bad), Err(refused));
            assert!(refused.to_string().contains(": use "), "{refused}");
        }
    }

    #[test]
    fn the_timers_words_are_parsed() {
        for timer in [HaltTimer::Running, HaltTimer::Held] {
            assert_eq!(HaltTimer::parse(timer.word()), Some(timer));
        }
        assert_eq!(HaltTimer::parse("off"), None);
    }
}
